"""Contents of the pages of a study: tables, curves and maps of plain values. No widgets."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from decodescope.app.state.setting_values import is_number
from decodescope.core import studies
from decodescope.resources.language import join_sentences, mark, tr, trn

NEW_STUDY = """\
# {comment}
seeds = 2
models = [{model}]
measures = ["length", "log_probability", "distinct_2", "repetition"]

[prompts]
texts = [
  "Once upon a time",
  "One day, a dog",
  "The old house",
  "A girl named Mia",
  "In the garden",
  "Every morning",
  "The king had",
  "It was raining, and",
]

[settings]
do_sample = true
max_new_tokens = 24

[grid]
temperature = [0.5, 1.0, 1.5]
"""
MAX_CURVES = 6
"""Curves of a plot, each in a colour of its own."""
MAX_COLUMNS, MAX_TEXTS = 12, 8
"""Cells side by side, and texts of a prompt in each."""


@dataclass(frozen=True)
class StudyResults:
    """The results of a study so far."""

    summary: studies.StudySummary
    rows: Sequence[studies.Row] = ()
    failed: Sequence[studies.Row] = ()
    estimate: studies.PilotEstimate = field(default_factory=lambda: studies.PilotEstimate(0, None, {}))

    @property
    def run_count(self) -> int:
        """Number of finished runs."""
        return len({row["key"] for row in self.rows})

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts by id, as text."""
        return {row["prompt_id"]: prompt_text(row["prompt"]) for row in self.rows}


def prompt_text(prompt: object) -> str:
    """Return a prompt as text: that of a chat is the last message."""
    if isinstance(prompt, list) and prompt and isinstance(prompt[-1], dict):
        return str(prompt[-1].get("content", ""))
    return str(prompt)


# --- tables


class TableColumn(NamedTuple):
    """A column of a table."""

    title: str
    tip: str = ""
    is_number: bool = False
    is_text: bool = False
    """Whether it takes the remaining width."""


class TableCell(NamedTuple):
    """A cell: text, a second line in small type, and the value by which it is sorted (None: last)."""

    text: str
    note: str = ""
    value: float | str | None = None


class TableRow(NamedTuple):
    """A row with the key by which it is recognized."""

    key: tuple[object, ...]
    cells: tuple[TableCell, ...]
    is_marked: bool = False
    """Whether it is the baseline or a failed run."""


Table = tuple[list[TableColumn], list[TableRow]]


def factor_names(summary: studies.StudySummary, varying: bool = False) -> list[str]:
    """Return the names of the factors; `varying`: of those with several values."""
    names = list(dict.fromkeys(name for cell in summary.cells for name in cell.factors))
    return [name for name in names if not varying or len(factor_values(summary, name)) > 1]


def factor_values(summary: studies.StudySummary, name: str) -> list[object]:
    """Return the values of a factor: numbers in order of size, others in order of the study."""
    values: list[object] = []
    for cell in summary.cells:
        value = cell.factors.get(name, "")
        if value not in values:
            values.append(value)
    sizes = [one for one in values if is_number(one)]
    return [*sorted(sizes)] if len(sizes) == len(values) else values


def _factor_cell(value: object) -> TableCell:
    text = studies.format_value(value) if value != "" else "–"
    return TableCell(text, value=float(value) if is_number(value) else text)


def cell_table(summary: studies.StudySummary, shows_differences: bool = False) -> Table:
    """Return a row per cell with the means of all measures, or their differences to the baseline."""
    names = factor_names(summary)
    columns = [TableColumn(name) for name in names] or [TableColumn(tr("cell"))]
    columns.append(TableColumn(tr("texts"), tr("Number of texts"), True))
    columns += [TableColumn(one.name, one.help, True) for one in summary.measures]
    rows = []
    for cell in summary.cells:
        if shows_differences and cell.label == summary.baseline:
            continue
        note = trn("{count} failed", "{count} failed", cell.failed).format(count=cell.failed) if cell.failed else ""
        cells = [_factor_cell(cell.factors.get(name, "")) for name in names] or [TableCell(tr("all"), value="")]
        cells.append(TableCell(f"{cell.texts:,}", note, cell.texts))
        cells += [
            _difference_cell(cell.differences.get(one.name), one.digits)
            if shows_differences
            else _estimate_cell(cell.estimates.get(one.name), one.digits)
            for one in summary.measures
        ]
        rows.append(TableRow((cell.label,), tuple(cells), cell.label == summary.baseline))
    return columns, rows


