"""What the palette lists and what it reaches: an entry, a source of entries, the parts that entries act on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtWidgets import QWidget

from app.control.history import History
from app.control.preset_library import PresetLibrary
from app.control.requests import ChosenSettings
from app.control.run_navigation import RunNavigation
from app.control.settings_setup import SettingsController
from app.panels.centre import Centre
from app.panels.setup import SetupPanel
from app.panels.toolbar import Toolbar
from app.session.session import Session
from app.storage.settings import AppearanceSection


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
