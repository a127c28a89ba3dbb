"""The page “How likely is that?”: a pattern on the left; bounds, sentences and beginnings of answers on the right."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QSizePolicy,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.likelihood.view.bounds_bar import BoundsBar
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.inputs import ComboBox, ScrollArea, SpinBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.core.likelihood import (
    AnswerPrefix,
    PatternProbability,
    ProbabilityBounds,
    TextPattern,
    bounds_text,
    explain_pattern,
    probability_text,
)
from decodescope.resources.language import mark, tr, trn

COLUMN_WIDTH = 260
"""Width of the settings in pixels at 100 %."""
_TEXT, _CHOICE, _EXPRESSION = range(3)
_KINDS = (mark("A text"), mark("One of several lines"), mark("A regular expression"))
_PLACES = (
    ("begins", mark("The answer begins with it")), ("contains", mark("The answer contains it")),
    ("full", mark("The whole answer is it")),
)  # fmt: skip
_TOLERANCES = ((0.01, mark("1 %")), (0.001, mark("0.1 %")), (0.0001, mark("0.01 %")), (0.05, mark("5 %")))
_INTRODUCTION = mark(
    "Computes the probability that the answer matches a text or a pattern, without drawing answers: the likeliest "
    "beginnings are followed until both bounds meet. Prompt, model and settings are those of the window."
)
_ITEMS_SHOWN = 300
_LINES = 4


class SettingsPanel(Themed, ScrollArea):
    """A scrolling column of settings of fixed width."""

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(ScrollArea.Shape.NoFrame)
        self.setAccessibleName(name)
        self.page = QWidget(self)
        self.column = arrange(QVBoxLayout(self.page), margins=(0, 0, 12, 0), spacing=4)
        self.setWidget(self.page)

    def sizeHint(self) -> QSize:
        return QSize(self.width(), self.page.sizeHint().height())

    def restyle(self, theme: Theme) -> None:
        self.setFixedWidth(theme.px(COLUMN_WIDTH))
        self.updateGeometry()

    def beside(self, button: QPushButton) -> QVBoxLayout:
        """Return the column with a button below, which stays visible."""
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Maximum)
        row = arrange(QHBoxLayout(), button, margins=(0, 0, 12, 0))  # as wide as the editors above
        column = arrange(QVBoxLayout(), self, row, margins=0, spacing=12)
        column.addStretch(0)
        return column

    def add(self, title: str, editor: QWidget, name: str) -> None:
        """Add an editor under its title."""
        label = set_up(PlainLabel(title, self.page), role="muted")
        label.setBuddy(editor)
        set_up(editor, name=name, accessible_name=title)
        arrange(self.column, label, editor)
        self.column.addSpacing(8)

    def combo(self, items: Sequence[tuple[object, str]]) -> ComboBox:
        """Return a combo box of (value, title) that is not wider than the column."""
        combo = ComboBox(self.page)
        combo.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(8)
        for value, title in items:
            combo.addItem(tr(title), value)
        return combo


class PrefixTree(Themed, QTreeWidget):
    """Beginnings of answers as a tree; a beginning is a child of the longest one that it continues."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setColumnCount(4)
        self.setHeaderLabels([tr("Beginning of the answer"), tr("Probability"), tr("Matches"), tr("Undecided")])
        set_up(self, name="likelihoodTree", accessible_name=tr("Beginnings of answers"))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.header().setSectionsMovable(False)
        self.header().setStretchLastSection(False)
        for column in range(4):
            mode = QHeaderView.ResizeMode.Stretch if column == 0 else QHeaderView.ResizeMode.Fixed
            self.header().setSectionResizeMode(column, mode)
            side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
            self.headerItem().setTextAlignment(column, side | Qt.AlignmentFlag.AlignVCenter)

    def restyle(self, theme: Theme) -> None:
        for column in range(1, 4):
            self.setColumnWidth(column, theme.px(104))
        self.setMinimumHeight(theme.px(180))
        self._colour()

    def show_rows(self, rows: Sequence[AnswerPrefix]) -> None:
        """Show the likeliest beginnings."""
        limit = sorted((row.probability for row in rows), reverse=True)[:_ITEMS_SHOWN][-1:]
        kept = [row for row in rows if row.probability >= (limit[0] if limit else 0.0)]
        closed = {item.data(0, Qt.ItemDataRole.UserRole) for item in self._items() if not item.isExpanded()}
        self.setUpdatesEnabled(False)
        self.clear()
        path: list[tuple[str, QTreeWidgetItem]] = []
        made: dict[int, list[tuple[float, QTreeWidgetItem]]] = {}
        for row in kept:
            while path and not row.text.startswith(path[-1][0]):
                path.pop()
            before = path[-1][0] if path else ""
            shares = (row.probability, row.matching, row.undecided)
            item = QTreeWidgetItem([_shown(row, before), *map(probability_text, shares)])
            item.setData(0, Qt.ItemDataRole.UserRole, row.text)
            item.setToolTip(0, _tooltip(row))
            for column in range(1, 4):
                item.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            made.setdefault(id(path[-1][1]) if path else 0, []).append((row.probability, item))
            path.append((row.text, item))
        self._attach(None, made)
        for item in self._items():
            item.setExpanded(item.data(0, Qt.ItemDataRole.UserRole) not in closed)
        self._colour()
        self.setUpdatesEnabled(True)

    def _attach(self, parent: QTreeWidgetItem | None, made: dict[int, list[tuple[float, QTreeWidgetItem]]]) -> None:
        for _, item in sorted(made.get(id(parent) if parent is not None else 0, []), key=lambda one: -one[0]):
            if parent is None:
                self.addTopLevelItem(item)
            else:
                parent.addChild(item)
            self._attach(item, made)

    def _items(self) -> list[QTreeWidgetItem]:
        found: list[QTreeWidgetItem] = []
        for place in range(self.topLevelItemCount()):
            if (top := self.topLevelItem(place)) is not None:
                found.append(top)
        for item in found:  # grows meanwhile
            for place in range(item.childCount()):
                if (child := item.child(place)) is not None:
                    found.append(child)
        return found

    def _colour(self) -> None:
        for item in self._items():
            matches = not item.text(2).startswith("0")
            item.setForeground(2, self._theme.ink("kept" if matches else "muted"))
            item.setForeground(3, self._theme.color("muted"))


