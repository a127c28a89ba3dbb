"""The results of a study: estimates of its cells, and their tables as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from unicodedata import east_asian_width

from decodescope.core.common.text import cut_short
from decodescope.core.explain import words
from decodescope.core.studies.statistics import Difference, MeanEstimate, Vote
from decodescope.core.studies.study_file import format_value
from decodescope.core.studies.text_measures import StudyMeasure
from decodescope.resources.language import tr, trn

_MAX_FACTOR_WIDTH = 24
_GAP = "  "


@dataclass(frozen=True, slots=True)
class CellSummary:
    """A cell's results."""

    label: str
    factors: Mapping[str, object]
    texts: int
    prompts: int
    failed: int
    """Number of runs that failed."""
    estimates: Mapping[str, MeanEstimate | None]
    """By measure; None if no text has a value."""
    differences: Mapping[str, Difference | None]
    """To the baseline, by measure; empty for the baseline itself, and without one."""
    pass_at_k: Sequence[tuple[int, MeanEstimate]] = ()
    best_of_k: Sequence[tuple[int, MeanEstimate]] = ()
    """Correctness of the best of k texts by the study's `best_of` measure."""
    majority: MeanEstimate | None = None
    """Fraction of prompts whose majority of answers is right; None without right answers."""
    votes: Mapping[str, Vote] = field(default_factory=dict)
    """The majority of each prompt with several texts, by prompt."""


