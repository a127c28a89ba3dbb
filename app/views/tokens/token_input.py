"""Mouse and keyboard handling of the token view."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QMouseEvent
from PySide6.QtWidgets import QMenu, QWidget

from decodescope.app.state.branching import branch_unsupported_reason
from decodescope.app.theme.theme import Theme
from decodescope.app.views.base import ViewSignals
from decodescope.app.views.text.column import TokenColumn
from decodescope.app.views.text.token_navigation import (
    BACKWARD_KEYS,
    NAVIGATION_KEYS,
    selection_end_for_key,
    token_for_key,
)
from decodescope.app.views.text.token_wording import popover_rows, token_text
from decodescope.app.views.tokens.area import TokenArea
from decodescope.app.widgets.plain_text import caption
from decodescope.app.widgets.popover import Popover
from decodescope.resources.language import tr

HOVER_MS = 250


class TokenMouseHandler(QObject):
    """Filters the events of an area's viewport and emits the view's signals."""

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
        """Handle the mouse events; none reaches the viewport."""
        answer = self._handlers.get(event.type())
        if answer is None or not isinstance(event, QMouseEvent):
            return False
        answer(event)
        return True

    def _press(self, event: QMouseEvent) -> None:
        """Start a click or a text selection."""
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
        """Extend the selection, or hover the token under the pointer."""
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
        """Scroll while text is selected beyond an edge."""
        bar = self._area.verticalScrollBar()
        if y < 0 or y > self._area.viewport().height():
            bar.setValue(bar.value() + (bar.singleStep() if y > 0 else -bar.singleStep()))

    def _release(self, event: QMouseEvent) -> None:
        """Pick the token if no text was selected."""
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
        """Return the token of the shown sequence at a screen position."""
        area, run = self._area, self._area.run
        at = area.to_page(area.viewport().mapFromGlobal(position))
        column = area.page.column_at(at.x(), at.y())
        if column is None or run is None or column.sequence != run.shown_index:
            return None
        return column.token_at(at.x(), at.y())

    @Slot()
    def leave(self) -> None:
        """Clear the hovered token and hide its popover."""
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
        self.popover.show_rows(token_text(chosen.piece, chosen.is_special), popover_rows(chosen, vocabulary), rect)


_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class TokenKeyHandler(QObject):
    """Handles the key presses of a view for its area."""

    def __init__(self, area: TokenArea, signals: ViewSignals) -> None:
        super().__init__(area)
        self._area, self._signals = area, signals

    def handle_key(self, event: QKeyEvent) -> bool:
        """Handle a key press. Returns False if the key has no meaning here."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
        elif event.key() in _ENTER and not event.modifiers():
            self._signals.inspectorRequested.emit()
        else:
            return self._navigate(event)
        return True

    def _navigate(self, event: QKeyEvent) -> bool:
        run, column = self._area.run, self._area.page.shown_column()
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if run is None or column is None or not run.cursor:
            return False
        page = max(1, self._area.viewport().height() // column.metrics.row - 1)
        if modifiers == Qt.KeyboardModifier.ShiftModifier and event.key() in NAVIGATION_KEYS:
            self._extend_selection(column, Qt.Key(event.key()), run.selected, page)
            return True
        target = token_for_key(column, Qt.Key(event.key()), run.selected, run.cursor, page) if not modifiers else None
        if target is None:
            return False
        self._area.selection.start(None, 0)
        self._signals.tokenActivated.emit(target)
        return True

    def _extend_selection(self, column: TokenColumn, key: Qt.Key, selected: int | None, page: int) -> None:
        """Move the end of the selection. The first press starts it at the selected token."""
        choice = self._area.selection
        if choice.column is not column:
            choice.start_at_token(column, selected, backwards=key in BACKWARD_KEYS)
        choice.head = selection_end_for_key(column, key, choice.head, page)
        self._area.scroll_to(column.row_top(column.flow.row_at(choice.head)), column.metrics.row)
        self._area.viewport().update()

    @Slot()
    def select_all(self) -> None:
        """Select everything in the column of the shown sequence."""
        column = self._area.page.shown_column()
        if column is not None:
            self._area.selection.select_all(column)
            self._area.viewport().update()

    @Slot()
    def copy(self) -> None:
        """Copy the selected text, or else the selected token, in its original form."""
        if text := self._picked_text():
            QGuiApplication.clipboard().setText(text)

    def _picked_text(self) -> str:
        """Return the selected text, or else the selected token's text; empty if neither exists."""
        run, text = self._area.run, self._area.selection.text
        if not text and run is not None and run.selected is not None:
            text = run.tokens[run.selected].text
        return text

    @Slot()
    def copy_text(self) -> None:
        """Copy the generated text up to the cursor."""
        if self._area.run is not None:
            QGuiApplication.clipboard().setText(self._area.run.text)

    @Slot()
    def copy_coloured(self) -> None:
        """Copy the prompt and the generated text with their colours."""
        from decodescope.app.views.tokens.excerpt import token_excerpt
        from decodescope.app.widgets.clipboard import copy_text_and_html

        excerpt = token_excerpt(self._area)
        if excerpt is not None:
            copy_text_and_html(excerpt.plain, excerpt.html)

    @Slot()
    def copy_with_prompt(self) -> None:
        """Copy the prompt and the generated text."""
        run, column = self._area.run, self._area.page.prompt or self._area.page.shown_column()
        if run is not None and column is not None:
            prompt = column.text.original_text(0, column.text.prompt_end)
            QGuiApplication.clipboard().setText(prompt + run.text)

    def create_menu(self, parent: QWidget, token: int | None = None, grammar: object = None) -> QMenu:
        """Return the view's context menu, for a token or None; it deletes itself when it closes.

        `grammar`: the grammar that constrains a new run.
        """
        menu = QMenu(parent)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        run = self._area.run
        if run is not None and token is not None and not branch_unsupported_reason(run):
            from decodescope.app.views.tokens.branches import add_branch_actions

            add_branch_actions(menu, run, token, self._signals, grammar)
        has_text = self._area.page.has_text
        is_written = run is not None and bool(run.text)
        entries = (
            (tr("Copy"), self.copy, bool(self._picked_text())),
            (tr("Copy text"), self.copy_text, is_written),
            (tr("Copy with prompt"), self.copy_with_prompt, has_text),
            (tr("Copy text with colours"), self.copy_coloured, is_written),
            (tr("Select all"), self.select_all, has_text),
        )
        for title, slot, is_possible in entries:
            menu.addAction(caption(title), slot).setEnabled(is_possible)
        return menu


def selected_token_menu_position(area: TokenArea) -> QPoint:
    """Return the screen position for the selected token's menu; without a selection, the page's corner."""
    run, viewport = area.run, area.viewport()
    rect = area.token_rect(run.selected) if run is not None and run.selected is not None else QRect()
    return viewport.mapToGlobal(rect.bottomLeft() if rect.isValid() else area.padding)