def _shown(row: AnswerPrefix, before: str) -> str:
    """Return what a beginning adds to the one above it, with visible white space at its ends."""
    text = row.text.removeprefix(before).replace("\n", "↵")
    text = "␣" * (len(text) - len(text.lstrip(" "))) + text.lstrip(" ")
    text = text.rstrip(" ") + "␣" * (len(text) - len(text.rstrip(" ")))
    return f"{text} ■" if row.is_answer else text


def _tooltip(row: AnswerPrefix) -> str:
    text = trn("{count:,} token sequence spells it", "{count:,} token sequences spell it", row.spellings)
    text = f"“{row.text}”\n{text.format(count=row.spellings)}"
    return tooltip(tr("{text}; answers end here (■)").format(text=text) if row.is_answer else text)


class PatternPage(QFrame):
    """Emits `startWanted(patterns, tolerance, maximum)` and `stopWanted`."""

    startWanted = Signal(object, float, int)
    stopWanted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        set_up(self, role="panel")
        self.settings = settings = SettingsPanel(tr("What to look for"), self)
        self.kind = settings.combo([(number, title) for number, title in enumerate(_KINDS)])
        self.pattern = ExactTextEdit(settings.page)
        self.pattern.setTabChangesFocus(True)
        self.place = settings.combo(_PLACES)
        self.ignore_case = QCheckBox(caption(tr("Ignore case")), settings.page)
        self.tolerance = settings.combo(_TOLERANCES)
        self.limit = SpinBox(settings.page)
        self.limit.setRange(1, 1_000_000)
        self.limit.setSingleStep(1000)
        self.limit.setValue(4000)
        self.button = set_up(QPushButton(self), name="likelihoodStart", role="primary", clicked=self._on_pressed)
        self.button.setAutoDefault(False)
        settings.add(tr("Pattern"), self.kind, "likelihoodKind")
        settings.add(tr("Text"), self.pattern, "likelihoodPattern")
        settings.column.addWidget(set_up(self.ignore_case, name="likelihoodCase"))
        settings.column.addSpacing(8)
        settings.add(tr("Where"), self.place, "likelihoodPlace")
        settings.add(tr("Stop when the gap is below"), self.tolerance, "likelihoodTolerance")
        settings.add(tr("Maximum number of beginnings"), self.limit, "likelihoodLimit")
        self.headline = set_up(PlainLabel("", self), role="title", name="likelihoodBounds")
        self.bar, self.tree = BoundsBar(self), PrefixTree(self)
        self.sentences = set_up(WrappedLabel(tr(_INTRODUCTION), self), name="likelihoodSentences")
        self.sentences.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.problem = set_up(WrappedLabel("", self), role="danger", name="likelihoodProblem")
        content = QWidget(self)
        shown = QVBoxLayout(content)
        arrange(
            shown, self.headline, self.bar, self.sentences, self.problem, (self.tree, 1), margins=(0, 0, 8, 0),
            spacing=10,
        )  # fmt: skip
        scroll = set_up(ScrollArea(self), accessible_name=tr("Result"))
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(ScrollArea.Shape.NoFrame)
        scroll.setWidget(content)
        arrange(QHBoxLayout(self), settings.beside(self.button), (scroll, 1), margins=0, spacing=20)
        self.pattern.textChanged.connect(self._update)
        self._is_running = False
        for part in (self.headline, self.bar, self.tree, self.problem):
            part.hide()
        shown.addStretch(0)  # takes the room only while the tree is hidden
        self.show_running(False)

    @property
    def patterns(self) -> tuple[TextPattern, ...]:
        """The patterns of the editors."""
        text, kind = self.pattern.toPlainText(), self.kind.currentData()
        parts = [line for line in text.split("\n") if line] if kind == _CHOICE else [text] if text else []
        options = (self.place.currentData(), kind == _EXPRESSION, self.ignore_case.isChecked())
        return tuple(TextPattern(part, *options) for part in parts)

    def show_running(self, on: bool) -> None:
        """Lock the settings and turn the button into Stop while a search is running."""
        self._is_running = on
        self.button.setText(caption(tr("Stop") if on else tr("Compute")))
        for part in (self.kind, self.pattern, self.ignore_case, self.place, self.tolerance, self.limit):
            part.setEnabled(not on)
        self._update()

    def show_stopping(self) -> None:
        """Show that stopping is in progress."""
        self.button.setText(caption(tr("Stopping…")))
        self.button.setEnabled(False)

    def show_start(self) -> None:
        """Show that a search has begun."""
        self._show_bounds(ProbabilityBounds(0.0, 1.0))
        self.tree.clear()
        self.problem.hide()
        self.sentences.setText(tr("Reading the prompt…"))
        self.show_running(True)

    def show_result(self, found: PatternProbability, has_ended: bool) -> None:
        """Show bounds, sentences and beginnings, so far or at the end."""
        self._show_bounds(found.any_bounds)
        self.tree.show_rows(found)
        self.tree.setVisible(bool(len(found)))
        lines = explain_pattern(found) if has_ended else explain_pattern(found)[:-1]
        self.sentences.setText("\n".join(lines))

    def show_problem(self, text: str) -> None:
        """Show why there is no result."""
        self.problem.setText(text)
        self.problem.setVisible(bool(text))
        self.sentences.setText(tr(_INTRODUCTION))
        for part in (self.headline, self.bar, self.tree):
            part.hide()

    def restyle_editor(self) -> None:
        """Set the height of the editor to a few lines."""
        self.pattern.ensurePolished()
        self.pattern.setFixedHeight((_LINES + 1) * self.pattern.fontMetrics().lineSpacing())

    def _show_bounds(self, bounds: ProbabilityBounds) -> None:
        self.headline.setText(bounds_text(bounds))
        self.bar.show_bounds(bounds)
        for part in (self.headline, self.bar, self.tree):
            part.show()

    @Slot()
    def _update(self) -> None:
        self.button.setEnabled(self._is_running or bool(self.patterns))

    @Slot()
    def _on_pressed(self) -> None:
        if self._is_running:
            self.show_stopping()
            self.stopWanted.emit()
        else:
            self.startWanted.emit(self.patterns, self.tolerance.currentData(), self.limit.value())
