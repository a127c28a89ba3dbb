"""What the keyboard does on the page of tokens: walks from one to the next, selects and copies text."""

from __future__ import annotations

from PySide6.QtCore import QObject, QPoint, QRect, Qt, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from app.state.branching import branch_unsupported_reason
from app.views.base import ViewSignals
from app.views.text.column import TokenColumn
from app.views.text.token_navigation import BACKWARD_KEYS, NAVIGATION_KEYS, selection_end_for_key, token_for_key
from app.views.tokens.area import TokenArea
from app.widgets.plain_text import caption
from resources.language import tr

_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class TokenKeyHandler(QObject):
    """Turns the keys of a view into what they mean for its area."""

    def __init__(self, area: TokenArea, signals: ViewSignals) -> None:
        super().__init__(area)
        self._area, self._signals = area, signals

    def handle_key(self, event: QKeyEvent) -> bool:
        """Do what the key means; False where it means nothing here."""
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
        """Move the end of the selection; the first press begins it at the picked token."""
        choice = self._area.selection
        if choice.column is not column:
            choice.start_at_token(column, selected, backwards=key in BACKWARD_KEYS)
        choice.head = selection_end_for_key(column, key, choice.head, page)
        self._area.scroll_to(column.row_top(column.flow.row_at(choice.head)), column.metrics.row)
        self._area.viewport().update()

    @Slot()
    def select_all(self) -> None:
        """Select everything that the shown sequence's column holds."""
        column = self._area.page.shown_column()
        if column is not None:
            self._area.selection.select_all(column)
            self._area.viewport().update()

    @Slot()
    def copy(self) -> None:
        """Copy the selected text, or else the picked token, exactly."""
        if text := self._picked_text():
            QGuiApplication.clipboard().setText(text)

    def _picked_text(self) -> str:
        """The selected text, or else the picked token's; empty where neither is there."""
        run, text = self._area.run, self._area.selection.text
        if not text and run is not None and run.selected is not None:
            text = run.tokens[run.selected].text
        return text

    @Slot()
    def copy_text(self) -> None:
        """Copy what was written, up to the cursor."""
        if self._area.run is not None:
            QGuiApplication.clipboard().setText(self._area.run.text)

    @Slot()
    def copy_coloured(self) -> None:
        """Copy the prompt and what was written, with their colours."""
        from app.views.tokens.excerpt import token_excerpt
        from app.widgets.clipboard import copy_text_and_html

        excerpt = token_excerpt(self._area)
        if excerpt is not None:
            copy_text_and_html(excerpt.plain, excerpt.html)

    @Slot()
    def copy_with_prompt(self) -> None:
        """Copy the prompt and what was written."""
        run, column = self._area.run, self._area.page.prompt or self._area.page.shown_column()
        if run is not None and column is not None:
            prompt = column.text.original_text(0, column.text.prompt_end)
            QGuiApplication.clipboard().setText(prompt + run.text)

    def create_menu(self, parent: QWidget, token: int | None = None, grammar: object = None) -> QMenu:
        """The view's menu, for a token or none; it deletes itself when it closes. `grammar`: what a new run would be
        held to."""
        menu = QMenu(parent)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        run = self._area.run
        if run is not None and token is not None and not branch_unsupported_reason(run):
            from app.views.tokens.branches import add_branch_actions

            add_branch_actions(menu, run, token, self._signals, grammar)
        has_text = self._area.page.has_text
        is_written = run is not None and bool(run.text)
        entries = (
            (tr("Copy"), self.copy, bool(self._picked_text())),
            (tr("Copy text"), self.copy_text, is_written),
            (tr("Copy with prompt"), self.copy_with_prompt, has_text),
            (tr("Copy text with its colours"), self.copy_coloured, is_written),
            (tr("Select all"), self.select_all, has_text),
        )
        for title, slot, is_possible in entries:
            menu.addAction(caption(title), slot).setEnabled(is_possible)
        return menu


def selected_token_menu_position(area: TokenArea) -> QPoint:
    """Where on the screen the menu of the selected token opens; without one, in the page's corner."""
    run, viewport = area.run, area.viewport()
    rect = area.token_rect(run.selected) if run is not None and run.selected is not None else QRect()
    return viewport.mapToGlobal(rect.bottomLeft() if rect.isValid() else area.padding)
