"""What the mouse does on the page of tokens: picks a token, selects text, tells of what is under it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication, QMouseEvent

from app.theme.theme import Theme
from app.views.base import ViewSignals
from app.views.text.token_wording import token_rows, token_text
from app.views.tokens.area import TokenArea
from app.widgets.popover import Popover

HOVER_MS = 250


class TokenMouseHandler(QObject):
    """Listens to an area's viewport; what is picked goes out by the view's signals."""

    def __init__(self, area: TokenArea, theme: Theme, signals: ViewSignals) -> None:
        super().__init__(area)
        self._area, self._signals = area, signals
        self._pressed: QPoint | None = None
        self._timer = QTimer(self, singleShot=True, interval=HOVER_MS)
        self._timer.timeout.connect(self._show_token_popover)
        self.popover = Popover(theme, area)
        self._handlers: dict[QEvent.Type, Callable[[QMouseEvent], None]] = {
            QEvent.Type.MouseButtonPress: self._press,
            QEvent.Type.MouseMove: self._move,
            QEvent.Type.MouseButtonRelease: self._release,
            QEvent.Type.MouseButtonDblClick: self._double_click,
        }
        area.hoverEnded.connect(self.leave)
        area.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The mouse's events end here."""
        answer = self._handlers.get(event.type())
        if answer is None or not isinstance(event, QMouseEvent):
            return False
        answer(event)
        return True

    def _press(self, event: QMouseEvent) -> None:
        """Begin a click or a selection of text."""
        area = self._area
        if event.button() != Qt.MouseButton.LeftButton or not area.page.has_text:
            return
        self.leave()
        point = area.to_page(event.position())
        column = area.page.nearest_column(point.x(), point.y())
        area.selection.start(column, column.offset_at(point.x(), point.y()) if column else 0)
        self._pressed = event.position().toPoint()
        area.viewport().update()

    def _move(self, event: QMouseEvent) -> None:
        """Extend the selection, or tell of the token under the pointer."""
        area, choice = self._area, self._area.selection
        point = area.to_page(event.position())
        if self._pressed is None or choice.column is None:
            self._hover(point)
            return
        moved = (event.position().toPoint() - self._pressed).manhattanLength()
        if moved >= QGuiApplication.styleHints().startDragDistance() or choice.head != choice.anchor:
            choice.head = choice.column.offset_at(point.x(), point.y())
            self._scroll_towards(event.position().y())
            area.viewport().update()

    def _scroll_towards(self, y: float) -> None:
        """Scroll while text is being selected beyond an edge."""
        bar = self._area.verticalScrollBar()
        if y < 0 or y > self._area.viewport().height():
            bar.setValue(bar.value() + (bar.singleStep() if y > 0 else -bar.singleStep()))

    def _release(self, event: QMouseEvent) -> None:
        """A click that selected no text picks the token."""
        if event.button() != Qt.MouseButton.LeftButton or self._pressed is None:
            return
        self._pressed = None
        choice = self._area.selection
        if choice.head == choice.anchor:
            choice.start(None, 0)
            self._click(self._area.to_page(event.position()))

    def _click(self, point: QPointF) -> None:
        run, column = self._area.run, self._area.page.column_at(point.x(), point.y())
        if run is None or column is None or column.sequence is None:
            return
        token = column.token_at(point.x(), point.y())
        if column.sequence != run.shown_index:
            self._signals.sequenceActivated.emit(column.sequence)
        if token is not None:
            self._signals.tokenActivated.emit(token)

    def _double_click(self, event: QMouseEvent) -> None:
        """Open the inspector on the token."""
        self._signals.inspectorRequested.emit()

    def _hover(self, point: QPointF) -> None:
        area, run = self._area, self._area.run
        column = area.page.column_at(point.x(), point.y())
        token = column.token_at(point.x(), point.y()) if column else None
        area.viewport().setCursor(Qt.CursorShape.IBeamCursor if column else Qt.CursorShape.ArrowCursor)
        shown = column is not None and run is not None and column.sequence == run.shown_index
        hovered = token if shown else None
        if hovered == area.paint_options.hovered:
            return
        self.leave()
        area.paint_options.hovered = hovered
        if hovered is not None:
            self._timer.start()

    def token_at_global(self, position: QPoint) -> int | None:
        """Which token of the shown text is at that place of the screen."""
        area, run = self._area, self._area.run
        at = area.to_page(area.viewport().mapFromGlobal(position))
        column = area.page.column_at(at.x(), at.y())
        if column is None or run is None or column.sequence != run.shown_index:
            return None
        return column.token_at(at.x(), at.y())

    @Slot()
    def leave(self) -> None:
        """Forget the token under the pointer."""
        self._area.paint_options.hovered = None
        self._timer.stop()
        self.popover.hide()
        self._area.viewport().update()

    @Slot()
    def _show_token_popover(self) -> None:
        area, run, token = self._area, self._area.run, self._area.paint_options.hovered
        if run is None or token is None or token >= len(run.tokens) or not area.isVisible():
            return
        chosen, rect = run.tokens[token], area.token_rect(token)
        rect.moveTo(area.viewport().mapToGlobal(rect.topLeft()))
        vocabulary = run.started.vocabulary if run.started else 0
        self.popover.show_rows(token_text(chosen.piece, chosen.is_special), token_rows(chosen, vocabulary), rect)
