"""What the mouse does on the page of tokens: picks a token, selects text, tells of what is under it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication, QMouseEvent

from app.theme.theme import Theme
from app.views.base import ViewSignals
from app.views.text.token_wording import figures, token_text
from app.views.tokens.area import TokenArea
from app.widgets.popover import Popover

HOVER_MS = 250


class Pointer(QObject):
    """Listens to an area's viewport; what is picked goes out by the view's signals."""

    def __init__(self, area: TokenArea, theme: Theme, signals: ViewSignals) -> None:
        super().__init__(area)
        self._area, self._signals = area, signals
        self._pressed: QPoint | None = None
        self._timer = QTimer(self, singleShot=True, interval=HOVER_MS)
        self._timer.timeout.connect(self._tell)
        self.popover = Popover(theme, area)
        self._answers: dict[QEvent.Type, Callable[[QMouseEvent], None]] = {
            QEvent.Type.MouseButtonPress: self._press,
            QEvent.Type.MouseMove: self._move,
            QEvent.Type.MouseButtonRelease: self._release,
            QEvent.Type.MouseButtonDblClick: self._double_click,
        }
        area.left.connect(self.leave)
        area.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The mouse's events end here."""
        answer = self._answers.get(event.type())
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
        place = area.to_page(event.position())
        column = area.page.nearest(place.x(), place.y())
        area.choice.begin(column, column.offset_at(place.x(), place.y()) if column else 0)
        self._pressed = event.position().toPoint()
        area.viewport().update()

    def _move(self, event: QMouseEvent) -> None:
        """Extend the selection, or tell of the token under the pointer."""
        area, choice = self._area, self._area.choice
        place = area.to_page(event.position())
        if self._pressed is None or choice.column is None:
            self._hover(place)
            return
        moved = (event.position().toPoint() - self._pressed).manhattanLength()
        if moved >= QGuiApplication.styleHints().startDragDistance() or choice.head != choice.anchor:
            choice.head = choice.column.offset_at(place.x(), place.y())
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
        choice = self._area.choice
        if choice.head == choice.anchor:
            choice.begin(None, 0)
            self._click(self._area.to_page(event.position()))

    def _click(self, place: QPointF) -> None:
        run, column = self._area.run, self._area.page.column_at(place.x(), place.y())
        if run is None or column is None or column.sequence is None:
            return
        token = column.token_at(place.x(), place.y())
        if column.sequence != run.shown:
            self._signals.sequenceActivated.emit(column.sequence)
        if token is not None:
            self._signals.tokenActivated.emit(token)

    def _double_click(self, event: QMouseEvent) -> None:
        """Open the inspector on the token."""
        self._signals.inspectorRequested.emit()

    def _hover(self, place: QPointF) -> None:
        area, run = self._area, self._area.run
        column = area.page.column_at(place.x(), place.y())
        token = column.token_at(place.x(), place.y()) if column else None
        area.viewport().setCursor(Qt.CursorShape.IBeamCursor if column else Qt.CursorShape.ArrowCursor)
        shown = column is not None and run is not None and column.sequence == run.shown
        hovered = token if shown else None
        if hovered == area.look.hovered:
            return
        self.leave()
        area.look.hovered = hovered
        if hovered is not None:
            self._timer.start()

    def token_under(self, place: QPoint) -> int | None:
        """Which token of the shown text is at that place of the screen."""
        area, run = self._area, self._area.run
        at = area.to_page(area.viewport().mapFromGlobal(place))
        column = area.page.column_at(at.x(), at.y())
        if column is None or run is None or column.sequence != run.shown:
            return None
        return column.token_at(at.x(), at.y())

    @Slot()
    def leave(self) -> None:
        """Forget the token under the pointer."""
        self._area.look.hovered = None
        self._timer.stop()
        self.popover.hide()
        self._area.viewport().update()

    @Slot()
    def _tell(self) -> None:
        area, run, token = self._area, self._area.run, self._area.look.hovered
        if run is None or token is None or token >= len(run.tokens) or not area.isVisible():
            return
        chosen, rect = run.tokens[token], area.token_rect(token)
        rect.moveTo(area.viewport().mapToGlobal(rect.topLeft()))
        vocabulary = run.started.vocabulary if run.started else 0
        self.popover.show_rows(token_text(chosen.piece, chosen.is_special), figures(chosen, vocabulary), rect)
