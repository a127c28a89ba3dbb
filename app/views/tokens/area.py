"""The page of tokens: columns of text that scroll, painted row by row."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.state.run import Run
from app.theme.painting import fill
from app.theme.theme import Theme
from app.views.text.arcs import paint_repeats
from app.views.text.column import Column
from app.views.text.row_painting import PaintOptions, paint_rows
from app.views.tokens.marks import take_marks
from app.views.tokens.text_selection import TextChoice
from app.views.tokens.token_columns import TokenColumns
from app.views.tokens.token_headings import paint_empty, paint_heading
from app.widgets.accessibility import AccessiblePart, AccessibleText, AccessibleWidget, Role
from app.widgets.hover_area import HoverArea

_LINE = 24
"""Pixels at 100 % that are left for the text, however low the window is."""


class TokenArea(HoverArea, AccessibleWidget):
    """Draws `page` as `look` says, and scrolls. Keys go on to the view around it."""

    arranged = Signal()
    """Columns, scroll bar and look have followed the run, or the room."""
    focused = Signal()
    """The keyboard has come here."""
    tokenPicked = Signal(int)
    """A screen reader has gone to that token."""
    spoken_role = Role.EditableText

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("tokenArea")
        self.look, self.page, self.choice = PaintOptions(theme), TokenColumns(theme), TextChoice()
        self._place: tuple[int, int] | None = None
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setViewport(QWidget())  # Qt's own would have Python learn every kind of widget, to find out which it is
        self.viewport().setMouseTracking(True)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    @property
    def run(self) -> Run | None:
        """The run that is drawn."""
        return self.page.run

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes; `arrange` comes next."""
        self.look.theme = theme
        self.page.restyle(theme)
        self.verticalScrollBar().setSingleStep(theme.px(35))
        self.setMinimumHeight(theme.px(_LINE))  # by itself it claims the height of a scroll bar's buttons and handle

    # Following the run

    def show_run(self, run: Run | None) -> None:
        """Another run from its beginning; `arrange` comes next."""
        self.choice.begin(None, 0)
        self.left.emit()
        self.page.update(None, 0)
        self.page.run = run

    def grow(self, run: Run) -> None:
        """Add what was written, and paint no more than that where nothing else has changed."""
        top, place = self.page.unsettled(), _view_state(self)
        self.page.run = run
        self.arrange(repaint=False)
        if top and place == _view_state(self) and run.beams is None:
            changed = QRectF(0, top, self.viewport().width(), self.page.height + self.viewport().height())
            self.viewport().update(self.from_page(changed).adjusted(-self.padding.x(), 0, 0, 0))
        else:
            self.viewport().update()

    def follow_cursor(self, run: Run) -> None:
        """Draw up to the cursor, and keep that place in sight; another sequence is shown where it stands."""
        moved_in_same = self._place is not None and self._place[0] == run.shown and self._place[1] != run.cursor
        self.page.run = run
        self.arrange()
        column = self.page.shown()
        if column is not None and run.cursor and moved_in_same:
            top = column.row_top(max(0, column.drawn_rows - 1))
            self.reveal(top, column.metrics.row, around=self.viewport().height() // 4)

    def reveal_selected(self, run: Run) -> None:
        """Outline the selected token, and keep it in sight."""
        self.page.run = run
        self.arrange()
        boxes = self.page.boxes(run.selected)
        if boxes:
            self.reveal(boxes[0].top(), boxes[-1].bottom() - boxes[0].top())

    def arrange(self, repaint: bool = True) -> None:
        """Bring the page and the scroll bar up to the run; who reads at the end stays at the end."""
        run, bar = self.run, self.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 2
        pad, height = self.padding, self.viewport().height()
        self.page.update(run, self.viewport().width() - 2 * pad.x())
        take_marks(self.look, run)
        self._place = (run.shown, run.cursor) if run else None
        bar.setPageStep(height)
        bar.setRange(0, max(0, round(self.page.height) + 2 * pad.y() - height) if run else 0)
        if at_end and run is not None and run.following:
            bar.setValue(bar.maximum())
        self.arranged.emit()
        if repaint:
            self.viewport().update()

    # Places

    @property
    def padding(self) -> QPoint:
        """Between the edges and the page."""
        return QPoint(self.look.theme.px(26), self.look.theme.px(20))

    def to_page(self, point: QPoint | QPointF) -> QPointF:
        """A place of the viewport in the page's own measure."""
        pad = self.padding
        return QPointF(point.x() - pad.x(), point.y() - pad.y() + self.verticalScrollBar().value())

    def from_page(self, rect: QRectF) -> QRect:
        """A stretch of the page in the viewport."""
        pad = self.padding
        return rect.translated(pad.x(), pad.y() - self.verticalScrollBar().value()).toAlignedRect()

    def token_rect(self, token: int) -> QRect:
        """Where a token of the shown sequence is drawn first, in the viewport; empty when it is not."""
        boxes = self.page.boxes(token)
        return self.from_page(boxes[0]) if boxes else QRect()

    def reveal(self, top: float, height: float, around: int = 0) -> None:
        """Scroll no further than needed for that stretch of the page to be seen, with some room `around` it."""
        bar, pad = self.verticalScrollBar(), self.padding.y()
        low, high = round(top + height + 2 * pad - self.viewport().height()) + around, round(top) - around
        bar.setValue(max(min(bar.value(), high), low) if low <= high else high)

    # For screen readers

    def spoken_parts(self) -> Sequence[AccessiblePart]:
        """The drawn tokens."""
        from app.views.tokens.accessible_text import TokenParts

        return TokenParts(self)

    def spoken_focus(self) -> int | None:
        """The selected token."""
        return self.run.selected if self.run is not None else None

    def spoken_text(self) -> AccessibleText:
        """What is drawn, as a text."""
        from app.views.tokens.accessible_text import passage

        return passage(self)

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the rows in sight."""
        painter = QPainter(self.viewport())
        fill(painter, event.rect(), self.look.theme.color("window"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self.page.has_text:
            paint_empty(painter, self.viewport().rect(), self.look.theme, self.run)
            return
        corner = self.to_page(event.rect().topLeft())
        top, bottom = corner.y(), corner.y() + event.rect().height()
        painter.translate(-self.to_page(QPointF(0, 0)))
        for column in self.page.all_columns():
            _paint_column(painter, self, column, (top, bottom))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Break the rows anew."""
        super().resizeEvent(event)
        self.arrange()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The keyboard has come here."""
        super().focusInEvent(event)
        self.focused.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The view's: nothing scrolls by itself."""
        event.ignore()


def _view_state(area: TokenArea) -> tuple[object, ...]:
    """What must be as it was for a part of the page to be painted alone."""
    run = area.run
    shown = run.shown if run is not None else None
    return id(run), shown, area.verticalScrollBar().value(), area.viewport().size(), area.page.side_by_side


def _paint_column(painter: QPainter, area: TokenArea, column: Column, sight: tuple[float, float]) -> None:
    """A column's heading and its rows in `sight` (top and bottom); marks belong to the shown sequence alone."""
    run, look, page = area.run, area.look, area.page
    shown = run is not None and column.sequence == run.shown
    if run is not None and page.side_by_side and column is not page.prompt:
        paint_heading(painter, column, run, look.theme, page.head, shown)
    look.selection = area.choice.in_column(column)
    selected, hovered, changed = look.selected, look.hovered, look.changed
    if not shown:
        look.selected, look.hovered, look.changed = None, None, frozenset()
    paint_rows(painter, column, look, *sight)
    if look.selected is not None and look.repeats:
        paint_repeats(painter, column, look.theme, look.selected, look.repeats)
    look.selected, look.hovered, look.changed = selected, hovered, changed
