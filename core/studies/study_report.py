"""Write a study as one HTML page: tables, plots, texts, the study's file and the identities of its models."""

from __future__ import annotations

import html
import math
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import TYPE_CHECKING

from decodescope.core.common.text import cut_short
from decodescope.core.studies.statistics import MeanEstimate
from decodescope.core.studies.study_file import format_value
from decodescope.core.studies.study_summary import CellSummary, StudySummary, interval_text, number_text, p_text
from decodescope.core.studies.text_measures import Row
from decodescope.core.trace.page.html_page import content_security_policy, encodable, read_part
from decodescope.resources.language import current_language, join_names, tr, trn

if TYPE_CHECKING:
    from decodescope.core.studies.text_measures import StudyMeasure

MAX_SHOWN_PROMPTS, MAX_SHOWN_TEXTS, MAX_SHOWN_CELLS = 60, 4, 24
"""Prompts with their texts, texts of a prompt in a cell, and cells next to each other; the table has all."""
_COLOURS = 6
_WIDTH, _LEFT, _RIGHT, _TOP = 460, 62, 14, 12


def report_text(summary: StudySummary, rows: Sequence[Row]) -> str:
    """Return the page as text in UTF-8."""
    return report_page(summary.title or tr("A study"), _counts(summary), "".join(_sections(summary, rows)))


def report_page(title: str, about: str, body: str) -> str:
    """Return a page in the look of reports as text in UTF-8. `about` stands below the title; `body` is HTML."""
    style, script = _style(), _script()
    title = escaped(title)
    made = time.strftime("%Y-%m-%d %H:%M")
    themes = "".join(
        f'<button role="radio" data-theme="{name}" aria-checked="{str(not name).lower()}">{label}</button>'
        for name, label in (("", tr("System")), ("light", tr("Light")), ("dark", tr("Dark")))
    )
    return encodable(f"""<!DOCTYPE html>
<html lang="{current_language().replace("_", "-")}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{content_security_policy(style, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="Decodescope">
<meta name="color-scheme" content="light dark">
<title>{title} · Decodescope</title>
<style>{style}</style>
</head>
<body>
<header id="bar">
<p class="brand">Decode<b>scope</b></p>
<div class="about"><h1>{title}</h1><p>{escaped(about)} · {made}</p></div>
<div class="tools">
<div id="theme" class="choice" role="radiogroup" aria-label="{escaped(tr("Theme"))}">{themes}</div>
</div>
</header>
<main>{body}</main>
<script type="module">{script}</script>
</body>
</html>
""")


@cache
def _style() -> str:
    own = files("decodescope.core.studies").joinpath("report_parts", "report.css").read_text(encoding="utf-8")
    return "\n" + read_part("base.css").strip() + "\n" + own.strip() + "\n"


@cache
def _script() -> str:
    own = files("decodescope.core.studies").joinpath("report_parts", "report.js").read_text(encoding="utf-8")
    return "\n" + own.strip() + "\n"


def escaped(text: object) -> str:
    """Return a text for HTML."""
    return html.escape(encodable(str(text)))


def _counts(summary: StudySummary) -> str:
    texts = sum(cell.texts for cell in summary.cells)
    prompts = max((cell.prompts for cell in summary.cells), default=0)
    return join_names((
        trn("{count:,} text", "{count:,} texts", texts).format(count=texts),
        trn("{count:,} prompt", "{count:,} prompts", prompts).format(count=prompts),
        trn("{count:,} cell", "{count:,} cells", len(summary.cells)).format(count=len(summary.cells)),
    ))  # fmt: skip