def _estimate_cell(found: studies.MeanEstimate | None, digits: int) -> TableCell:
    if found is None:
        return TableCell("–")
    return TableCell(studies.number_text(found.mean, digits), studies.interval_text(found, digits), found.mean)


def _difference_cell(found: studies.Difference | None, digits: int) -> TableCell:
    if found is None:
        return TableCell("–")
    cell = _estimate_cell(found.estimate, digits)
    p = f"p {studies.p_text(found.adjusted_p)}" if found.adjusted_p is not None else ""
    return TableCell(("+" if found.estimate.mean > 0 else "") + cell.text, f"{cell.note} {p}".strip(), cell.value)


def run_table(results: StudyResults, cell: str = "", search: str = "") -> Table:
    """Return a row per text, and one per failed run; `cell`: only those of a cell, `search`: only texts or prompts with
    these letters.
    """
    summary, wanted = results.summary, search.casefold().strip()
    names = factor_names(summary)
    columns = [TableColumn(tr("prompt"), tr("Id of the prompt"))]
    columns += [TableColumn(name) for name in names]
    columns += [TableColumn(tr("seed"), "", True)]
    columns += [TableColumn(tr("text"), "", is_text=True)]
    columns += [TableColumn(one.name, one.help, True) for one in summary.measures]
    rows = []
    for row in results.rows:
        if cell and row["cell_label"] != cell:
            continue
        if wanted and wanted not in row["text"].casefold() and wanted not in prompt_text(row["prompt"]).casefold():
            continue
        values = [row["values"].get(one.name) for one in summary.measures]
        cells = [
            _prompt_cell(row["prompt_id"]), *(_factor_cell(row["cell"].get(name, "")) for name in names),
            _seed_cell(row["seed"]), TableCell(one_line(row["text"]), value=row["text"]),
            *(
                TableCell("–" if value is None else studies.number_text(value, one.digits), value=value)
                for value, one in zip(values, summary.measures, strict=True)
            ),
        ]  # fmt: skip
        rows.append(TableRow((row["key"], row["text_number"]), tuple(cells)))
    for row in results.failed:
        if (cell and row["cell_label"] != cell) or (wanted and wanted not in str(row["error"]).casefold()):
            continue
        cells = [
            _prompt_cell(row.get("prompt_id", "")), *(_factor_cell(row["cell"].get(name, "")) for name in names),
            _seed_cell(row.get("seed", "")), TableCell(one_line(row["error"]), value=row["error"]),
            *(TableCell("–") for _ in summary.measures),
        ]  # fmt: skip
        rows.append(TableRow((row["key"], -1), tuple(cells), True))
    return columns, rows


def one_line(text: str) -> str:
    """Return a text with visible line breaks, short enough for a row."""
    return text[:400].replace("\r\n", "\n").replace("\n", "↵").strip()


def _prompt_cell(prompt_id: str) -> TableCell:
    return TableCell(prompt_id, value=float(prompt_id) if prompt_id.isdecimal() else prompt_id)


def _seed_cell(seed: object) -> TableCell:
    return TableCell(str(seed), value=float(seed) if is_number(seed) else str(seed))


# --- curves and maps


class PlotPoint(NamedTuple):
    """A mean with its interval at a place of the x axis."""

    x: float
    label: str
    """The value of x as text."""
    estimate: studies.MeanEstimate
    cell: str
    """Label of the cell; empty for none."""


class PlotCurve(NamedTuple):
    """Points of one colour."""

    name: str
    points: tuple[PlotPoint, ...]


class PlotData(NamedTuple):
    """Curves with intervals."""

    title: str = ""
    x_title: str = ""
    digits: int = 3
    curves: tuple[PlotCurve, ...] = ()
    is_numeric: bool = True
    """Whether x has a size, so that points are joined."""
    hidden: int = 0
    """Number of curves that are left out."""


def plot_of(summary: studies.StudySummary, measure: studies.StudyMeasure, x_name: str) -> PlotData:
    """Return the curves of a measure over a factor: one for each combination of the others."""
    values = factor_values(summary, x_name)
    is_numeric = all(map(is_number, values))
    names = [name for name in factor_names(summary, varying=True) if name != x_name]
    curves: dict[str, list[PlotPoint]] = {}
    for cell in summary.cells:
        found = cell.estimates.get(measure.name)
        if found is None:
            continue
        value = cell.factors.get(x_name, "")
        x = float(value) if is_numeric and is_number(value) else float(values.index(value))
        text = studies.format_value(value) if x_name else cell.label
        name = studies.label_of({one: cell.factors.get(one, "") for one in names}) if names else measure.name
        curves.setdefault(name, []).append(PlotPoint(x, text, found, cell.label))
    shown = [PlotCurve(name, tuple(sorted(points))) for name, points in list(curves.items())[:MAX_CURVES]]
    hidden = max(0, len(curves) - MAX_CURVES)
    return PlotData(measure.name, x_name, measure.digits, tuple(shown), is_numeric, hidden)


