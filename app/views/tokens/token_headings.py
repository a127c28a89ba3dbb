"""What stands around the tokens: the empty page, headings of columns, chips that switch between sequences."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QRectF, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QWidget

from app.state.run import Run
from app.theme.painting import fill
from app.theme.theme import Theme
from app.views.shared.empty_page import Words, laid_out, paint_empty_page, waiting_title
from app.views.text.column import Column
from app.views.text.token_wording import tokens_told
from app.views.tokens.token_columns import drawn_count
from app.widgets.inputs import SpinBox
from app.widgets.plain_text import PlainLabel
from core import words
from resources.language import mark, tr, trn

EMPTY = mark("Write a prompt or pick an example, then press Ctrl+Enter.")


def is_waiting(run: Run | None) -> bool:
    """Whether a run is under way and more may come."""
    return run is not None and run.finished is None and run.outcome is None


def empty_words(run: Run | None) -> Words:
    """Title and hint of a page with nothing on it yet."""
    waiting = waiting_title(run)
    return (waiting, "") if waiting else (tr("Every token, as it is chosen"), tr(EMPTY))


def paint_empty(painter: QPainter, area: QRect, theme: Theme, run: Run | None) -> None:
    """A page with nothing on it yet, and what to do about that."""
    told = empty_words(run)
    top = laid_out(area, theme, told)[0].top() - theme.px(28)
    if top > area.top():  # in a small window the words take all the room
        _paint_sample(painter, area, top, theme)
    paint_empty_page(painter, area, theme, told)


def _paint_sample(painter: QPainter, area: QRect, top: float, theme: Theme) -> None:
    """A line of underlines, from certain to unlikely, as wide as there is room."""
    widths, scores = (44, 30, 58, 36, 50), (0.95, 0.8, 0.5, 0.25, 0.05)
    whole = theme.px(sum(widths) + 4 * 5)
    share = min(1.0, (area.width() - 32) / whole)
    x = QRectF(area).center().x() - share * whole / 2
    for width, score in zip(widths, scores, strict=True):
        bar = QRectF(x, top, share * theme.px(width), theme.scale * (3 + 4 * (1 - score)))
        fill(painter, bar, theme.ramp(score))
        x += share * theme.px(width + 5)


def status(run: Run, sequence: int) -> str:
    """`34 tokens · ended`."""
    count, ended = len(run.sequences[sequence].tokens), run.sequences[sequence].finished
    drawn = drawn_count(run, sequence)
    told = (
        trn("{drawn:,} of {count:,} token", "{drawn:,} of {count:,} tokens", count).format(drawn=drawn, count=count)
        if drawn < count
        else tokens_told(count)
    )
    return f"{told} · {words.ending_brief(ended)}" if ended else told


def paint_heading(painter: QPainter, column: Column, run: Run, theme: Theme, head: int, shown: bool) -> None:
    """Number and state above a column; an accent line under the one that the other views show."""
    top, number = column.top - head, str((column.sequence or 0) + 1)
    base = top + theme.px(18)
    painter.setFont(theme.font(13, 600, tabular=True))
    painter.setPen(theme.color("accent" if shown else "text"))
    painter.drawText(QPointF(column.left, base), number)
    after = column.left + QFontMetricsF(painter.font()).horizontalAdvance(number) + theme.px(8)
    painter.setFont(theme.font(12, tabular=True))
    painter.setPen(theme.color("muted"))
    room = column.left + column.width - after
    told = QFontMetricsF(painter.font()).elidedText(
        status(run, column.sequence or 0), Qt.TextElideMode.ElideRight, room
    )
    painter.drawText(QPointF(after, base), told)
    painter.setPen(QPen(theme.color("accent" if shown else "line"), theme.px(2) if shown else 1))
    y = top + theme.px(26)
    painter.drawLine(QPointF(column.left, y), QPointF(column.left + column.width, y))


MOST_CHIPS = 8
"""Texts that have a button each; of more, one types the number."""


class SequenceChips(QWidget):
    """One small button a sequence, where there is no room for columns; of many sequences, their numbers."""

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(6)
        self._words = PlainLabel(self)
        self._words.setProperty("role", "muted")
        self.number = SpinBox(self)
        self.number.setObjectName("textNumber")
        self.number.setAccessibleName(tr("Text"))
        self.number.setPrefix(tr("Text "))
        self.number.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.number.valueChanged.connect(self._on_number)
        self._row.addWidget(self.number)
        self._row.addWidget(self._words)
        self._row.addStretch(1)
        self._group = QButtonGroup(self)
        self._group.idClicked.connect(self._on_clicked)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Take the theme's spacing."""
        self._row.setSpacing(theme.px(6))

    def show_run(self, run: Run | None, hidden: bool) -> None:
        """One chip for each of the run's sequences, the shown one pressed."""
        count = len(run.sequences) if run is not None and not hidden else 0
        self.setVisible(count > 1)
        if run is None or count < 2:
            return
        chips = count if count <= MOST_CHIPS else 0
        while len(self._group.buttons()) < chips:
            self._add(len(self._group.buttons()))
        for number, chip in enumerate(self._group.buttons()):
            chip.setVisible(number < chips)
        if chips:
            self._group.button(run.shown).setChecked(True)
        self._show_number(run.shown, count)
        self._words.setText(status(run, run.shown))

    def _show_number(self, shown: int, count: int) -> None:
        self.number.setVisible(count > MOST_CHIPS)
        with QSignalBlocker(self.number):
            self.number.setRange(1, count)
            self.number.setSuffix(tr(" of {count:,}").format(count=count))
            self.number.setValue(shown + 1)

    def _add(self, number: int) -> None:
        chip = QPushButton(str(number + 1), self)
        chip.setCheckable(True)
        chip.setProperty("role", "chip")
        chip.setAccessibleName(tr("Text {number}").format(number=number + 1))
        chip.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._group.addButton(chip, number)
        self._row.insertWidget(number, chip)

    @Slot(int)
    def _on_number(self, number: int) -> None:
        self.chosen.emit(number - 1)

    @Slot(int)
    def _on_clicked(self, number: int) -> None:
        self.chosen.emit(number)