def _sections(summary: StudySummary, rows: Sequence[Row]) -> Iterator[str]:
    if summary.notices:
        yield '<div id="notices">' + "".join(f"<p>{escaped(notice)}</p>" for notice in summary.notices) + "</div>"
    yield report_section(tr("Results"), _results_table(summary) + _note(_interval_note(summary)))
    if any(cell.differences for cell in summary.cells):
        note = tr("Paired by prompt and seed. p: sign-flip test over prompts, adjusted by Holm over the cells.")
        title = tr("Differences to {cell}").format(cell=summary.baseline)
        yield report_section(title, _differences_table(summary) + _note(note))
    plots = "".join(_plots(summary))
    if plots:
        yield report_section(tr("Plots"), f'<div class="plots">{plots}</div>')
    if any(cell.majority for cell in summary.cells):
        yield report_section(tr("Right answers"), _answers(summary.cells))
    if rows:
        yield report_section(tr("Texts"), _texts(rows))
    yield report_section(tr("Models"), _models(summary))
    if summary.text:
        yield report_section(tr("The study’s file"), f"<pre>{escaped(summary.text)}</pre>")


def report_section(title: str, body: str) -> str:
    """Return a section as HTML; `body` is HTML."""
    return f"<section><h2>{escaped(title)}</h2>{body}</section>"


def _note(text: str) -> str:
    return f'<p class="note">{escaped(text)}</p>' if text else ""


def _interval_note(summary: StudySummary) -> str:
    shown = (one for cell in summary.cells for one in cell.estimates.values() if one is not None)
    if not any(one.low is not None for one in shown):
        return tr("Mean over prompts.")
    return tr("Mean over prompts; below it the 95 % interval, by a bootstrap over prompts and then seeds (BCa).")


def sortable_table(head: Sequence[str], rows: Sequence[tuple[str, Sequence[tuple[str, object]]]]) -> str:
    """Return a table that can be sorted. A row is its class and its cells, each HTML and the value to sort by."""
    names = "".join(f'<th scope="col"><button type="button">{escaped(name)}</button></th>' for name in head)
    body = "".join(
        f'<tr class="{kind}">'
        + "".join(
            f'<td data-value="{escaped("" if value is None else value)}">{content}</td>' for content, value in cells
        )
        + "</tr>"
        for kind, cells in rows
    )
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def _factor_cells(cell: CellSummary, factors: Sequence[str]) -> list[tuple[str, object]]:
    shown = [(escaped(format_value(cell.factors.get(name, ""))), cell.factors.get(name, "")) for name in factors]
    return shown or [(escaped(tr("all")), "")]


def _estimate_cell(found: MeanEstimate | None, digits: int) -> tuple[str, object]:
    if found is None:
        return "–", None
    interval = interval_text(found, digits)
    return number_text(found.mean, digits) + (f"<small>{interval}</small>" if interval else ""), found.mean


def _factor_names(summary: StudySummary) -> list[str]:
    return list(dict.fromkeys(name for cell in summary.cells for name in cell.factors))


def _results_table(summary: StudySummary) -> str:
    factors = _factor_names(summary)
    rows = [
        (
            "base" if cell.label == summary.baseline else "",
            [
                *_factor_cells(cell, factors), (f"{cell.texts:,}", cell.texts),
                *(_estimate_cell(cell.estimates.get(one.name), one.digits) for one in summary.measures),
            ],
        )
        for cell in summary.cells
    ]  # fmt: skip
    return sortable_table([*(factors or [tr("cell")]), tr("texts"), *(one.name for one in summary.measures)], rows)


def _differences_table(summary: StudySummary) -> str:
    factors = _factor_names(summary)
    rows: list[tuple[str, Sequence[tuple[str, object]]]] = []
    for cell in summary.cells:
        if not cell.differences:
            continue
        cells = _factor_cells(cell, factors)
        for one in summary.measures:
            found = cell.differences.get(one.name)
            content, value = _estimate_cell(found.estimate if found else None, one.digits)
            if found is not None and found.adjusted_p is not None:
                content += f"<small>p {escaped(p_text(found.adjusted_p))}</small>"
            cells.append((content, value))
        rows.append(("", cells))
    return sortable_table([*factors, *(one.name for one in summary.measures)], rows)


# --- plots


