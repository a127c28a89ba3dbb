"""Temporary state of a window that is rebuilt in another language; it is not saved in the settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtWidgets import QWidget

from decodescope.app.control.borrowed_settings import BorrowedState
from decodescope.app.features.guess.controller import GuessState
from decodescope.app.features.same_noise.controller import SavedPages
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.views.base import View
from decodescope.app.window.window_parts import WindowParts
from decodescope.resources.retranslation import retranslate

if TYPE_CHECKING:
    from decodescope.app.features.tours.controller.tour_player import TourState


class WindowState(NamedTuple):
    """State independent of widgets, as the old parts are deleted before it is restored."""

    second_view: str
    """View of the second column; empty if there is none."""
    columns: list[int]
    views: dict[str, Any]
    """State of each view by its object name."""
    history_search: str | None
    """Search text of the history; None if it is closed."""
    cursor: int
    focus: str
    error: ErrorReport | None
    is_preloading: bool
    tour: TourState | None
    guess: GuessState | None
    borrowed: BorrowedState
    example: str
    """English title of the applied example; empty without one."""
    notice: tuple[str, str, list[tuple[str, str]]] | None
    """Title, text and buttons of the open notice; None without one."""
    is_presenting: bool
    shows_welcome: bool
    """Whether the welcome page is open."""
    asks_wording: bool
    """Whether it shows the question of a first start."""
    hub_model: str | None
    """Model selected in the Hub dialog; None if it is closed."""
    same_noise: SavedPages
    """Results and page of the window of other settings with the same noise."""
    labs: tuple[str, ...]
    """Names of the open labs."""
    shows_studies: bool
    """Whether the window of studies is open."""
    difference_page: str
    """Shown page of the window “Why do they differ?”; empty if it is closed."""
    shows_plugins: bool
    """Whether the list of plug-ins is open."""
    settings_scroll: int | None
    """Scroll position of the settings window; None if it is closed."""


def save_state(window: QWidget, parts: WindowParts) -> WindowState:
    """Return the current state of the window."""
    centre = parts.centre
    return WindowState(
        second_view=centre.columns[1].current_name if len(centre.columns) > 1 else "",
        columns=centre.splitter.sizes(),
        views={view.objectName(): view.saved_view_state() for view in _views(parts)},
        history_search=parts.history_panel.search_text,
        cursor=parts.setup.prompt.editor.textCursor().position(),
        focus=_focused_name(window),
        error=parts.messages.error,
        is_preloading=parts.loading.is_preloading,
        tour=parts.tours.state,
        guess=parts.guess.state(),
        borrowed=parts.borrowed.state(),
        example=parts.settings_controller.example,
        notice=parts.messages.notice,
        is_presenting=parts.presentation.is_on,
        shows_welcome=parts.welcome.is_open,
        asks_wording=parts.welcome.asks_wording,
        hub_model=parts.model_download.selected_name,
        same_noise=parts.same_noise.saved_pages,
        labs=parts.labs.open_names,
        shows_studies=parts.studies.is_open,
        difference_page=parts.differences.page,
        shows_plugins=parts.plugins.is_open,
        settings_scroll=parts.dialogs.scroll_position,
    )


def restore_state(state: WindowState, window: QWidget, parts: WindowParts) -> None:
    """Restore the state in the new parts."""
    centre, prompt = parts.centre, parts.setup.prompt
    parts.borrowed.resume(state.borrowed)
    parts.settings_controller.show_example_title(state.example)
    if state.second_view:
        centre.split_button.setChecked(True)
        centre.columns[1].show_view(state.second_view)
        centre.splitter.setSizes(state.columns)
    if state.history_search is not None:
        parts.history_panel.show()
        parts.history_panel.ensure_view().search.setText(state.history_search)
    cursor = prompt.editor.textCursor()
    cursor.setPosition(min(state.cursor, len(prompt.editor.toPlainText().encode("utf-16-le")) // 2))
    prompt.editor.setTextCursor(cursor)
    if not state.is_preloading:
        parts.loading.pause()
        parts.memory_fit.pause()
    for view in _views(parts):
        view.restore_view_state(state.views.get(view.objectName()))
    if state.error is not None:
        parts.messages.show_error(state.error.translated())
    if state.notice is not None:
        title, text, actions = state.notice
        again = [(name, retranslate(label)) for name, label in actions]
        parts.messages.show_notice(retranslate(text), retranslate(title), again)
    focused = window.findChild(QWidget, state.focus) if state.focus else None
    if focused is not None:
        focused.setFocus()
    if state.shows_welcome:
        parts.welcome.show(state.asks_wording)
    if state.guess is not None:
        parts.guess.resume(state.guess)
    if state.tour is not None:
        parts.tours.player.resume(state.tour)
    if state.is_presenting:
        parts.presentation.enter()
    if state.hub_model is not None:
        parts.model_download.open().dialog.list.pick(state.hub_model)
    parts.labs.reopen(state.labs)
    parts.same_noise.resume(state.same_noise)
    if state.shows_studies:
        parts.studies.open()
    if state.difference_page:
        parts.differences.open().show_page(state.difference_page)
    if state.shows_plugins:
        parts.plugins.open()
    if state.settings_scroll is not None:
        parts.dialogs.open_settings().scroll_to(state.settings_scroll)


def _focused_name(window: QWidget) -> str:
    """Return the object name of the focused widget; empty if there is none."""
    name, focused = "", window.focusWidget()
    if focused is not None:
        name = focused.objectName()
    return name


def _views(parts: WindowParts) -> Iterator[View]:
    yield from parts.centre.created_views
    yield parts.inspector
    yield parts.timeline
