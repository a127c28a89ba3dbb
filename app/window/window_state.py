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
from resources.retranslation import translate_again

if TYPE_CHECKING:
    from app.control.tours.tour_player import TourState


class WindowState(NamedTuple):
    """Plain values: of the parts that they are taken from, none is there any more when they are given back."""

    beside: str
    """The view of the second column; empty where there is none."""
    columns: list[int]
    views: dict[str, Any]
    """What each view carries over, by its object's name."""
    search: str | None
    """What is looked for in the history; None where that is closed."""
    cursor: int
    focus: str
    error: ErrorReport | None
    loads_ahead: bool
    tour: TourState | None
    guess: GuessState | None
    borrowed: BorrowedState
    example: str
    """The title of the example that is set, in English; empty for none."""
    notice: tuple[str, str, list[tuple[str, str]]] | None
    """Title, text and buttons of the notice that is open; None while none is."""
    presents: bool
    welcomes: bool
    """The first page lies over it."""
    getting: str | None
    """The model that is picked in the dialog of the hub's models; None where that is not open."""
    labs: tuple[str, ...]
    """The labs' rooms that are open."""
    settings: int | None
    """How far the settings window is scrolled; None where it is not open."""


def standing_of(window: QWidget, parts: WindowParts) -> WindowState:
    """How it stands now."""
    centre = parts.centre
    return WindowState(
        beside=centre.columns[1].current if len(centre.columns) > 1 else "",
        columns=centre.splitter.sizes(),
        views={view.objectName(): view.carried() for view in _views(parts)},
        search=parts.history_panel.search,
        cursor=parts.setup.prompt.editor.textCursor().position(),
        focus=_focus(window),
        error=parts.messages.error,
        loads_ahead=parts.loading.loads_ahead,
        tour=parts.tours.state,
        guess=parts.guess.state(),
        borrowed=parts.borrowed.state(),
        example=parts.controller.example,
        notice=parts.messages.notice,
        presents=parts.stage.is_on,
        welcomes=parts.welcome.is_open,
        getting=parts.getting.picked,
        labs=parts.labs.open,
        settings=parts.dialogs.scrolled,
    )


def give_back(standing: WindowState, window: QWidget, parts: WindowParts) -> None:
    """Let parts that are new stand as the old ones did; those are gone."""
    centre, prompt = parts.centre, parts.setup.prompt
    parts.borrowed.resume(standing.borrowed)
    parts.controller.show_example_title(standing.example)
    if standing.beside:
        centre.split.setChecked(True)
        centre.columns[1].show_view(standing.beside)
        centre.splitter.setSizes(standing.columns)
    if standing.search is not None:
        parts.history_panel.show()
        parts.history_panel.make().search.setText(standing.search)
    cursor = prompt.editor.textCursor()
    cursor.setPosition(min(standing.cursor, len(prompt.editor.toPlainText().encode("utf-16-le")) // 2))
    prompt.editor.setTextCursor(cursor)
    if not standing.loads_ahead:
        parts.loading.rest()
        parts.fit.rest()
    for view in _views(parts):
        view.carry_on(standing.views.get(view.objectName()))
    if standing.error is not None:
        parts.messages.show_error(standing.error.translated())
    if standing.notice is not None:
        title, text, actions = standing.notice
        again = [(name, translate_again(label)) for name, label in actions]
        parts.messages.show_notice(translate_again(text), translate_again(title), again)
    focused = window.findChild(QWidget, standing.focus) if standing.focus else None
    if focused is not None:
        focused.setFocus()
    if standing.welcomes:
        parts.welcome.show()
    if standing.guess is not None:
        parts.guess.resume(standing.guess)
    if standing.tour is not None:
        parts.tours.player.resume(standing.tour)
    if standing.presents:
        parts.stage.enter()
    if standing.getting is not None:
        parts.getting.open().dialog.list.pick(standing.getting)
    parts.labs.open_again(standing.labs)
    if standing.settings is not None:
        parts.dialogs.open_settings().scroll_to(standing.settings)


def _focus(window: QWidget) -> str:
    """The name of what has the focus; empty where nothing has it."""
    name, focused = "", window.focusWidget()
    if focused is not None:
        name = focused.objectName()
    return name


def _views(parts: WindowParts) -> Iterator[View]:
    yield from parts.centre.made
    yield parts.inspector
    yield parts.timeline
