"""The page “Which settings wrote this?”: a text on the left; sentences, curve, map and marked tokens on the right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QFont, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QPushButton, QTextEdit, QVBoxLayout, QWidget

from decodescope.app.features.likelihood.session import AUTOMATIC, CHAT, PLAIN, WITHOUT_START
from decodescope.app.features.likelihood.view.pattern_page import SettingsPanel
from decodescope.app.features.likelihood.view.posterior_map import PosteriorMap
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.inputs import ComboBox, DoubleSpinBox, ScrollArea
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption
from decodescope.app.widgets.plots import PlotArea, PlotAxis, PlotLine, PlotPanel, PlotSpec
from decodescope.app.widgets.text_documents import ExactTextEdit, document_text
from decodescope.core.likelihood import (
    OFF,
    SETTINGS,
    PosteriorProgress,
    SettingPosterior,
    TokenEvidence,
    explain_posterior,
    probability_text,
    setting_name,
    value_text,
)
from decodescope.resources.language import mark, tr

_READINGS = (
    (AUTOMATIC, mark("Find out")), (PLAIN, mark("As text")), (WITHOUT_START, mark("As text, without start token")),
    (CHAT, mark("As the message of a chat")),
)  # fmt: skip
_ORDERS = (
    ("temperature_first", mark("Temperature first")),
    ("temperature_last", mark("Temperature last (llama.cpp)")),
)
_INTRODUCTION = mark(
    "Finds the temperature, top-k, top-p and min-p with which the selected model wrote a text, as far as the text can "
    "tell. Enter the text and what preceded it, or take the run that is shown."
)
_LINES, _PROMPT_LINES = 6, 3
_CURVE_HEIGHT = 220


class Mark(NamedTuple):
    """A choice of tokens to mark."""

    title: str
    select: Callable[[SettingPosterior], list[TokenEvidence]]


def _forbidding(setting: str, value: float) -> Callable[[SettingPosterior], list[TokenEvidence]]:
    return lambda found: found.forbidding(setting, value)


_MARKS = (
    Mark(mark("Tokens that forbid greedy decoding"), _forbidding("top_k", 1)),
    Mark(mark("Tokens that forbid top-k 10"), _forbidding("top_k", 10)),
    Mark(mark("Tokens that forbid top-k 40"), _forbidding("top_k", 40)),
    Mark(mark("Tokens that forbid top-p 0.8"), _forbidding("top_p", 0.8)),
    Mark(mark("Tokens that forbid top-p 0.95"), _forbidding("top_p", 0.95)),
    Mark(mark("Tokens that forbid min-p 0.05"), _forbidding("min_p", 0.05)),
    Mark(mark("Tokens that forbid min-p 0.1"), _forbidding("min_p", 0.1)),
    Mark(mark("Tokens that no setting explains"), lambda found: found.unexplained),
)


class JudgedText(Themed, ExactTextEdit):
    """The judged text with marked tokens. `described(text)`: the description of the token at the cursor."""

    described = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        set_up(self, name="posteriorText", accessible_name=tr("Judged text"))
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._tokens: Sequence[TokenEvidence] = ()
        self._marked: frozenset[int] = frozenset()
        self._starts: list[int] = []
        self.cursorPositionChanged.connect(self._describe)

    def show_tokens(self, tokens: Sequence[TokenEvidence]) -> None:
        """Show a text."""
        self._tokens, self._starts, length = tokens, [], 0
        for token in tokens:
            self._starts.append(length)
            length += _length(token.text)
        self.setPlainText("".join(token.text for token in tokens))

    def mark(self, marked: frozenset[int]) -> None:
        """Mark the tokens at these positions."""
        self._marked = marked
        selections = []
        for position in sorted(marked):
            cursor = QTextCursor(self.document())
            cursor.setPosition(self._starts[position])
            cursor.setPosition(
                self._starts[position] + _length(self._tokens[position].text), QTextCursor.MoveMode.KeepAnchor
            )
            selection = QTextEdit.ExtraSelection()
            selection.cursor = cursor
            selection.format = self._format()
            selections.append(selection)
        self.setExtraSelections(selections)

    def restyle(self, theme: Theme) -> None:
        self.setMinimumHeight(theme.px(140))
        self.mark(self._marked)

    def _format(self) -> QTextCharFormat:
        found = QTextCharFormat()
        found.setBackground(self._theme.color("refused", 0.22))
        found.setFontUnderline(True)
        found.setUnderlineColor(self._theme.color("refused"))
        found.setFontWeight(QFont.Weight.DemiBold)
        return found

    @Slot()
    def _describe(self) -> None:
        place = self.textCursor().position()
        index = max((number for number, start in enumerate(self._starts) if start <= place), default=-1)
        if index >= 0 and self._tokens:
            self.described.emit(token_sentence(self._tokens[index]))


def _length(text: str) -> int:
    """Return the length of a text in a document, in UTF-16 units."""
    return len(document_text(text).encode("utf-16-le", "surrogatepass")) // 2


def token_sentence(token: TokenEvidence) -> str:
    """Return the evidence of a token about the settings."""
    return tr(
        "“{text}” was number {rank} with {probability}. It forbids top-k below {rank}, top-p up to {mass:.3f} and "
        "min-p above {ratio:.3f}."
    ).format(
        text=token.text.replace("\n", "↵"), rank=token.rank, probability=probability_text(token.probability),
        mass=token.mass_before, ratio=token.ratio,
    )  # fmt: skip


class PosteriorPage(Themed, QFrame):
    """Emits `startWanted`, `stopWanted` and `takeRunWanted`."""

    startWanted = Signal()
    stopWanted = Signal()
    takeRunWanted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        set_up(self, role="panel")
        self.settings = settings = SettingsPanel(tr("Text to judge"), self)
        self.take = set_up(QPushButton(caption(tr("Take the shown run")), settings.page), name="posteriorTake")
        self.take.setAutoDefault(False)
        self.take.clicked.connect(self.takeRunWanted)
        self.text, self.prompt = ExactTextEdit(settings.page), ExactTextEdit(settings.page)
        for editor in (self.text, self.prompt):
            editor.setTabChangesFocus(True)
            editor.textChanged.connect(self._on_edited)
        self.reading, self.order = settings.combo(_READINGS), settings.combo(_ORDERS)
        self.penalty = DoubleSpinBox(settings.page)
        self.penalty.setRange(0.5, 3.0)
        self.penalty.setSingleStep(0.05)
        self.penalty.setValue(1.0)
        self.button = set_up(QPushButton(self), name="posteriorStart", role="primary", clicked=self._on_pressed)
        self.button.setAutoDefault(False)
        self.exact = set_up(WrappedLabel("", settings.page), role="muted")
        settings.column.addWidget(self.take)
        settings.column.addSpacing(8)
        settings.add(tr("Text"), self.text, "posteriorInput")
        settings.add(tr("What preceded it"), self.prompt, "posteriorPrompt")
        settings.column.addWidget(self.exact)
        settings.add(tr("How it was read"), self.reading, "posteriorReading")
        settings.add(tr("Order of the settings"), self.order, "posteriorOrder")
        settings.add(tr("Repetition penalty, if known"), self.penalty, "posteriorPenalty")
        self.ids: tuple[int, ...] = ()
        """Tokens of a run that was taken; empty after the text was edited."""
        self.prompt_ids: tuple[int, ...] = ()
        self._is_filling, self._is_running = False, False
        self.found: SettingPosterior | None = None
        self._build_results()
        self.show_running(False)

    def _build_results(self) -> None:
        self.bar = set_up(QProgressBar(self), accessible_name=tr("Progress"))
        self.bar.setTextVisible(False)
        self.sentences = set_up(WrappedLabel(tr(_INTRODUCTION), self), name="posteriorSentences")
        self.sentences.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.problem = set_up(WrappedLabel("", self), role="danger", name="posteriorProblem")
        self.curve = PlotPanel(tr("Posterior of the temperature"), self, min_size=(200, 150))
        self.map = PosteriorMap(self)
        self.first, self.second = self._setting_combo("posteriorFirst", 0), self._setting_combo("posteriorSecond", 2)
        self.cell = set_up(PlainLabel("", self), role="muted", name="posteriorCell")
        self.map.described.connect(self.cell.setText)
        self.tokens = JudgedText(self)
        self.marks = set_up(ComboBox(self), name="posteriorMarks", accessible_name=tr("Marked tokens"))
        for number, one in enumerate(_MARKS):
            self.marks.addItem(tr(one.title), number)
        self.token = set_up(WrappedLabel("", self), role="muted", name="posteriorToken")
        self.tokens.described.connect(self.token.setText)
        self.marks.currentIndexChanged.connect(self._show_marks)
        heads = [set_up(PlainLabel(text, self), role="heading") for text in (
            tr("Temperature").upper(), tr("Two settings").upper(), tr("Text").upper(),
        )]  # fmt: skip
        chosen = arrange(QHBoxLayout(), heads[1], STRETCH, self.first, self.second, spacing=8)
        above = arrange(QHBoxLayout(), heads[2], STRETCH, self.marks, spacing=8)
        content = QWidget(self)
        arrange(
            QVBoxLayout(content), self.problem, self.bar, self.sentences, heads[0], self.curve, chosen, self.map,
            self.cell, above, (self.tokens, 1), self.token, STRETCH, margins=(0, 0, 8, 0), spacing=10,
        )  # fmt: skip
        self._results: list[QWidget] = [
            *heads, self.curve, self.first, self.second, self.map, self.cell, self.marks, self.tokens, self.token,
        ]  # fmt: skip
        scroll = set_up(ScrollArea(self), accessible_name=tr("Result"))
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(ScrollArea.Shape.NoFrame)
        scroll.setWidget(content)
        arrange(QHBoxLayout(self), self.settings.beside(self.button), (scroll, 1), margins=0, spacing=20)
        for part in (*self._results, self.problem, self.bar):
            part.hide()

    def _setting_combo(self, name: str, index: int) -> ComboBox:
        combo = set_up(ComboBox(self), name=name, accessible_name=tr("Setting of the map"))
        for setting in SETTINGS:
            combo.addItem(setting_name(setting), setting)
        combo.setCurrentIndex(index)
        combo.currentIndexChanged.connect(self._show_map)
        return combo

    def restyle(self, theme: Theme) -> None:
        for editor, lines in ((self.text, _LINES), (self.prompt, _PROMPT_LINES)):
            editor.ensurePolished()
            editor.setFixedHeight((lines + 1) * editor.fontMetrics().lineSpacing())
        self.curve.setFixedHeight(theme.px(_CURVE_HEIGHT))

    def fill(self, text: str, prompt: str, ids: tuple[int, ...], prompt_ids: tuple[int, ...]) -> None:
        """Fill the editors from a run; its tokens are used as long as the text is not edited."""
        self._is_filling = True
        self.text.setPlainText(text)
        self.prompt.setPlainText(prompt)
        self._is_filling = False
        self.ids, self.prompt_ids = ids, prompt_ids
        self._update()

    def show_running(self, on: bool) -> None:
        """Lock the settings and turn the button into Stop while it is computed."""
        self._is_running = on
        self.button.setText(caption(tr("Stop") if on else tr("Find the settings")))
        for part in (self.text, self.prompt, self.order, self.penalty, self.take):
            part.setEnabled(not on)
        self.bar.setVisible(on)
        self._update()

    def show_stopping(self) -> None:
        """Show that stopping is in progress."""
        self.button.setText(caption(tr("Stopping…")))
        self.button.setEnabled(False)

    def show_start(self) -> None:
        """Show that the work has begun."""
        self.problem.hide()
        self.bar.setRange(0, 0)
        self.show_running(True)

    def show_progress(self, progress: PosteriorProgress) -> None:
        """Show the progress."""
        self.bar.setRange(0, progress.total)
        self.bar.setValue(progress.done)

    def show_problem(self, text: str) -> None:
        """Show why there is no result."""
        self.problem.setText(text)
        self.problem.setVisible(bool(text))

    def show_result(self, found: SettingPosterior) -> None:
        """Show a posterior."""
        self.found = found
        lines = explain_posterior(found)
        if found.readings:
            titles = dict(_READINGS)
            lines.append(
                tr("The text follows this reading of the prompt best: {reading}.").format(
                    reading=tr(titles.get(found.readings[0].name, found.readings[0].name))
                )
            )
        self.sentences.setText("\n".join(lines))
        for part in self._results:
            part.show()
        self.curve.show_figure(temperature_plot(found))
        self._show_map()
        self.tokens.show_tokens(found)
        self._show_marks()
        self.token.setText(tr("Click a word to see which settings it forbids."))

    @Slot()
    def _show_map(self) -> None:
        if self.found is None:
            return
        first, second = self.first.currentData(), self.second.currentData()
        if first == second:
            other = next(place for place, setting in enumerate(SETTINGS) if setting != first)
            self.second.setCurrentIndex(other)  # calls this again
            return
        values, labels = self.found.joint(first, second), []
        for axis, setting in enumerate((first, second)):
            own = list(enumerate(self.found.grids[setting]))
            own.sort(key=lambda pair: _strength(setting, pair[1]))
            values = values.take([place for place, _ in own], axis)
            labels.append([value_text(setting, value) for _, value in own])
        self.map.show_values(values, (setting_name(first), setting_name(second)), (labels[0], labels[1]))

    @Slot()
    def _show_marks(self) -> None:
        if self.found is not None:
            chosen = _MARKS[self.marks.currentData()].select(self.found)
            self.tokens.mark(frozenset(one.position for one in chosen))

    @Slot()
    def _on_edited(self) -> None:
        if not self._is_filling:
            self.ids = self.prompt_ids = ()
            self._update()

    def _update(self) -> None:
        self.button.setEnabled(self._is_running or bool(self.ids or self.text.toPlainText()))
        self.reading.setEnabled(not self._is_running and not self.prompt_ids)
        self.exact.setText(
            tr("The exact tokens of the run are used.") if self.ids else tr("The text is divided into tokens again.")
        )

    @Slot()
    def _on_pressed(self) -> None:
        if self._is_running:
            self.show_stopping()
            self.stopWanted.emit()
        else:
            self.startWanted.emit()


def _strength(setting: str, value: float) -> float:
    """Return the sort key of a value: the ones that cut more come first, off last."""
    if setting == "temperature":
        return value
    if setting == "min_p":
        return -value
    return value if value != OFF[setting] else float("inf")


def temperature_plot(found: SettingPosterior) -> PlotSpec:
    """Return the posterior density of the temperature, with the 90 % set filled."""
    rows = zip(found.grids["temperature"], found.density, found.edges, found.edges[1:], strict=False)
    density = [(value, probability / (high - low)) for value, probability, low, high in rows]
    inside = tuple(height if found.contains_temperature(value) else 0.0 for value, height in density)
    return PlotSpec(
        PlotAxis(tr("temperature"), format_value=lambda value: f"{value:.2f}"),
        PlotAxis(tr("density"), format_value=lambda value: f"{value:.1f}"),
        xs=tuple(value for value, _ in density),
        areas=(PlotArea(tr("90 % of the probability"), "kept", inside),),
        lines=(PlotLine(tr("posterior density"), "accent", tuple(density)),),
    )