PASS, BEST = "pass", "best"


def answer_plot(summary: studies.StudySummary, kind: str) -> PlotData:
    """Return pass@k, or the correctness of the best of k texts, over k: a curve per cell."""
    curves = []
    for cell in summary.cells:
        points = cell.pass_at_k if kind == PASS else cell.best_of_k
        if points:
            curves.append(
                PlotCurve(cell.label, tuple(PlotPoint(float(k), str(k), found, cell.label) for k, found in points))
            )
    title = tr("pass@k: one of k texts is right") if kind == PASS else tr("best of k: the chosen text is right")
    return PlotData(title, "k", 3, tuple(curves[:MAX_CURVES]), True, max(0, len(curves) - MAX_CURVES))


class MapCell(NamedTuple):
    """A cell of a heat map."""

    estimate: studies.MeanEstimate | None
    cell: str


class HeatMapData(NamedTuple):
    """A measure over two factors."""

    title: str = ""
    digits: int = 3
    row_title: str = ""
    column_title: str = ""
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    cells: Mapping[tuple[int, int], MapCell] = {}


def heat_map(
    summary: studies.StudySummary, measure: studies.StudyMeasure, row: str, column: str, fixed: Mapping[str, str]
) -> HeatMapData:
    """Return a measure over two factors; `fixed` selects a value (as text) of each other one."""
    row_values, column_values = factor_values(summary, row), factor_values(summary, column)
    cells = {}
    for cell in summary.cells:
        if any(studies.format_value(cell.factors.get(name, "")) != value for name, value in fixed.items()):
            continue
        place = row_values.index(cell.factors.get(row, "")), column_values.index(cell.factors.get(column, ""))
        cells[place] = MapCell(cell.estimates.get(measure.name), cell.label)
    return HeatMapData(
        measure.name, measure.digits, row, column, tuple(map(studies.format_value, row_values)),
        tuple(map(studies.format_value, column_values)), cells,
    )  # fmt: skip


def vote_table(summary: studies.StudySummary) -> Table:
    """Return the majority of each prompt in each cell."""
    columns = [
        TableColumn(tr("cell"), is_text=True), TableColumn(tr("prompt")), TableColumn(tr("majority"), is_text=True),
        TableColumn(tr("share"), tr("Fraction of the texts that give this answer"), True),
        TableColumn(
            tr("certain"), tr("Probability that this answer, not the second one, is truly the most frequent"), True
        ),
        TableColumn(tr("right"), "", True),
    ]  # fmt: skip
    rows = []
    for cell in summary.cells:
        for prompt, vote in cell.votes.items():
            answer = tr("(no answer)") if vote.answer is None else one_line(vote.answer)
            right = "–" if vote.correct is None else tr("yes") if vote.correct == 1 else tr("no")
            right = tr("tie") if vote.correct is not None and 0 < vote.correct < 1 else right
            cells = (
                TableCell(cell.label, value=cell.label), _prompt_cell(prompt), TableCell(answer, value=answer),
                TableCell(studies.number_text(vote.share, 2), value=vote.share),
                TableCell(studies.number_text(vote.confidence, 2), value=vote.confidence),
                TableCell(right, value=vote.correct),
            )  # fmt: skip
            rows.append(TableRow((cell.label, prompt), cells))
    return columns, rows


def majority_table(summary: studies.StudySummary) -> Table:
    """Return a row per cell: fraction right by one text, and by the majority."""
    columns = [
        TableColumn(tr("cell"), is_text=True), TableColumn("pass@1", tr("Fraction of right texts"), True),
        TableColumn(tr("majority"), tr("Fraction of prompts whose most frequent answer is right"), True),
        TableColumn(tr("prompts"), "", True),
    ]  # fmt: skip
    rows = []
    for cell in summary.cells:
        first = cell.pass_at_k[0][1] if cell.pass_at_k else None
        count = cell.majority.prompts if cell.majority is not None else 0
        cells = (
            TableCell(cell.label, value=cell.label), _estimate_cell(first, 3), _estimate_cell(cell.majority, 3),
            TableCell(f"{count:,}", value=count),
        )  # fmt: skip
        rows.append(TableRow((cell.label,), cells))
    return columns, rows


