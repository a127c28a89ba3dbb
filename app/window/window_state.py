"""How a window stands that is about to be made anew: what the settings do not remember, for it is of this day only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtWidgets import QWidget

from app.control.borrowed_settings import BorrowedState
from app.control.guess import GuessState
from app.state.worker_messages import ErrorReport
from app.views.base import View
from app.window.window_parts import WindowParts
from resources.retranslation import retranslate

if TYPE_CHECKING:
    from app.control.tours.tour_player import TourState


class WindowState(NamedTuple):
    """Plain values: of the parts that they are taken from, none is there any more when they are given back."""

    second_view: str
    """The view of the second column; empty where there is none."""
    columns: list[int]
    views: dict[str, Any]
    """What each view carries over, by its object's name."""
    history_search: str | None
    """What is looked for in the history; None where that is closed."""
    cursor: int
    focus: str
    error: ErrorReport | None
    is_preloading: bool
    tour: TourState | None
    guess: GuessState | None
    borrowed: BorrowedState
    example: str
    """The title of the example that is set, in English; empty for none."""
    notice: tuple[str, str, list[tuple[str, str]]] | None
    """Title, text and buttons of the notice that is open; None while none is."""
    is_presenting: bool
    shows_welcome: bool
    """The first page lies over it."""
    hub_model: str | None
    """The model that is picked in the dialog of the hub's models; None where that is not open."""
    labs: tuple[str, ...]
    """The labs' rooms that are open."""
    settings_scroll: int | None
    """How far the settings window is scrolled; None where it is not open."""


def save_state(window: QWidget, parts: WindowParts) -> WindowState:
    """How it stands now."""
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
        hub_model=parts.model_download.selected_name,
        labs=parts.labs.open_names,
        settings_scroll=parts.dialogs.scroll_position,
    )


def restore_state(state: WindowState, window: QWidget, parts: WindowParts) -> None:
    """Let parts that are new stand as the old ones did; those are gone."""
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
        parts.welcome.show()
    if state.guess is not None:
        parts.guess.resume(state.guess)
    if state.tour is not None:
        parts.tours.player.resume(state.tour)
    if state.is_presenting:
        parts.presentation.enter()
    if state.hub_model is not None:
        parts.model_download.open().dialog.list.pick(state.hub_model)
    parts.labs.reopen(state.labs)
    if state.settings_scroll is not None:
        parts.dialogs.open_settings().scroll_to(state.settings_scroll)


def _focused_name(window: QWidget) -> str:
    """The name of what has the focus; empty where nothing has it."""
    name, focused = "", window.focusWidget()
    if focused is not None:
        name = focused.objectName()
    return name


def _views(parts: WindowParts) -> Iterator[View]:
    yield from parts.centre.created_views
    yield parts.inspector
    yield parts.timeline