@dataclass(frozen=True, slots=True)
class StudySummary:
    """The results of a study."""

    title: str
    measures: tuple[StudyMeasure, ...]
    cells: tuple[CellSummary, ...]
    baseline: str = ""
    """Label of the baseline cell; empty without one."""
    notices: tuple[str, ...] = ()
    text: str = ""
    """The study's file."""
    identities: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Identity, engine and device of each model, by its name in the study."""

    def as_text(self, width: int = 100) -> str:
        """Return a table for a terminal or a log, without colours."""
        return summary_text(self, width)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}, {len(self.cells)} cells, {len(self.measures)} measures>"


@dataclass(frozen=True, slots=True)
class PilotEstimate:
    """Estimates of time and size for a whole study, from the runs so far."""

    runs_left: int
    seconds_left: float | None
    prompts: Mapping[str, Mapping[float, int]]
    """Number of prompts for an interval of ± x, by measure and x: the largest of all cells and differences."""


def number_text(value: float, digits: int) -> str:
    """Return a number with a fixed number of decimals, a minus sign, and separators of thousands."""
    text = f"{value:,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def interval_text(found: MeanEstimate, digits: int) -> str:
    """Return the interval of an estimate; empty without one."""
    if found.low is None or found.high is None:
        return ""
    return f"[{number_text(found.low, digits)}, {number_text(found.high, digits)}]"


def estimate_text(found: MeanEstimate | None, digits: int) -> str:
    """Return a mean with its interval."""
    return f"{number_text(found.mean, digits)} {interval_text(found, digits)}".rstrip() if found is not None else "–"


def p_text(p: float | None) -> str:
    """Return a p-value."""
    return "–" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def summary_text(summary: StudySummary, width: int = 100) -> str:
    """Return the tables of a study: means of all measures, differences to the baseline, and curves."""
    return "\n".join(_summary_lines(summary, max(width, 40))) + "\n"


def _summary_lines(summary: StudySummary, width: int) -> Iterator[str]:
    yield summary.title
    yield from (f"! {notice}" for notice in summary.notices)
    factors = list(dict.fromkeys(name for cell in summary.cells for name in cell.factors))
    left = [
        [cut_short(format_value(cell.factors.get(name, "")), _MAX_FACTOR_WIDTH) for name in factors] or [tr("all")]
        for cell in summary.cells
    ]
    names = factors or [tr("cell")]
    columns = [
        [one.name, *(estimate_text(cell.estimates.get(one.name), one.digits) for cell in summary.cells)]
        for one in summary.measures
    ]
    counts = [tr("texts"), *(f"{cell.texts:,}" for cell in summary.cells)]
    yield from _blocks([names, *left], [counts, *columns], width)
    has_interval = any(
        one is not None and one.low is not None for cell in summary.cells for one in cell.estimates.values()
    )
    if has_interval:
        yield tr("Mean over prompts [95 % interval: bootstrap over prompts, then seeds].")
    if summary.baseline:
        yield ""
        yield tr(
            "Difference to {cell}, paired by prompt and seed; p by sign flips, adjusted by Holm over the cells:"
        ).format(cell=summary.baseline)
        shown = [place for place, cell in enumerate(summary.cells) if cell.differences]
        columns = [
            [
                one.name,
                *(_difference_text(summary.cells[place].differences.get(one.name), one.digits) for place in shown),
            ]
            for one in summary.measures
        ]
        yield from _blocks([names, *(left[place] for place in shown)], columns, width)
    yield from _answer_lines(summary.cells, [names, *left], width)


def _difference_text(found: Difference | None, digits: int) -> str:
    if found is None:
        return "–"
    sign = "+" if found.estimate.mean > 0 else ""
    p = f", p {p_text(found.adjusted_p)}" if found.adjusted_p is not None else ""
    return f"{sign}{estimate_text(found.estimate, digits)}{p}"


def _answer_lines(cells: Sequence[CellSummary], left: list[list[str]], width: int) -> Iterator[str]:
    """Yield the tables about right answers."""
    if not any(cell.majority for cell in cells):
        return
    yield ""
    yield tr("Right answers: one of k texts (pass@k), and the majority of all (self-consistency):")
    largest = max((len(cell.pass_at_k) for cell in cells), default=0)
    steps = [k for k in (1, 2, 4, 8, 16, 32, 64, 128) if k <= largest]
    steps += [largest] if largest not in steps else []
    columns = [
        [
            f"pass@{k}",
            *(estimate_text(cell.pass_at_k[k - 1][1], 3) if k <= len(cell.pass_at_k) else "–" for cell in cells),
        ]
        for k in steps
        if k > 0
    ]
    columns += [
        [
            tr("best of {k}").format(k=k),
            *(estimate_text(cell.best_of_k[k - 1][1], 3) if k <= len(cell.best_of_k) else "–" for cell in cells),
        ]
        for k in steps[1:]
        if any(cell.best_of_k for cell in cells)
    ]  # fmt: skip
    columns.append([tr("majority"), *(estimate_text(cell.majority, 3) for cell in cells)])
    yield from _blocks(left, columns, width)


def _blocks(left: list[list[str]], columns: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield tables with the columns of `left` and as many of the others as the width allows, until all are shown."""
    fixed = list(zip(*left, strict=True))
    used = sum(max(map(_width, one)) + len(_GAP) for one in fixed)
    waiting = list(columns)
    while waiting:
        taken = [waiting.pop(0)]
        while waiting and used + sum(max(map(_width, one)) + len(_GAP) for one in (*taken, waiting[0])) <= width:
            taken.append(waiting.pop(0))
        yield ""
        cells = [*(list(one) for one in fixed), *(list(one) for one in taken)]
        widths = [max(map(_width, one)) for one in cells]
        for number, row in enumerate(zip(*cells, strict=True)):
            yield _GAP.join(_padded(text, size) for text, size in zip(row, widths, strict=True)).rstrip()
            if number == 0:
                yield _GAP.join("─" * size for size in widths)


def _width(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def pilot_text(found: PilotEstimate) -> str:
    """Return the time left and the number of prompts needed, as estimated by a pilot run."""
    lines = [trn("{count:,} run is left.", "{count:,} runs are left.", found.runs_left).format(count=found.runs_left)]
    if found.seconds_left is not None and found.runs_left:
        lines.append(tr("Time left: about {time}.").format(time=words.rounded_duration(found.seconds_left)))
    for name, sizes in found.prompts.items():
        for width, count in sizes.items():
            lines.append(
                trn(
                    "{measure}: {count:,} prompt for ± {width:g}", "{measure}: {count:,} prompts for ± {width:g}", count
                ).format(measure=name, count=count, width=width)
            )
    if found.prompts:
        lines.append(tr("Estimated from the spread so far, for 95 % intervals."))
    return "\n".join(lines) + "\n"