# --- sentences

_UNIT = mark("The unit is the prompt: its texts are averaged first.")
_INTERVAL = mark("Intervals: 95 %, by a bootstrap over prompts, then seeds (BCa).")
_POINTS = mark("Fewer than {count} prompts: points only, no intervals.")
_HOLM = mark("p: sign flips over prompts, paired by prompt and seed; by Holm over {count} comparisons of each measure.")


def has_intervals(summary: studies.StudySummary) -> bool:
    """Return whether some mean has an interval."""
    found = (one for cell in summary.cells for one in cell.estimates.values() if one is not None)
    return any(one.low is not None for one in found)


def interval_note(summary: studies.StudySummary, shows_differences: bool = False) -> str:
    """Return how sure the shown numbers are, in one line."""
    parts = [tr(_UNIT), tr(_INTERVAL) if has_intervals(summary) else tr(_POINTS).format(count=studies.MIN_PROMPTS)]
    compared = sum(1 for cell in summary.cells if cell.differences)
    if shows_differences and compared and has_intervals(summary):
        parts.append(tr(_HOLM).format(count=compared))
    return join_sentences(*parts)


def count_text(plan: studies.StudyPlan) -> str:
    """Return the size of a study."""
    return tr(
        "{cells} cells × {prompts} prompts × {seeds} seeds = {count:,} runs; fewer where a cell is not random."
    ).format(cells=len(plan.cells), prompts=len(plan.prompts), seeds=len(plan.seeds), count=plan.run_count)


def estimate_sentences(found: studies.PilotEstimate) -> list[str]:
    """Return estimates from the runs so far: time left, and the number of prompts for intervals of a certain width."""
    return [line for line in studies.pilot_text(found).split("\n") if line]


# --- the form


class SettingRow(NamedTuple):
    """A setting of the form: one value in every cell, or several to compare."""

    name: str
    values: str


def setting_rows(table: Mapping[str, Any]) -> list[SettingRow]:
    """Return the settings and the grid of a study as rows."""
    settings, grid = sub_table(table, "settings"), sub_table(table, "grid")
    rows = [SettingRow(name, values_text([value])) for name, value in settings.items() if name not in grid]
    return rows + [SettingRow(n, values_text(v if isinstance(v, list) else [v])) for n, v in grid.items()]


def sub_table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table inside another one; empty if it is missing, or no table."""
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def values_text(values: Sequence[object]) -> str:
    """Return values as they are typed: separated by commas, simple texts without quotes."""
    return ", ".join(_value_text(value) for value in values)


def _value_text(value: object) -> str:
    if isinstance(value, str) and value and parse_values(value) == [value]:
        return value
    return studies.toml_value(value)


def parse_values(text: str) -> list[object]:
    """Return the values that were typed: those of TOML, and words without quotes."""
    try:
        return list(tomllib.loads(f"values = [{text}]")["values"])
    except (ValueError, RecursionError):
        pass
    found: list[object] = []
    for part in text.split(","):
        word = part.strip()
        try:
            found += tomllib.loads(f"values = [{word}]")["values"]
        except (ValueError, RecursionError):
            found.append(word)
    return found


Edit = tuple[tuple[str, ...], object]
"""Path of a key, and its value; None removes it."""


def setting_edits(table: Mapping[str, Any], rows: Sequence[SettingRow]) -> list[Edit]:
    """Return the changes of a study's keys for the rows of the form: one value is a setting, several are a grid."""
    wanted: dict[str, dict[str, object]] = {"settings": {}, "grid": {}}
    for row in rows:
        values = parse_values(row.values) if row.values.strip() else []
        if row.name and values:
            wanted["grid" if len(values) > 1 else "settings"][row.name] = values if len(values) > 1 else values[0]
    edits: list[Edit] = []
    for name, own in wanted.items():
        before = sub_table(table, name)
        edits += [((name, key), None) for key in before if key not in own]
        edits += [((name, key), value) for key, value in own.items() if before.get(key) != value]
    return edits


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with changed keys. Raises ValueError if it is no valid TOML."""
    for path, value in edits:
        text = studies.set_value(text, path, value)
    return text


def parse_seeds(text: str) -> object:
    """Return a number of seeds, or a list of them; None without any."""
    values = parse_values(text.strip().strip("[]")) if text.strip() else []
    return None if not values else values[0] if len(values) == 1 and "[" not in text else values
