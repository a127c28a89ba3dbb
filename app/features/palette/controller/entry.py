"""Palette entries, and the context in which they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from PySide6.QtWidgets import QWidget

from decodescope.app.control.requests import ChosenSettings
from decodescope.app.control.settings_controller import PresetLibrary, SettingsController
from decodescope.app.features.history.controller.history import History
from decodescope.app.features.history.controller.run_navigation import RunNavigation
from decodescope.app.panels.centre import Centre
from decodescope.app.panels.setup_panel import SetupPanel
from decodescope.app.panels.toolbar import Toolbar
from decodescope.app.session.session import Session
from decodescope.app.storage.settings import MAX_SCALE, MIN_SCALE, AppearanceSection
from decodescope.app.widgets import text_editing
from decodescope.resources.depth import DEPTHS
from decodescope.resources.language import tr


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """A palette entry. `key` identifies it among the recently used ones."""

    key: str
    title: str
    """Translated title."""
    kind: str
    """Translated kind, such as "Action"."""
    run: Callable[[], object]
    aliases: tuple[str, ...] = ()
    """Other search words: the English title, the name on the command line."""
    shortcut: str = ""
    about: str = ""
    """A one-sentence description."""
    penalty: float = 0.0
    """Score penalty, on the scale of `search`."""
    reason: str = ""
    """Why it is unavailable; empty if it is available."""


class PaletteAppearance(Protocol):
    """Changes the appearance of the window."""

    def set_theme(self, name: str) -> None:
        """Set the theme by name."""

    def set_font_scale(self, scale: float) -> None:
        """Set the text scale; 1.0 is 100 %."""


@dataclass(frozen=True, slots=True)
class PaletteContext:
    """The parts of the window that entries use."""

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
    """Why the selected token cannot be replaced; empty if it can."""


def unavailable_reason(name: str, context: PaletteContext) -> str:
    """Return a sentence; empty if the command is available."""
    why_not = _REASONS.get(name)
    return why_not(context) if why_not is not None else ""


def _escape(context: PaletteContext) -> str:
    centre = context.centre
    is_open = not (centre.error_banner.isHidden() and centre.notice_banner.isHidden())
    return (
        ""
        if context.session.busy or is_open or context.is_presenting()
        else tr("No run is in progress and no message is open.")
    )


def _back(context: PaletteContext) -> str:
    if text_editing.can_apply("undo"):
        return ""
    return "" if context.run_navigation.can_go_back else tr("There is no earlier run, or a run is in progress.")


def _forward(context: PaletteContext) -> str:
    if text_editing.can_apply("redo"):
        return ""
    return "" if context.run_navigation.can_go_forward else tr("There is no later run, or a run is in progress.")


def _used_settings(context: PaletteContext) -> str:
    return "" if context.session.run is not None else tr("No run yet.")


def _larger(context: PaletteContext) -> str:
    return "" if context.appearance.font_scale < MAX_SCALE else tr("The text is at its maximum size.")


def _smaller(context: PaletteContext) -> str:
    return "" if context.appearance.font_scale > MIN_SCALE else tr("The text is at its minimum size.")


def _normal(context: PaletteContext) -> str:
    return "" if context.appearance.font_scale != 1.0 else tr("The text already has this size.")


def _depth(depth: str, context: PaletteContext) -> str:
    return tr("This level is already active.") if context.appearance.depth == depth else ""


def _language(language: str, context: PaletteContext) -> str:
    return tr("This language is already active.") if context.appearance.language == language else ""


def _edit(name: str, _context: PaletteContext) -> str:
    return "" if text_editing.can_apply(name) else tr("The focused field does not allow this.")


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
