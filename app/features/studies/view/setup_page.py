"""The page that sets a study up: a form on the left, the same study as TOML text on the right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QTextCursor, QTextFormat
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSplitter,
    QTextEdit,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.studies import state
from decodescope.app.features.studies.state import Edit, SettingRow
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed, inherit_theme
from decodescope.app.widgets.building import STRETCH, Gap, arrange, set_up, show_text
from decodescope.app.widgets.file_dialogs import open_file_dialog
from decodescope.app.widgets.flow_layout import FlowRow, clear_layout
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.inputs import ComboBox, ScrollArea, SpinBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.app.widgets.screen import available_rect
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.core import caches, strategies, studies
from decodescope.core.errors import StudyError
from decodescope.resources.language import mark, tr, trn

TYPING_MS = 350
"""Time after the last letter until a text is used."""
FORM_WIDTH, MIN_FORM_WIDTH, MIN_TEXT_WIDTH = 420, 330, 260
"""Widths in pixels at 100 %."""
PROMPT_KINDS = mark("Prompts (*.txt *.csv *.tsv *.jsonl)")
_PLAIN_MEASURES = (
    "length", "words", "log_probability", "entropy", "distinct_1", "distinct_2", "distinct_3", "distinct_1_adjusted",
    "repetition", "self_bleu", "exact_match", "contains_answer", "json", "seconds", "first_token_seconds",
    "tokens_per_second", "tokens_per_pass", "cache_bytes", "cache_peak_bytes",
)  # fmt: skip
WRITTEN, FILE = "written", "file"


class ComboItem(NamedTuple):
    """An item of a combo box."""

    title: str
    value: str


def setting_choices() -> list[ComboItem]:
    """Return the settings of all strategies, the strategy first."""
    found = {"strategy": tr("Strategy")}
    for strategy in strategies.registry.values():
        for parameter in strategy.parameters:
            found.setdefault(parameter.name, tr(parameter.title))
    first = [ComboItem(f"{found.pop('strategy')} (strategy)", "strategy")]
    return first + sorted(ComboItem(f"{label} ({name})", name) for name, label in found.items())


def example_values(name: str) -> str:
    """Return values that show how a setting is written."""
    if name == "strategy":
        return ", ".join(list(strategies.registry)[:2])
    for strategy in strategies.registry.values():
        for parameter in strategy.parameters:
            if parameter.name == name and parameter.default is not None:
                return state.values_text([parameter.default])
    return ""


def _fill(combo: QComboBox, choices: Sequence[ComboItem], value: str) -> None:
    """Fill a combo box and select a value, added if it is not among the choices."""
    combo.blockSignals(True)
    combo.clear()
    for choice in choices:
        combo.addItem(choice.title, choice.value)
    if combo.findData(value) < 0:
        combo.insertItem(0, value or tr("Choose…"), value)
    combo.setCurrentIndex(combo.findData(value))
    combo.blockSignals(False)


def _combo(parent: QWidget, name: str) -> ComboBox:
    combo = set_up(ComboBox(parent), accessible_name=name)
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    combo.setMinimumContentsLength(9)
    return combo


class ChoiceRows(QWidget):
    """Rows of a choice, each with a text field if `has_text`, that can be added and removed. `changed`: the user
    changed a row.
    """

    changed = Signal()

    def __init__(
        self, name: str, title: str, add_title: str, choices: Callable[[], Sequence[ComboItem]], parent: QWidget,
        has_text: bool = False, hint: Callable[[str], str] = lambda _value: "",
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self.setObjectName(name)
        self._title, self._choices, self._has_text, self._hint = title, choices, has_text, hint
        self._rows: list[tuple[QWidget, ComboBox, QLineEdit | None]] = []
        self._lines = arrange(QVBoxLayout(), margins=0, spacing=6)
        self.add_button = set_up(QPushButton(caption(add_title), self), name=f"{name}Add", role="quiet")
        self.add_button.setAutoDefault(False)
        self.add_button.clicked.connect(self._on_add)
        arrange(
            QVBoxLayout(self), self._lines, arrange(QHBoxLayout(), self.add_button, STRETCH, margins=0), margins=0,
            spacing=4,
        )  # fmt: skip

    @property
    def rows(self) -> list[tuple[str, str]]:
        """(choice, text) of all rows, also of incomplete ones."""
        return [
            (str(combo.currentData() or ""), field.text() if field is not None else "")
            for _row, combo, field in self._rows
        ]

    def show_rows(self, rows: Sequence[tuple[str, str]]) -> None:
        """Show these rows; incomplete ones stay as long as the others are the same."""
        complete = [row for row in self.rows if row[0] and (row[1].strip() or not self._has_text)]
        same = [(name, state.values_text(state.parse_values(text))) for name, text in complete]
        if self._has_text and same == [(name, state.values_text(state.parse_values(text))) for name, text in rows]:
            return
        if not self._has_text and complete == list(rows):
            return
        clear_layout(self._lines)
        self._rows = []
        for name, text in rows:
            self._add(name, text)

    def refill(self) -> None:
        """Fill the combo boxes again, as the choices have changed."""
        for _row, combo, _field in self._rows:
            _fill(combo, self._choices(), str(combo.currentData() or ""))

    def _add(self, value: str, text: str) -> ComboBox:
        row = QWidget(self)
        number = len(self._rows) + 1
        combo = _combo(row, f"{self._title} {number}")
        _fill(combo, self._choices(), value)
        field: QLineEdit | None = None
        remove = IconButton("close", tr("Remove: {name}").format(name=f"{self._title} {number}"), row)
        if self._has_text:
            field = set_up(QLineEdit(text, row), accessible_name=tr("Values: {name}").format(name=combo.currentText()))
            field.setPlaceholderText(self._hint(value))
            field.editingFinished.connect(self.changed)
            arrange(QHBoxLayout(row), (combo, 3), (field, 2), remove, margins=0, spacing=6)
        else:
            arrange(QHBoxLayout(row), (combo, 1), remove, margins=0, spacing=6)
        combo.activated.connect(partial(self._on_chosen, combo, field))
        remove.clicked.connect(partial(self._remove, row))
        self._rows.append((row, combo, field))
        self._lines.addWidget(row)
        inherit_theme(row)
        return combo

    def _on_chosen(self, combo: ComboBox, field: QLineEdit | None, _index: int) -> None:
        if field is not None:
            field.setPlaceholderText(self._hint(str(combo.currentData() or "")))
        self.changed.emit()

    @Slot()
    def _on_add(self) -> None:
        self._add("", "").setFocus()

    def _remove(self, row: QWidget) -> None:
        kept = [one for one in self._rows if one[0] is not row]
        if len(kept) < len(self._rows):
            self._rows = kept
            self._lines.removeWidget(row)
            row.hide()
            row.deleteLater()
            self.changed.emit()


class StudyForm(ScrollArea):
    """The form. `edited(list of edits)`: keys of the study that the user changed."""

    edited = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="studyForm", accessible_name=tr("Study as a form"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._table: Mapping[str, Any] = {}
        self._models: list[ComboItem] = []
        self._folder = Path()
        self._typing = QTimer(self, interval=TYPING_MS, singleShot=True)
        self._typing.timeout.connect(self._on_typed)
        self.page = QWidget(self)
        self.column = arrange(QVBoxLayout(self.page), margins=(0, 0, 14, 8), spacing=4)
        self._add_prompts()
        self._add_settings()
        self._add_models()
        self._add_measures()
        self._add_comparison()
        self.column.addStretch(1)
        self.setWidget(self.page)

    # --- the parts

    def _heading(self, text: str) -> None:
        if self.column.count():
            self.column.addSpacing(14)
        self.column.addWidget(set_up(PlainLabel(text.upper(), self.page), role="heading"))

    def _labelled(self, text: str, widget: QWidget, name: str) -> None:
        set_up(widget, name=name, accessible_name=text)
        label = set_up(PlainLabel(text, self.page), role="muted")
        label.setBuddy(widget)
        label.setWordWrap(True)
        arrange(self.column, Gap(4), label, widget)

    def _note(self) -> WrappedLabel:
        label = set_up(WrappedLabel("", self.page), role="muted")
        self.column.addWidget(label)
        return label

    def _line(self, path: tuple[str, ...], hint: str = "") -> QLineEdit:
        field = QLineEdit(self.page)
        field.setPlaceholderText(hint)
        field.editingFinished.connect(lambda: self._emit([(path, field.text() or None)]))
        return field

    def _add_prompts(self) -> None:
        from decodescope.app.widgets.buttons import SegmentedControl

        self._heading(tr("Prompts"))
        self.source = SegmentedControl(
            ((WRITTEN, tr("Written here")), (FILE, tr("From a file"))), tr("Source of the prompts"), self.page
        )
        self.source.chosen.connect(self._on_source)
        arrange(self.column, arrange(QHBoxLayout(), self.source, STRETCH, margins=0))
        self.texts = set_up(
            ExactTextEdit(self.page), name="studyPrompts", accessible_name=tr("Prompts, one on each line")
        )
        self.texts.setPlaceholderText(tr("One prompt on each line"))
        self.texts.setTabChangesFocus(True)
        self.texts.textChanged.connect(self._typing.start)
        self.file = set_up(QLineEdit(self.page), name="studyPromptFile", accessible_name=tr("File of prompts"))
        self.file.setPlaceholderText(".txt, .csv, .jsonl")
        self.file.editingFinished.connect(lambda: self._emit_file(self.file.text()))
        self.choose_file = set_up(QPushButton(tr("Choose…"), self.page), name="studyChooseFile")
        self.choose_file.setAutoDefault(False)
        self.choose_file.clicked.connect(self._on_choose_file)
        self.file_row = QWidget(self.page)
        arrange(QHBoxLayout(self.file_row), (self.file, 1), self.choose_file, margins=0, spacing=6)
        arrange(self.column, self.texts, self.file_row)
        self.prompt_note = self._note()
        self.template = self._line(("prompts", "template"), "{prompt}")
        self._labelled(tr("Template with {variables}"), self.template, "studyTemplate")
        self.variables = self._note()
        self.answer = _combo(self.page, "")
        self.answer.activated.connect(
            lambda _: self._emit([(("prompts", "answer"), self.answer.currentData() or None)])
        )
        self._labelled(tr("Column with right answers"), self.answer, "studyAnswer")
        self.pattern = self._line(("answers", "pattern"), r"(\d+)")
        self._labelled(tr("Answer in a text: last match of a regular expression"), self.pattern, "studyPattern")
        self.ignore_case = QCheckBox(tr("Ignore upper and lower case"), self.page)
        self.ignore_case.clicked.connect(lambda on: self._emit([(("answers", "ignore_case"), True if on else None)]))
        self.chat = set_up(QCheckBox(tr("Send each prompt as a chat message"), self.page), name="studyChat")
        self.chat.clicked.connect(lambda on: self._emit([(("prompts", "chat"), True if on else None)]))
        arrange(self.column, Gap(4), self.ignore_case, self.chat)
        self.system = self._line(("prompts", "system"))
        self._labelled(tr("System prompt"), self.system, "studySystem")

    def _add_settings(self) -> None:
        self._heading(tr("Settings"))
        note = self._note()
        note.setText(tr("One value: in every cell. Several, separated by commas: every combination is a cell."))
        self.settings = ChoiceRows(
            "studySettings", tr("Setting"), tr("Add a setting"), setting_choices, self.page, True, example_values
        )
        self.settings.changed.connect(self._on_settings)
        self.column.addWidget(self.settings)
        self.cells_note = self._note()
        self.seeds = QLineEdit(self.page)
        self.seeds.setPlaceholderText("4")
        self.seeds.editingFinished.connect(lambda: self._emit([(("seeds",), state.parse_seeds(self.seeds.text()))]))
        self._labelled(tr("Seeds: their number, or a list"), self.seeds, "studySeeds")

    def _add_models(self) -> None:
        self._heading(tr("Models and caches"))
        self.models = ChoiceRows("studyModels", tr("Model"), tr("Add a model"), lambda: self._models, self.page)
        self.models.changed.connect(self._on_models)
        self.models_note = self._note()
        arrange(self.column, self.models)
        self.engines = ExactTextEdit(self.page)
        self.engines.setPlaceholderText("http://192.168.1.20:8000/v1")
        self.engines.setTabChangesFocus(True)
        self.engines.textChanged.connect(self._typing.start)
        self._labelled(tr("Engines that serve one model, an address on each line"), self.engines, "studyEngines")
        self.in_flight = SpinBox(self.page)
        self.in_flight.setRange(1, 256)
        self.in_flight.valueChanged.connect(lambda value: self._emit([(("in_flight",), value)]))
        self._labelled(tr("Requests to each engine at a time"), self.in_flight, "studyInFlight")
        choices = [ComboItem(tr(one.title), name) for name, one in caches.registry.items()]
        self.caches = ChoiceRows("studyCaches", tr("Cache"), tr("Add a cache"), lambda: choices, self.page)
        self.caches.changed.connect(self._on_caches)
        arrange(self.column, Gap(4), set_up(PlainLabel(tr("Caches"), self.page), role="muted"), self.caches)

    def _add_measures(self) -> None:
        self._heading(tr("Measures"))
        flow = FlowRow(self.page, 6)
        self.measures: dict[str, QPushButton] = {}
        plugins = [name for name in studies.measure_names() if name not in _PLAIN_MEASURES and name != "regex"]
        for name in (*_PLAIN_MEASURES, *plugins):
            chip = set_up(QPushButton(caption(name), flow), name=f"studyMeasure.{name}", role="chip")
            chip.setToolTip(tooltip(_measure_help(name)))
            chip.setCheckable(True)
            chip.setAutoDefault(False)
            chip.clicked.connect(self._on_measures)
            flow.flow.addWidget(chip)
            self.measures[name] = chip
        arrange(self.column, Gap(2), flow)
        self.judge = _combo(self.page, "")
        self.judge.activated.connect(self._on_measures)
        self._labelled(tr("Log-probability under another model as well"), self.judge, "studyJudge")
        self.regex = QLineEdit(self.page)
        self.regex.setPlaceholderText("\\.$")
        self.regex.editingFinished.connect(self._on_measures)
        self._labelled(tr("Texts that match a regular expression"), self.regex, "studyRegex")
        self.measures_note = self._note()

    def _add_comparison(self) -> None:
        self._heading(tr("Comparison"))
        self.baseline = _combo(self.page, "")
        self.baseline.activated.connect(self._on_baseline)
        self._labelled(tr("Compare with the cell"), self.baseline, "studyBaseline")
        self.best_of = _combo(self.page, "")
        self.best_of.activated.connect(lambda _: self._emit([(("best_of",), self.best_of.currentData() or None)]))
        self._labelled(tr("Best of k texts by"), self.best_of, "studyBestOf")

    # --- showing a study

    def show_models(self, models: Sequence[ComboItem]) -> None:
        """Offer these models."""
        if list(models) != self._models:
            self._models = list(models)
            self.models.refill()
            _fill(self.judge, [ComboItem(tr("None"), ""), *self._models], str(self.judge.currentData() or ""))

    def show_table(self, table: Mapping[str, Any], folder: Path) -> None:
        """Show the keys of a study; its file is in `folder`."""
        self._table, self._folder = table, folder
        self._show_prompts(state.sub_table(table, "prompts"))
        answers = state.sub_table(table, "answers")
        _set_line(self.pattern, answers.get("pattern"))
        self.ignore_case.setChecked(answers.get("ignore_case") is True)
        self.settings.show_rows([(row.name, row.values) for row in state.setting_rows(table)])
        cells = table.get("cells")
        count = len(cells) if isinstance(cells, list) else 0
        show_text(
            self.cells_note,
            trn("{count} cell is listed in the text.", "{count} cells are listed in the text.", count).format(
                count=count
            )
            if count
            else "",
        )
        seeds = table.get("seeds")
        _set_line(
            self.seeds, None if seeds is None else state.values_text(seeds if isinstance(seeds, list) else [seeds])
        )
        self._show_models(table)
        self._show_measures(table.get("measures"))

    def show_plan(self, plan: studies.StudyPlan) -> None:
        """Offer the columns, cells and measures of a valid study."""
        columns = list(dict.fromkeys(name for prompt in plan.prompts[:200] for name in prompt.variables))
        has_columns = columns != ["prompt"]
        listed = " ".join(f"{{{name}}}" for name in columns[:12])
        show_text(self.variables, tr("Variables: {names}").format(names=listed) if columns else "")
        wanted = str(state.sub_table(self._table, "prompts").get("answer") or "")
        _fill(self.answer, [ComboItem(tr("None, or “answer”"), ""), *(ComboItem(one, one) for one in columns)], wanted)
        self.answer.setEnabled(has_columns)
        cells = [ComboItem(cell.label, cell.label) for cell in plan.cells]
        label = plan.cells[plan.baseline].label if plan.baseline is not None else ""
        _fill(self.baseline, [ComboItem(tr("None"), ""), *cells], label)
        self.baseline.setEnabled(len(cells) > 1)
        self._cells = {cell.label: dict(cell.factors) for cell in plan.cells}
        names = [ComboItem(tr("None"), ""), *(ComboItem(one.name, one.name) for one in plan.measures)]
        _fill(self.best_of, names, plan.best_of)
        self.best_of.setEnabled(any(prompt.answers for prompt in plan.prompts))

    _cells: Mapping[str, Mapping[str, object]] = {}

    def _show_prompts(self, prompts: Mapping[str, Any]) -> None:
        is_file = "file" in prompts
        texts = prompts.get("texts")
        lines = [one for one in texts if isinstance(one, str)] if isinstance(texts, list) else []
        is_multiline = any("\n" in one for one in lines)
        items = prompts.get("items")
        note = ""
        if isinstance(items, list):
            note = trn(
                "{count} prompt with variables is listed in the text.",
                "{count} prompts with variables are listed in the text.", len(items),
            ).format(count=len(items))  # fmt: skip
        elif is_multiline:
            note = tr("Prompts with line breaks are edited in the text.")
        self.source.set_value(FILE if is_file else WRITTEN)
        self.texts.setVisible(not is_file and not note)
        self.file_row.setVisible(is_file)
        show_text(self.prompt_note, note)
        shown = [line for line in self.texts.toPlainText().split("\n") if line.strip()]
        if shown != lines and not is_multiline:
            self._set_text(self.texts, "\n".join(lines))
        _set_line(self.file, prompts.get("file"))
        _set_line(self.template, prompts.get("template"))
        self.template.setEnabled("templates" not in prompts)
        self.chat.setChecked(prompts.get("chat") is True)
        _set_line(self.system, prompts.get("system"))
        self.system.setEnabled(self.chat.isChecked())

    def _show_models(self, table: Mapping[str, Any]) -> None:
        models = table.get("models")
        listed = models if isinstance(models, list) else [] if "engines" in table else ["storyteller"]
        plain = [one for one in listed if isinstance(one, str)]
        self.models.show_rows([(one, "") for one in plain])
        more = len(listed) - len(plain)
        show_text(
            self.models_note,
            trn(
                "{count} model with options is listed in the text.",
                "{count} models with options are listed in the text.", more,
            ).format(count=more) if more else "",
        )  # fmt: skip
        engines = table.get("engines")
        addresses = [str(one) for one in engines] if isinstance(engines, list) else []
        if [line.strip() for line in self.engines.toPlainText().split("\n") if line.strip()] != addresses:
            self._set_text(self.engines, "\n".join(addresses))
        in_flight = table.get("in_flight", 4)
        self.in_flight.blockSignals(True)
        self.in_flight.setValue(in_flight if isinstance(in_flight, int) else 4)
        self.in_flight.blockSignals(False)
        self.in_flight.setEnabled(bool(addresses) or more > 0)
        given = table.get("caches")
        self.caches.show_rows([(one, "") for one in given if isinstance(one, str)] if isinstance(given, list) else [])

    def _show_measures(self, given: object) -> None:
        names = [] if isinstance(given, list) else [one.name for one in _usual_measures(self._table)]
        listed = given if isinstance(given, list) else names
        plain = {one for one in listed if isinstance(one, str)}
        tables = [one for one in listed if isinstance(one, dict)]
        for name, chip in self.measures.items():
            chip.setChecked(name in plain)
        judge = next((one.get("model") for one in tables if _is_judge(one)), "")
        _fill(self.judge, [ComboItem(tr("None"), ""), *self._models], str(judge or ""))
        pattern = next((one.get("pattern") for one in tables if _is_regex(one)), None)
        _set_line(self.regex, pattern)
        more = sum(not _is_judge(one) and not _is_regex(one) for one in tables)
        show_text(
            self.measures_note,
            trn(
                "{count} measure with options is listed in the text.",
                "{count} measures with options are listed in the text.", more,
            ).format(count=more) if more else "",
        )  # fmt: skip

    def restyle(self, theme: Theme) -> None:
        """Set the heights of the text fields."""
        line = self.texts.fontMetrics().lineSpacing()
        self.texts.setFixedHeight(line * 8 + theme.px(22))
        self.engines.setFixedHeight(line * 3 + theme.px(22))

    def _set_text(self, field: ExactTextEdit, text: str) -> None:
        field.blockSignals(True)
        field.setPlainText(text)
        field.blockSignals(False)

    # --- edits

    def _emit(self, edits: Sequence[Edit]) -> None:
        changed = [(path, value) for path, value in edits if _value_at(self._table, path) != value]
        if changed:
            self.edited.emit(changed)

    @Slot(str)
    def _on_source(self, source: str) -> None:
        if source == FILE:
            self.texts.hide()
            self.file_row.show()
            self._on_choose_file()
        else:
            lines = [line for line in self.texts.toPlainText().split("\n") if line.strip()] or ["Once upon a time"]
            self._emit([(("prompts", "file"), None), (("prompts", "items"), None), (("prompts", "texts"), lines)])

    @Slot()
    def _on_choose_file(self) -> None:
        open_file_dialog(self, tr("File of prompts"), tr(PROMPT_KINDS), self._emit_file)

    def _emit_file(self, path: str) -> None:
        """Use a file of prompts, by a path relative to the study if it is in the same folder."""
        if not path:
            return
        chosen = Path(path)
        if chosen.is_absolute() and chosen.is_relative_to(self._folder):
            chosen = chosen.relative_to(self._folder)
        name = chosen.as_posix()
        self._emit([(("prompts", "texts"), None), (("prompts", "items"), None), (("prompts", "file"), name)])

    @Slot()
    def _on_typed(self) -> None:
        edits: list[Edit] = []
        prompts = state.sub_table(self._table, "prompts")
        if self.texts.isVisibleTo(self) and "file" not in prompts and "items" not in prompts:
            lines = [line for line in self.texts.toPlainText().split("\n") if line.strip()]
            edits.append((("prompts", "texts"), lines))
        addresses = [line.strip() for line in self.engines.toPlainText().split("\n") if line.strip()]
        edits.append((("engines",), addresses or None))
        if addresses and "engines" not in self._table and self._table.get("models") == ["storyteller"]:
            edits.append((("models",), None))  # the engines take the place of the usual model
        self._emit(edits)

    @Slot()
    def _on_settings(self) -> None:
        rows = [SettingRow(name, values) for name, values in self.settings.rows]
        self._emit(state.setting_edits(self._table, rows))

    @Slot()
    def _on_models(self) -> None:
        given = self._table.get("models")
        tables = [one for one in given if not isinstance(one, str)] if isinstance(given, list) else []
        names = list(dict.fromkeys(name for name, _text in self.models.rows if name))
        if not names and not tables and "engines" not in self._table:
            self.models.show_rows([("storyteller", "")])  # a study has at least one
            names = ["storyteller"]
        self._emit([(("models",), [*names, *tables] or None)])

    @Slot()
    def _on_caches(self) -> None:
        given = self._table.get("caches")
        tables = [one for one in given if not isinstance(one, str)] if isinstance(given, list) else []
        names = list(dict.fromkeys(name for name, _text in self.caches.rows if name))
        self._emit([(("caches",), [*names, *tables] or None)])

    @Slot()
    def _on_measures(self) -> None:
        given = self._table.get("measures")
        tables = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
        others = [one for one in tables if not _is_judge(one) and not _is_regex(one)]
        chosen: list[object] = [name for name, chip in self.measures.items() if chip.isChecked()]
        if judge := str(self.judge.currentData() or ""):
            before = next((one for one in tables if _is_judge(one)), {})
            chosen.append({**before, "name": "log_probability", "model": judge})
        if self.regex.text():
            before = next((one for one in tables if _is_regex(one)), {})
            chosen.append({**before, "name": "regex", "pattern": self.regex.text()})
        self._emit([(("measures",), [*chosen, *others])])

    @Slot()
    def _on_baseline(self) -> None:
        self._emit([(("baseline",), dict(self._cells.get(str(self.baseline.currentData()), {})) or None)])


def _usual_measures(table: Mapping[str, Any]) -> Sequence[studies.StudyMeasure]:
    return studies.default_measures(False)


def _measure_help(name: str) -> str:
    try:
        return studies.make_measure({"name": name}).help
    except StudyError as error:
        return str(error)


def _is_judge(table: Mapping[str, Any]) -> bool:
    return table.get("name") == "log_probability" and "model" in table


def _is_regex(table: Mapping[str, Any]) -> bool:
    return table.get("name") == "regex"


def _value_at(table: Mapping[str, Any], path: Sequence[str]) -> object:
    found: object = table
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _set_line(field: QLineEdit, value: object) -> None:
    """Show a value, unless the field has it already: typing must not move the cursor."""
    text = value if isinstance(value, str) else ""
    if field.text() != text:
        field.setText(text)


class SetupPage(Themed, QWidget):
    """Form and text of a study. `textEdited(str)`: the user typed in the text; `edited(edits)`: in the form."""

    textEdited = Signal(str)
    edited = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form = StudyForm(self)
        self.form.edited.connect(self.edited)
        self.editor = set_up(
            ExactTextEdit(self), name="studyText", role="code", accessible_name=tr("Study as TOML text")
        )
        self.editor.setLineWrapMode(ExactTextEdit.LineWrapMode.NoWrap)
        self.editor.setTabChangesFocus(True)
        self._typing = QTimer(self, interval=TYPING_MS, singleShot=True)
        self._typing.timeout.connect(self._on_typed)
        self.editor.textChanged.connect(self._typing.start)
        self.problem = set_up(WrappedLabel("", self), name="studyProblem", role="danger")
        self.problem.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.size_label = set_up(WrappedLabel("", self), name="studySize", role="muted")
        self.go_to = set_up(QPushButton("", self), name="studyGoToLine", role="quiet")
        self.go_to.setAutoDefault(False)
        self.go_to.clicked.connect(self._on_go_to)
        self._line = 0
        right = QWidget(self)
        heading = set_up(PlainLabel(tr("The study as text").upper(), right), role="heading")
        arrange(
            QVBoxLayout(right), heading, (self.editor, 1), self.size_label, self.problem,
            arrange(QHBoxLayout(), self.go_to, STRETCH, margins=0), margins=(14, 0, 0, 0), spacing=6,
        )  # fmt: skip
        self.splitter = QSplitter(Qt.Orientation.Horizontal, self)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.addWidget(self.form)
        self.splitter.addWidget(right)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.handle(1).setAccessibleName(tr("Width of the form"))
        arrange(QVBoxLayout(self), (self.splitter, 1), margins=0)
        self.show_problem("", 0)

    def restyle(self, theme: Theme) -> None:
        self.form.restyle(theme)
        half = available_rect(self).width() * 2 // 5
        self.form.setMinimumWidth(min(theme.px(MIN_FORM_WIDTH), half))
        self.editor.setMinimumWidth(min(theme.px(MIN_TEXT_WIDTH), half))
        if self.splitter.sizes()[0] < theme.px(MIN_FORM_WIDTH) or not self.isVisible():
            self.splitter.setSizes([theme.px(FORM_WIDTH), theme.px(10 * FORM_WIDTH)])

    def show_text(self, text: str) -> None:
        """Show another text; undo restores the old one."""
        if self.editor.toPlainText() != text:
            self._typing.stop()
            self.editor.blockSignals(True)
            place = self.editor.verticalScrollBar().value()
            self.editor.replace_text(text)
            self.editor.verticalScrollBar().setValue(place)
            self.editor.blockSignals(False)

    def show_table(self, table: Mapping[str, Any] | None, folder: Path) -> None:
        """Show the study in the form; None, as the text is no valid TOML, disables it."""
        self.form.page.setEnabled(table is not None)
        if table is not None:
            self.form.show_table(table, folder)

    def show_plan(self, plan: studies.StudyPlan) -> None:
        """Show the size of a valid study, and offer its parts in the form."""
        self.form.show_plan(plan)
        self.size_label.setText(state.count_text(plan))
        self.show_problem("", 0)

    def show_problem(self, text: str, line: int) -> None:
        """Show why the text is no study, and mark the line (from 1; 0 for none)."""
        self._line = line if 0 < line <= self.editor.blockCount() else 0
        show_text(self.problem, text)
        self.size_label.setVisible(not text)
        self.go_to.setVisible(bool(self._line))
        self.go_to.setText(tr("Go to line {line}").format(line=self._line))
        self._mark_line()

    def _mark_line(self) -> None:
        marks = []
        if self._line:
            found = QTextEdit.ExtraSelection()
            found.cursor = QTextCursor(self.editor.document().findBlockByNumber(self._line - 1))
            found.format.setBackground(QColor(self._theme.danger_tint))
            found.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
            marks.append(found)
        self.editor.setExtraSelections(marks)

    @Slot()
    def _on_go_to(self) -> None:
        if self._line:
            self.editor.setTextCursor(QTextCursor(self.editor.document().findBlockByNumber(self._line - 1)))
            self.editor.setFocus()

    @Slot()
    def _on_typed(self) -> None:
        self.textEdited.emit(self.editor.toPlainText())

    def flush(self) -> None:
        """Use what was typed last at once."""
        for timer, use in ((self._typing, self._on_typed), (self.form._typing, self.form._on_typed)):
            if timer.isActive():
                timer.stop()
                use()
