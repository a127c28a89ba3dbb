"""What the palette lists and what it reaches: an entry, a source of entries, the parts that entries act on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from PySide6.QtWidgets import QWidget

from app.control.history import History
from app.control.requests import ChosenSettings
from app.control.run_navigation import RunNavigation
from app.control.settings_controller import PresetLibrary, SettingsController
from app.panels.centre import Centre
from app.panels.setup_panel import SetupPanel
from app.panels.toolbar import Toolbar
from app.session.session import Session
from app.storage.settings import MAX_SCALE, MIN_SCALE, AppearanceSection
from app.widgets import text_editing
from resources.depth import DEPTHS
from resources.language import tr


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One thing that can be done. `key` is what it is remembered by."""

    key: str
    title: str
    """In the language of now."""
    kind: str
    """What kind of thing it is, in the language of now."""
    run: Callable[[], object]
    aliases: tuple[str, ...] = ()
    """Other words it is found by: its English title, the name that the command line has for it."""
    shortcut: str = ""
    about: str = ""
    """A sentence on it."""
    penalty: float = 0.0
    """By how much (in the scores of `finding`) it comes behind what is found equally well."""
    reason: str = ""
    """Why it cannot be done now; empty where it can."""


class PaletteAppearance(Protocol):
    """What changes how the window looks."""

    def set_theme(self, name: str) -> None:
        """Change to a theme by its name."""

    def set_font_scale(self, scale: float) -> None:
        """Change the text size; 1.0 is 100 %."""


@dataclass(frozen=True, slots=True)
class PaletteContext:
    """The parts that entries speak of and act on."""

    window: QWidget
    toolbar: Toolbar
    panel: SetupPanel
    centre: Centre
    chosen: ChosenSettings
    setup: SettingsController
    presets: PresetLibrary
    history: History
    run_navigation: RunNavigation
    session: Session
    appearance_control: PaletteAppearance
    appearance: AppearanceSection
    actions: Mapping[str, Callable[[], object]]
    is_presenting: Callable[[], bool]
    start_tour: Callable[[str], object]
    open_term: Callable[[str], object]
    branch_reason: Callable[[], str]
    """Why the picked token cannot be replaced; empty where it can."""


@dataclass(frozen=True, slots=True)
class PaletteSource:
    """One kind of entries; asked whenever the palette opens."""

    order: int
    """Its place in the list: where two are found equally well, the lower one comes first."""
    entries: Callable[[PaletteContext], Iterable[PaletteEntry]]


def unavailable_reason(name: str, context: PaletteContext) -> str:
    """A sentence; empty where the command can be used."""
    why_not = _REASONS.get(name)
    return why_not(context) if why_not is not None else ""


def _escape(context: PaletteContext) -> str:
    centre = context.centre
    is_open = not (centre.error_banner.isHidden() and centre.notice_banner.isHidden())
    return (
        ""
        if context.session.busy or is_open or context.is_presenting()
        else tr("No run is under way, and no message is open.")
    )


def _back(context: PaletteContext) -> str:
    if text_editing.can_apply("undo"):
        return ""
    return "" if context.run_navigation.can_go_back else tr("There is no earlier run, or one is under way.")


def _forward(context: PaletteContext) -> str:
    if text_editing.can_apply("redo"):
        return ""
    return "" if context.run_navigation.can_go_forward else tr("There is no later run, or one is under way.")


def _used_settings(context: PaletteContext) -> str:
    return "" if context.session.run is not None else tr("Nothing has been run yet.")


def _larger(context: PaletteContext) -> str:
    return "" if context.appearance.font_scale < MAX_SCALE else tr("The text is as large as it gets.")


def _smaller(context: PaletteContext) -> str:
    return "" if context.appearance.font_scale > MIN_SCALE else tr("The text is as small as it gets.")


def _normal(context: PaletteContext) -> str:
    return "" if context.appearance.font_scale != 1.0 else tr("The text has that size now.")


def _depth(depth: str, context: PaletteContext) -> str:
    return tr("These are the words now.") if context.appearance.depth == depth else ""


def _language(language: str, context: PaletteContext) -> str:
    return tr("This is the language now.") if context.appearance.language == language else ""


def _edit(name: str, _context: PaletteContext) -> str:
    return "" if text_editing.can_apply(name) else tr("The cursor is in no text field that allows it.")


def _copy(_context: PaletteContext) -> str:
    return "" if text_editing.can_copy() else tr("Nothing is selected.")


def _branch(context: PaletteContext) -> str:
    return context.branch_reason()


_REASONS: Mapping[str, Callable[[PaletteContext], str]] = {
    "branch": _branch,
    "copy": _copy,
    **{name: partial(_edit, name) for name in ("cut", "paste", "select_all")},
    "escape": _escape,
    "previous_run": _back,
    "next_run": _forward,
    "open_used_settings": _used_settings,
    "enlarge_text": _larger,
    "reduce_text": _smaller,
    "reset_text": _normal,
    "speak_as_system": partial(_language, "system"),
    "speak_english": partial(_language, "en"),
    "speak_chinese": partial(_language, "zh_CN"),
    **{f"{depth}_words": partial(_depth, depth) for depth in DEPTHS},
}
