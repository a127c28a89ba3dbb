"""Scrollable page of tokens: columns of text, painted row by row."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme, fill_rect
from decodescope.app.theme.themed import Themed
from decodescope.app.views.text.column import TokenColumn
from decodescope.app.views.text.row_painting import PaintOptions, paint_rows
from decodescope.app.views.text.token_decorations import blocked_repeats, paint_repeats
from decodescope.app.views.tokens.token_columns import TextSelection, TokenColumns
from decodescope.app.views.tokens.token_headings import is_waiting, paint_empty_token_page, paint_heading
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleText, AccessibleWidget, Role
from decodescope.app.widgets.popover import HoverArea


def apply_run_to_options(options: PaintOptions, run: Run | None) -> None:
    """Set the marks of `options` from the run; clear them if there is no run."""
    options.selected = run.selected if run else None
    lately = run is not None and (is_waiting(run) or not run.is_following)
    options.newest = run.cursor - 1 if run and lately and run.cursor else None
    options.hovered = None if run is None else options.hovered
    chosen = run.tokens[run.selected] if run and run.selected is not None and run.selected < len(run.tokens) else None
    options.repeats = blocked_repeats(chosen)
    options.lead_changes = frozenset(run.leader_changes) if run else frozenset()
    options.divergences = {one.step: one.divergence for one in run.comparisons} if run is not None else {}
    options.branch_position = run.request.shared_tokens if run is not None and run.request.is_branch else None


_MIN_TEXT_HEIGHT = 24
"""Minimum height of the text in pixels at 100 %, however low the window is."""


class TokenArea(Themed, HoverArea, AccessibleWidget):
    """Draws `page` with `paint_options` and scrolls it. Key presses are left to the surrounding view."""

    arranged = Signal()
    """Emitted after columns, scroll bar and paint options were updated."""
    focusReceived = Signal()
    """Emitted when the area receives the keyboard focus."""
    tokenPicked = Signal(int)
    """Emitted when a screen reader moves to a token."""
    accessible_role = Role.EditableText

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("tokenArea")
        self.paint_options, self.page, self.selection = PaintOptions(theme), TokenColumns(theme), TextSelection()
        self._last_position: tuple[int, int] | None = None
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setViewport(QWidget())  # Qt's own viewport would make PySide load all widget classes to identify it
        self.viewport().setMouseTracking(True)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    @property
    def run(self) -> Run | None:
        """The drawn run."""
        return self.page.run

    def restyle(self, theme: Theme) -> None:
        self.paint_options.theme = theme
        self.page.restyle(theme)
        self.verticalScrollBar().setSingleStep(theme.px(35))
        self.setMinimumHeight(
            theme.px(_MIN_TEXT_HEIGHT)
        )  # the default minimum is the height of a scroll bar's buttons and handle

    # Following the run

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; the caller then calls `arrange`."""
        self.selection.start(None, 0)
        self.hoverEnded.emit()
        self.page.update(None, 0)
        self.page.run = run

    def show_new_tokens(self, run: Run) -> None:
        """Add new tokens, and repaint only their part of the page if nothing else changed."""
        top, state = self.page.first_changing_y(), _view_state(self)
        self.page.run = run
        self.arrange(repaint=False)
        if top and state == _view_state(self) and run.beams is None:
            changed = QRectF(0, top, self.viewport().width(), self.page.height + self.viewport().height())
            self.viewport().update(self.from_page(changed).adjusted(-self.padding.x(), 0, 0, 0))
        else:
            self.viewport().update()

    def follow_cursor(self, run: Run) -> None:
        """Draw up to the cursor and keep it visible. Another sequence is shown without scrolling."""
        moved_in_same = (
            self._last_position is not None
            and self._last_position[0] == run.shown_index
            and self._last_position[1] != run.cursor
        )
        self.page.run = run
        self.arrange()
        column = self.page.shown_column()
        if column is not None and run.cursor and moved_in_same:
            top = column.row_top(max(0, column.drawn_rows - 1))
            self.scroll_to(top, column.metrics.row, margin=self.viewport().height() // 4)

    def reveal_selected(self, run: Run) -> None:
        """Outline the selected token and keep it visible."""
        self.page.run = run
        self.arrange()
        boxes = self.page.boxes(run.selected)
        if boxes:
            self.scroll_to(boxes[0].top(), boxes[-1].bottom() - boxes[0].top())

    def arrange(self, repaint: bool = True) -> None:
        """Update the page and the scroll bar to the run. Stay at the end if the reader is there."""
        run, bar = self.run, self.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 2
        pad, height = self.padding, self.viewport().height()
        self.page.update(run, self.viewport().width() - 2 * pad.x())
        apply_run_to_options(self.paint_options, run)
        self._last_position = (run.shown_index, run.cursor) if run else None
        bar.setPageStep(height)
        bar.setRange(0, max(0, round(self.page.height) + 2 * pad.y() - height) if run else 0)
        if at_end and run is not None and run.is_following:
            bar.setValue(bar.maximum())
        self.arranged.emit()
        if repaint:
            self.viewport().update()

    # Coordinates

    @property
    def padding(self) -> QPoint:
        """Distance from the viewport's edges to the page."""
        return QPoint(self.paint_options.theme.px(26), self.paint_options.theme.px(20))

    def to_page(self, point: QPoint | QPointF) -> QPointF:
        """Convert a point of the viewport to page coordinates."""
        pad = self.padding
        return QPointF(point.x() - pad.x(), point.y() - pad.y() + self.verticalScrollBar().value())

    def from_page(self, rect: QRectF) -> QRect:
        """Convert a rectangle of the page to viewport coordinates."""
        pad = self.padding
        return rect.translated(pad.x(), pad.y() - self.verticalScrollBar().value()).toAlignedRect()

    def token_rect(self, token: int) -> QRect:
        """Return the first rectangle of a token of the shown sequence, in the viewport; empty if the token is not
        drawn.
        """
        boxes = self.page.boxes(token)
        return self.from_page(boxes[0]) if boxes else QRect()

    def scroll_to(self, top: float, height: float, margin: int = 0) -> None:
        """Scroll just far enough to show a vertical range of the page with `margin` pixels around it."""
        bar, pad = self.verticalScrollBar(), self.padding.y()
        low, high = round(top + height + 2 * pad - self.viewport().height()) + margin, round(top) - margin
        bar.setValue(max(min(bar.value(), high), low) if low <= high else high)

    # Accessibility

    def accessible_parts(self) -> Sequence[AccessiblePart]:
        """Return the drawn tokens."""
        from decodescope.app.views.tokens.accessible_text import AccessibleTokens

        return AccessibleTokens(self)

    def focused_part(self) -> int | None:
        """Return the index of the selected token."""
        return self.run.selected if self.run is not None else None

    def accessible_text(self) -> AccessibleText:
        """Return the drawn text."""
        from decodescope.app.views.tokens.accessible_text import accessible_text

        return accessible_text(self)

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the visible rows."""
        painter = QPainter(self.viewport())
        fill_rect(painter, event.rect(), self.paint_options.theme.color("window"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self.page.has_text:
            paint_empty_token_page(painter, self.viewport().rect(), self.paint_options.theme, self.run)
            return
        corner = self.to_page(event.rect().topLeft())
        top, bottom = corner.y(), corner.y() + event.rect().height()
        painter.translate(-self.to_page(QPointF(0, 0)))
        for column in self.page.all_columns():
            _paint_column(painter, self, column, (top, bottom))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out the rows for the new width."""
        super().resizeEvent(event)
        self.arrange()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Report that the area received the keyboard focus."""
        super().focusInEvent(event)
        self.focusReceived.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave all keys to the view, so that nothing scrolls by itself."""
        event.ignore()


def _view_state(area: TokenArea) -> tuple[object, ...]:
    """Return the state that must be unchanged for a partial repaint."""
    run = area.run
    shown = run.shown_index if run is not None else None
    return id(run), shown, area.verticalScrollBar().value(), area.viewport().size(), area.page.is_side_by_side


def _paint_column(painter: QPainter, area: TokenArea, column: TokenColumn, visible_range: tuple[float, float]) -> None:
    """Paint a column's heading and its rows in `visible_range` (top, bottom). Only the shown sequence has marks."""
    run, options, page = area.run, area.paint_options, area.page
    shown = run is not None and column.sequence == run.shown_index
    if run is not None and page.is_side_by_side and column is not page.prompt:
        paint_heading(painter, column, run, options.theme, page.heading_height, shown)
    options.selection = area.selection.range_in(column)
    selected, hovered, changed = options.selected, options.hovered, options.lead_changes
    if not shown:
        options.selected, options.hovered, options.lead_changes = None, None, frozenset()
    paint_rows(painter, column, options, *visible_range)
    if options.selected is not None and options.repeats:
        paint_repeats(painter, column, options.theme, options.selected, options.repeats)
    options.selected, options.hovered, options.lead_changes = selected, hovered, changed