def _plots(summary: StudySummary) -> Iterator[str]:
    factors = [name for name in _factor_names(summary) if len({str(c.factors.get(name)) for c in summary.cells}) > 1]
    if not factors:
        return
    for measure in summary.measures:
        shown = [(cell, one) for cell in summary.cells if (one := cell.estimates.get(measure.name)) is not None]
        if len(shown) < 2 or len({one.mean for _, one in shown}) < 2:
            continue
        yield _plot(measure, factors, shown)
        if len(factors) == 2:
            yield _heat_map(measure, factors, shown)


def _plot(measure: StudyMeasure, factors: Sequence[str], shown: Sequence[tuple[CellSummary, MeanEstimate]]) -> str:
    numeric = next((name for name in factors if all(_is_number(cell.factors.get(name)) for cell, _ in shown)), None)
    series: dict[str, list[tuple[float, MeanEstimate]]] = {}
    if numeric is not None:
        for cell, one in shown:
            others = join_names(f"{n} {format_value(cell.factors.get(n, ''))}" for n in factors if n != numeric)
            value = cell.factors[numeric]
            assert isinstance(value, int | float)
            series.setdefault(others, []).append((float(value), one))
    if numeric is None or len(series) > _COLOURS:
        return _figure(measure.name, measure.help, _dots(measure, [(cell.label, one) for cell, one in shown]))
    lines = _lines(series, measure.digits, numeric)
    return _figure(
        measure.name, tr("by {setting}. {help}").format(setting=numeric, help=measure.help), lines + _legend(series)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _figure(title: str, about: str, content: str) -> str:
    return f"<figure><figcaption>{escaped(title)}<span>{escaped(about)}</span></figcaption>{content}</figure>"


def _legend(series: Mapping[str, object]) -> str:
    if len(series) < 2:
        return ""
    items = "".join(f'<span><i class="c{place}"></i>{escaped(name)}</span>' for place, name in enumerate(series))
    return f'<div class="legend">{items}</div>'


def _limits(estimates: Sequence[MeanEstimate]) -> tuple[float, float]:
    values = [value for one in estimates for value in (one.mean, one.low, one.high) if value is not None]
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return low - room, high + room


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers between two values."""
    step = 10 ** math.floor(math.log10((high - low) / count))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= count)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _tick_text(value: float) -> str:
    return f"{value:.3g}".replace("-", "−") if abs(value) < 1e5 else f"{value:.1e}".replace("-", "−")


def _lines(series: Mapping[str, Sequence[tuple[float, MeanEstimate]]], digits: int, x_name: str) -> str:
    """Return lines with intervals."""
    height, bottom = 240, 40
    every = [point for points in series.values() for point in points]
    low, high = _limits([one for _, one in every])
    left, right = min(x for x, _ in every), max(x for x, _ in every)
    width = (right - left) or 1.0

    def x_of(x: float) -> float:
        return _LEFT + 12 + (x - left) / width * (_WIDTH - _LEFT - _RIGHT - 24)

    def y_of(y: float) -> float:
        return _TOP + (high - y) / (high - low) * (height - _TOP - bottom)

    parts = [
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y_of(y):.1f}" y2="{y_of(y):.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{y_of(y) + 4:.1f}" text-anchor="end">{_tick_text(y)}</text>'
        for y in _ticks(low, high)
    ]
    positions = sorted({x for x, _ in every})
    positions = positions if len(positions) <= 8 else _ticks(left, right, 6)
    parts += [
        f'<text x="{x_of(x):.1f}" y="{height - bottom + 18}" text-anchor="middle">{_tick_text(x)}</text>'
        for x in positions
    ]
    parts.append(f'<text x="{(_LEFT + _WIDTH) / 2}" y="{height - 4}" text-anchor="middle">{escaped(x_name)}</text>')
    for place, (name, points) in enumerate(series.items()):
        ordered = sorted(points, key=lambda point: point[0])
        shift = (place - (len(series) - 1) / 2) * 3
        path = " ".join(f"{x_of(x) + shift:.1f},{y_of(one.mean):.1f}" for x, one in ordered)
        parts.append(f'<polyline class="line c{place}" points="{path}"/>')
        for x, one in ordered:
            at = x_of(x) + shift
            about = escaped(
                f"{name} {x_name} {format_value(x)}: {number_text(one.mean, digits)} {interval_text(one, digits)}"
            )
            if one.low is not None and one.high is not None:
                parts.append(f'<line class="c{place}" stroke-width="1.5" x1="{at:.1f}" x2="{at:.1f}" '
                             f'y1="{y_of(one.low):.1f}" y2="{y_of(one.high):.1f}"/>')  # fmt: skip
            parts.append(_dot(place, at, y_of(one.mean), about))
    return _svg(height, x_name, parts)


def _dot(colour: int, x: float, y: float, about: str) -> str:
    return f'<circle class="c{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{about}</title></circle>'


def _svg(height: int, label: str, parts: Sequence[str]) -> str:
    label = escaped(label)
    content = "".join(parts)
    return f'<svg class="plot" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}">{content}</svg>'


def _dots(measure: StudyMeasure, cells: Sequence[tuple[str, MeanEstimate]]) -> str:
    """Return a dot with its interval for each cell."""
    shown = cells[:40]
    left, row, bottom = 170, 22, 28
    height = _TOP + row * len(shown) + bottom
    low, high = _limits([one for _, one in shown])

    def x_of(x: float) -> float:
        return left + (x - low) / (high - low) * (_WIDTH - left - _RIGHT)

    parts = [
        f'<line class="axis" y1="{_TOP}" y2="{height - bottom}" x1="{x_of(x):.1f}" x2="{x_of(x):.1f}"/>'
        f'<text x="{x_of(x):.1f}" y="{height - 8}" text-anchor="middle">{_tick_text(x)}</text>'
        for x in _ticks(low, high, 4)
    ]
    for place, (label, one) in enumerate(shown):
        y = _TOP + row * (place + 0.5)
        about = escaped(f"{label}: {number_text(one.mean, measure.digits)} {interval_text(one, measure.digits)}")
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{escaped(cut_short(label, 26))}</text>')
        if one.low is not None and one.high is not None:
            ends = f'x1="{x_of(one.low):.1f}" x2="{x_of(one.high):.1f}"'
            parts.append(f'<line class="c0" stroke-width="2" {ends} y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_dot(0, x_of(one.mean), y, about))
    return _svg(height, measure.name, parts)


def _heat_map(measure: StudyMeasure, factors: Sequence[str], shown: Sequence[tuple[CellSummary, MeanEstimate]]) -> str:
    """Return a table over two settings, coloured by the mean."""
    first, second = factors
    means = {(str(cell.factors.get(first)), str(cell.factors.get(second))): one.mean for cell, one in shown}
    rows = {str(cell.factors.get(first)): format_value(cell.factors.get(first)) for cell, _ in shown}
    columns = {str(cell.factors.get(second)): format_value(cell.factors.get(second)) for cell, _ in shown}
    low, high = min(means.values()), max(means.values())
    head = "".join(f'<th scope="col">{escaped(cut_short(name, 20))}</th>' for name in columns.values())
    body = ""
    for row, name in rows.items():
        body += f'<tr><th scope="row">{escaped(cut_short(name, 20))}</th>'
        for column in columns:
            mean = means.get((row, column))
            level = "" if mean is None else f' class="h{min(4, int((mean - low) / (high - low) * 5))}"'
            body += f"<td{level}>{'–' if mean is None else number_text(mean, measure.digits)}</td>"
        body += "</tr>"
    table = f'<table class="heat"><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>'
    about = tr("{rows} in rows, {columns} in columns").format(rows=first, columns=second)
    return _figure(measure.name, about, f'<div class="scroll">{table}</div>')


def _answers(cells: Sequence[CellSummary]) -> str:
    curves = {cell.label: [(float(k), one) for k, one in cell.pass_at_k] for cell in cells if len(cell.pass_at_k) > 1}
    best = {cell.label: [(float(k), one) for k, one in cell.best_of_k] for cell in cells if len(cell.best_of_k) > 1}
    plots = ""
    for title, about, found in (
        ("pass@k", tr("Probability that one of k texts is right."), curves),
        (tr("Best of k"), tr("Probability that the best of k texts by score is right."), best),
    ):
        if found:
            first = dict(list(found.items())[:_COLOURS])
            plots += _figure(title, about, _lines(first, 3, "k") + _legend(first))
    rows = [
        ("", [(escaped(cell.label), cell.label), *(_estimate_cell(one, 3) for one in _answer_estimates(cell)),
              (_confident(cell), len(cell.votes))])
        for cell in cells
    ]  # fmt: skip
    table = sortable_table([tr("cell"), "pass@1", tr("majority"), tr("clear majorities")], rows)
    note = _note(tr(
        "Majority: the most frequent extracted answer of a prompt (self-consistency); texts without an answer are a "
        "class of their own. Clear: the leader is the more likely one of the first two answers with a probability "
        "above 95 %."
    ))  # fmt: skip
    return table + note + (f'<div class="plots">{plots}</div>' if plots else "")


def _answer_estimates(cell: CellSummary) -> list[MeanEstimate | None]:
    return [cell.pass_at_k[0][1] if cell.pass_at_k else None, cell.majority]


def _confident(cell: CellSummary) -> str:
    if not cell.votes:
        return "–"
    clear = sum(vote.confidence > 0.95 for vote in cell.votes.values())
    return tr("{count} of {total}").format(count=clear, total=len(cell.votes))


def _texts(rows: Sequence[Row]) -> str:
    by_prompt: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        by_prompt.setdefault(row["prompt_id"], {}).setdefault(row["cell_label"], []).append(row)
    parts: list[str] = []
    for prompt_id, cells in list(by_prompt.items())[:MAX_SHOWN_PROMPTS]:
        first = next(iter(cells.values()))[0]
        prompt = first["prompt"]
        shown = prompt if isinstance(prompt, str) else "\n".join(str(one.get("content", "")) for one in prompt)
        answers = tr(" · answer: {answer}").format(answer=" | ".join(first["answers"])) if first["answers"] else ""
        columns = "".join(
            f"<div><h3>{escaped(label)}</h3>{''.join(map(_one_text, own[:MAX_SHOWN_TEXTS]))}</div>"
            for label, own in list(cells.items())[:MAX_SHOWN_CELLS]
        )
        about = f"{prompt_id} · {cut_short(shown, 160)}{answers}"
        parts.append(text_group(about, columns, is_open=not parts))
    hidden = len(by_prompt) - len(parts)
    more = trn("{count} further prompt is in the table.", "{count} further prompts are in the table.", hidden)
    return "".join(parts) + (_note(more.format(count=hidden)) if hidden else "")


def text_group(about: str, columns: str, is_open: bool = False) -> str:
    """Return texts side by side below a line that opens them; `columns` are HTML."""
    state = " open" if is_open else ""
    return f'<details{state}><summary>{escaped(about)}</summary><div class="texts" dir="auto">{columns}</div></details>'


def _one_text(row: Row) -> str:
    about = tr("seed {seed}, {finish}").format(seed=row["seed"], finish=row.get("finish") or "–")
    return f"<p>{escaped(cut_short(row['text'], 1200))}<small>{escaped(about)}</small></p>"


def _models(summary: StudySummary) -> str:
    parts = []
    for name, facts in summary.identities.items():
        parts.append(f'<div class="model"><h3>{escaped(name)}</h3>{fact_list(facts)}</div>')
    versions = {"Python": platform.python_version(), "system": platform.platform()}
    for package in ("decodescope", "torch", "transformers", "numpy"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    parts.append(f'<div class="model"><h3>{escaped(tr("Versions"))}</h3>{fact_list(versions)}</div>')
    return "".join(parts)


def fact_list(facts: Mapping[str, object]) -> str:
    """Return names with their values as HTML."""
    items = "".join(f"<dt>{escaped(key)}</dt><dd>{escaped(value)}</dd>" for key, value in facts.items())
    return f'<dl class="facts">{items}</dl>'
