"""The parts of the compare view: what to compare, the table, the charts, the texts side by side."""

from __future__ import annotations

import html
from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QFrame,
    QGridLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QSizePolicy,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.compare.comparison import HEAD, Candidate, Comparison, cells, ids, said, state_words
from app.widgets.bars import BarRow, Bars
from app.widgets.flow_layout import FlowLayout, clear
from core import words

_TEXT = len(HEAD) - 1
_WIDTHS = (128, 76, 72, 84, 80)
"""Pixels of the columns before the last one."""
_LESS_BELOW, _SPARED = 560, (1, 4)
"""Pixels of width below which these columns make room for the texts; the exported table has them all."""
_BESIDE_FROM = 740
"""Pixels of width from which the charts stand side by side."""
_TEXT_WIDTH = 140


class Choices(QWidget):
    """A chip for everything that can be compared; what cannot is greyed, with the reason."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._flow = FlowLayout(self)
        self._candidates: tuple[Candidate, ...] = ()
        self._chips: dict[str, QPushButton] = {}
        self._wanted: dict[str, bool] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_candidates(self, candidates: Sequence[Candidate]) -> None:
        """Offer these; what the reader has chosen before stays chosen."""
        self._candidates = tuple(candidates)
        clear(self._flow)
        self._chips = {}
        for number, candidate in enumerate(candidates):
            chip = QPushButton(candidate.title, self, checkable=True, objectName=f"compare.{candidate.key}")
            chip.setProperty("role", "chip")
            chip.setChecked(not candidate.reason and self._wanted.get(candidate.key, candidate.chosen))
            chip.setEnabled(not candidate.reason and number > 0)
            chip.setToolTip(candidate.reason or candidate.summary)
            if number == 0 and not candidate.reason:
                chip.setChecked(True)
                chip.setToolTip(f"{candidate.summary}\nThe others are compared with it.")
            chip.clicked.connect(self._on_clicked)
            self._chips[candidate.key] = chip
            self._flow.addWidget(chip)
        self.updateGeometry()

    @property
    def chosen(self) -> list[Candidate]:
        """What is to be compared, in order."""
        return [candidate for candidate in self._candidates if self._chips[candidate.key].isChecked()]

    @property
    def refused(self) -> list[Candidate]:
        """What cannot be."""
        return [candidate for candidate in self._candidates if candidate.reason]

    @Slot()
    def _on_clicked(self) -> None:
        self._wanted |= {key: chip.isChecked() for key, chip in self._chips.items() if chip.isEnabled()}
        self.changed.emit()


class ResultTable(QTableWidget):
    """A row for each run, and one with the reason for each that cannot be."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, len(HEAD), parent)
        self._theme = theme_for("light")
        self.setObjectName("compareTable")
        self.setAccessibleName("Comparison")
        self.setHorizontalHeaderLabels(list(HEAD))
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # reasons span columns and must not widen them
        header.setSectionResizeMode(_TEXT, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(20)
        for column in range(len(HEAD)):
            side = Qt.AlignmentFlag.AlignRight if 0 < column < _TEXT else Qt.AlignmentFlag.AlignLeft
            self.horizontalHeaderItem(column).setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self._theme = theme
        self.setStyleSheet(
            "QTableWidget { border: 0; padding: 0; background: transparent; }"
            "QHeaderView, QHeaderView::section { background: transparent; }"
            f"QTableWidget::item, QHeaderView::section {{ padding: 0 {theme.px(6)}px; }}"
        )
        for column, width in enumerate(_WIDTHS):
            self.setColumnWidth(column, theme.px(width))
        self._fit()

    def show_rows(self, comparison: Comparison, refused: Sequence[Candidate]) -> None:
        """Fill it."""
        self.clearSpans()
        self.setRowCount(len(comparison.entries) + len(refused))
        for row, entry in enumerate(comparison.entries):
            self._put(row, 0, entry.candidate.title, "text", entry.candidate.summary)
            figures = cells(comparison, entry) if entry.state == "done" else ()
            if not figures:
                self._say(row, state_words(entry), "danger" if entry.state == "failed" else "muted")
            for column, text in enumerate(figures):
                self._put(row, column + 1, text, "muted" if column + 1 == _TEXT else "text", text)
        for row, candidate in enumerate(refused, len(comparison.entries)):
            self._put(row, 0, candidate.title, "faint", candidate.reason)
            self._say(row, candidate.reason, "faint")
        self._fit()

    def _say(self, row: int, words: str, colour: str) -> None:
        self._put(row, 1, words, colour, words, Qt.AlignmentFlag.AlignLeft)
        self.setSpan(row, 1, 1, len(HEAD) - 1)

    def _put(
        self, row: int, column: int, text: str, colour: str, tip: str, side: Qt.AlignmentFlag | None = None
    ) -> None:
        item = QTableWidgetItem(text)
        right = 0 < column < _TEXT
        side = side or (Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft)
        item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        item.setForeground(self._theme.color(colour))
        item.setFont(self._theme.font(12, tabular=True))
        item.setToolTip(tip)
        self.setItem(row, column, item)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a narrow view fewer figures, but always how the texts compare."""
        super().resizeEvent(event)
        self._spare()

    def _spare(self) -> None:
        narrow = self.width() < self._theme.px(_LESS_BELOW)
        for column in _SPARED:
            self.setColumnHidden(column, narrow)

    def _fit(self) -> None:
        """As high as its rows: the page scrolls, not the table."""
        self._spare()
        height = self._theme.px(26)
        self.verticalHeader().setDefaultSectionSize(height)
        for row in range(self.rowCount()):
            self.setRowHeight(row, height)
        self.setFixedHeight(self.horizontalHeader().sizeHint().height() + height * self.rowCount() + 2)


class Charts(QWidget):
    """Three charts of bars side by side: peak bytes, tokens a second, time to the first token."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self.bars: list[Bars] = []
        for title in ("Peak bytes", "Tokens a second", "Time to first token"):
            label = QLabel(title.upper(), self)
            bars = Bars(theme_for("light"), title, self, whole_labels=True)
            label.setProperty("role", "heading")
            label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
            column = QVBoxLayout()
            column.addWidget(label)
            column.addWidget(bars)
            column.addStretch(1)
            self._row.addLayout(column, 1)
            self.bars.append(bars)

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self._theme = theme
        self._row.setSpacing(theme.px(28))
        for bars in self.bars:
            bars.set_theme(theme)
        self._turn()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Below each other where it gets narrow."""
        super().resizeEvent(event)
        self._turn()

    def _turn(self) -> None:
        wide = self.width() >= self._theme.px(_BESIDE_FROM)
        self._row.setDirection(QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom)

    def minimumSizeHint(self) -> QSize:
        """One chart wide."""
        return QSize(self._theme.px(160), super().minimumSizeHint().height())

    def show_rows(self, comparison: Comparison) -> None:
        """A bar for every result."""
        done = [(entry.candidate, run.finished.metrics) for entry, run in comparison.runs if run.finished is not None]
        for bars, value, told in (
            (self.bars[0], lambda m: float(m.cache_peak_bytes), lambda v: words.size(round(v))),
            (self.bars[1], lambda m: m.decode_tokens_per_second or 0.0, words.rate),
            (self.bars[2], lambda m: m.time_to_first_token or 0.0, words.duration),
        ):
            sizes = [value(metrics) for _, metrics in done]
            top = max(sizes, default=0.0) or 1.0
            rows = [
                BarRow(candidate.short, (size / top,), (told(size),), tip=f"{candidate.title}: {told(size)}")
                for (candidate, _), size in zip(done, sizes, strict=True)
            ]
            bars.set_rows(rows, widest="999 tok/s")


class TextCards(QWidget):
    """The texts side by side; where one parts from the first it is marked."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._columns: list[QWidget] = []
        self.texts: list[QLabel] = []

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes; texts are written anew."""
        self._theme = theme
        self._grid.setSpacing(theme.px(20))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """As many beside each other as there is room for."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        beside = max(1, min(len(self._columns), self.width() // self._theme.px(_TEXT_WIDTH)))
        for number, column in enumerate(self._columns):
            self._grid.addWidget(column, number // beside, number % beside)
        for number in range(max(self._grid.columnCount(), beside)):
            self._grid.setColumnStretch(number, 1 if number < beside else 0)

    def minimumSizeHint(self) -> QSize:
        """One text wide."""
        return QSize(self._theme.px(_TEXT_WIDTH), super().minimumSizeHint().height())

    def show_texts(self, comparison: Comparison) -> None:
        """A column for every result."""
        clear(self._grid)
        self.texts, self._columns = [], []
        for entry, run in comparison.runs:
            column = QWidget(self)
            inner = QVBoxLayout(column)
            inner.setContentsMargins(0, 0, 0, 0)
            inner.setSpacing(self._theme.px(6))
            for text, role in ((entry.candidate.title.upper(), "heading"), (said(comparison, entry), "muted")):
                label = QLabel(text, column, wordWrap=True)
                label.setTextFormat(Qt.TextFormat.PlainText)
                label.setProperty("role", role)
                inner.addWidget(label)
            label = QLabel(marked_text(comparison.reference, run, self._theme), column, wordWrap=True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            label.setAlignment(Qt.AlignmentFlag.AlignTop)
            inner.addWidget(label, 1)
            self.texts.append(label)
            self._columns.append(column)
        self._arrange()


def marked_text(reference: Run | None, run: Run, theme: Theme) -> str:
    """The text as rich text: what it shares with the reference is muted, the token that parts them is marked."""
    tokens = run.sequences[0].tokens
    size = f"font-size: {theme.px(14)}px;"
    if reference is None or reference is run:
        return f'<p style="{size} line-height: 140%;">{_escaped(run.sequences[0].text)}</p>'
    own, other = ids(run), ids(reference)
    place = next((n for n, (a, b) in enumerate(zip(own, other, strict=False)) if a != b), min(len(own), len(other)))
    before, at, after = ("".join(token.text for token in part) for part in
                         (tokens[:place], tokens[place : place + 1], tokens[place + 1 :]))  # fmt: skip
    mark = f'<span style="background: {theme.selection}; color: {theme.text};">{_escaped(at)}</span>' if at else ""
    return (
        f'<p style="{size} line-height: 140%;"><span style="color: {theme.muted};">{_escaped(before)}</span>'
        f"{mark}{_escaped(after)}</p>"
    )


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br>")
