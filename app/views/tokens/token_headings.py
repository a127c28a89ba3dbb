"""Parts around the tokens: the empty page, column headings, and chips that switch between sequences."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QRectF, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QWidget

from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme, fill_rect
from decodescope.app.theme.themed import Themed
from decodescope.app.views.shared.empty_page import TitleAndHint, paint_empty_page, title_and_hint_rects, waiting_title
from decodescope.app.views.text.column import TokenColumn
from decodescope.app.views.text.token_wording import format_token_count
from decodescope.app.views.tokens.token_columns import drawn_count
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.inputs import SpinBox
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.core import words
from decodescope.resources.language import mark, tr, trn

EMPTY_HINT = mark("Write a prompt or pick an example, then press Ctrl+Enter.")


def is_waiting(run: Run | None) -> bool:
    """Return whether a run is in progress and more tokens may come."""
    return run is not None and run.finished is None and run.outcome is None


def empty_title_and_hint(run: Run | None) -> TitleAndHint:
    """Return title and hint of the empty page."""
    waiting = waiting_title(run)
    return (waiting, "") if waiting else (tr("Every token, as it is chosen"), tr(EMPTY_HINT))


def paint_empty_token_page(painter: QPainter, area: QRect, theme: Theme, run: Run | None) -> None:
    """Paint the empty page with its hint."""
    title_and_hint = empty_title_and_hint(run)
    top = title_and_hint_rects(area, theme, title_and_hint)[0].top() - theme.px(28)
    if top > area.top():  # in a small window the text needs all the room
        _paint_sample(painter, area, top, theme)
    paint_empty_page(painter, area, theme, title_and_hint)


def _paint_sample(painter: QPainter, area: QRect, top: float, theme: Theme) -> None:
    """Paint a sample line of underlines, from certain to unlikely, as wide as there is room."""
    widths, scores = (44, 30, 58, 36, 50), (0.95, 0.8, 0.5, 0.25, 0.05)
    full_width = theme.px(sum(widths) + 4 * 5)
    scale = min(1.0, (area.width() - 32) / full_width)
    x = QRectF(area).center().x() - scale * full_width / 2
    for width, score in zip(widths, scores, strict=True):
        bar = QRectF(x, top, scale * theme.px(width), theme.scale * (3 + 4 * (1 - score)))
        fill_rect(painter, bar, theme.ramp(score))
        x += scale * theme.px(width + 5)


def sequence_status(run: Run, sequence: int) -> str:
    """Return, for example, `34 tokens · ended`."""
    count, ended = len(run.sequences[sequence].tokens), run.sequences[sequence].finished
    drawn = drawn_count(run, sequence)
    count_text = (
        trn("{drawn:,} of {count:,} token", "{drawn:,} of {count:,} tokens", count).format(drawn=drawn, count=count)
        if drawn < count
        else format_token_count(count)
    )
    return f"{count_text} · {words.ending_brief(ended)}" if ended else count_text


def paint_heading(painter: QPainter, column: TokenColumn, run: Run, theme: Theme, head: int, shown: bool) -> None:
    """Paint number and status above a column, with an accent line for the shown sequence."""
    top, number = column.top - head, str((column.sequence or 0) + 1)
    base = top + theme.px(18)
    painter.setFont(theme.font(13, 600, tabular=True))
    painter.setPen(theme.color("accent" if shown else "text"))
    painter.drawText(QPointF(column.left, base), number)
    after = column.left + QFontMetricsF(painter.font()).horizontalAdvance(number) + theme.px(8)
    painter.setFont(theme.font(12, tabular=True))
    painter.setPen(theme.color("muted"))
    room = column.left + column.width - after
    shown_status = QFontMetricsF(painter.font()).elidedText(
        sequence_status(run, column.sequence or 0), Qt.TextElideMode.ElideRight, room
    )
    painter.drawText(QPointF(after, base), shown_status)
    painter.setPen(QPen(theme.color("accent" if shown else "line"), theme.px(2) if shown else 1))
    y = top + theme.px(26)
    painter.drawLine(QPointF(column.left, y), QPointF(column.left + column.width, y))


MAX_CHIPS = 8
"""Maximum number of chips; with more sequences the user types the number."""


class SequenceChips(Themed, QWidget):
    """One chip per sequence if columns do not fit, or a number box for many sequences."""

    sequenceChosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._row = arrange(QHBoxLayout(self), margins=0, spacing=6)
        self._status_label = set_up(PlainLabel(self), role="muted")
        self.number_box = set_up(SpinBox(self), name="textNumber", accessible_name=tr("Text"))
        self.number_box.setPrefix(tr("Text "))
        self.number_box.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.number_box.valueChanged.connect(self._on_number)
        arrange(self._row, self.number_box, self._status_label, STRETCH)
        self._group = QButtonGroup(self)
        self._group.idClicked.connect(self._on_clicked)
        self.hide()

    def restyle(self, theme: Theme) -> None:
        self._row.setSpacing(theme.px(6))

    def show_run(self, run: Run | None, hidden: bool) -> None:
        """Show a chip per sequence of the run, with the shown one checked."""
        count = len(run.sequences) if run is not None and not hidden else 0
        self.setVisible(count > 1)
        if run is None or count < 2:
            return
        chips = count if count <= MAX_CHIPS else 0
        while len(self._group.buttons()) < chips:
            self._add(len(self._group.buttons()))
        for number, chip in enumerate(self._group.buttons()):
            chip.setVisible(number < chips)
        if chips:
            self._group.button(run.shown_index).setChecked(True)
        self._show_number(run.shown_index, count)
        self._status_label.setText(sequence_status(run, run.shown_index))

    def _show_number(self, shown: int, count: int) -> None:
        self.number_box.setVisible(count > MAX_CHIPS)
        with QSignalBlocker(self.number_box):
            self.number_box.setRange(1, count)
            self.number_box.setSuffix(tr(" of {count:,}").format(count=count))
            self.number_box.setValue(shown + 1)

    def _add(self, number: int) -> None:
        chip = set_up(QPushButton(str(number + 1), self), accessible_name=tr("Text {number}").format(number=number + 1))
        chip.setCheckable(True)
        chip.setProperty("role", "chip")
        chip.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._group.addButton(chip, number)
        self._row.insertWidget(number, chip)

    @Slot(int)
    def _on_number(self, number: int) -> None:
        self.sequenceChosen.emit(number - 1)

    @Slot(int)
    def _on_clicked(self, number: int) -> None:
        self.sequenceChosen.emit(number)
