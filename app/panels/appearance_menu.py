"""The menu behind `Aa`: theme, text size, depth of words, which panels are open, the windows of settings and keys."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from app.panels.shortcuts import key_of
from app.theme.language import SYSTEM
from app.theme.palettes import SCHEMES
from resources.depth import EXACT, PLAIN, USUAL
from resources.language import LANGUAGES, mark, tr

_ACTIONS = (
    ("enlarge_text", mark("Larger text")),
    ("reduce_text", mark("Smaller text")),
    ("reset_text", mark("Normal text size")),
    ("", ""),
    ("plain_words", mark("Plain words")),
    ("usual_words", mark("Usual words")),
    ("exact_words", mark("Exact words")),
    ("", ""),
    ("toggle_setup", mark("Prompt and parameters")),
    ("toggle_inspector", mark("Inspector")),
    ("toggle_timeline", mark("Timeline")),
    ("", ""),
    ("toggle_history", mark("History")),
    ("previous_run", mark("Previous run")),
    ("next_run", mark("Next run")),
    ("", ""),
    ("get_model", mark("Get a model…")),
    ("connect_engine", mark("Connect to an engine…")),
    ("open_run", mark("Open a recorded run…")),
    ("save_run", mark("Save this run…")),
    ("save_picture", mark("Save or copy what is shown…")),
    ("copy_picture", mark("Copy a picture of the view")),
    ("copy_text", mark("Copy the text")),
    ("copy_coloured", mark("Copy the text with its colours")),
    ("copy_code", mark("Copy the run as code…")),
    ("", ""),
    ("choose_tour", mark("Guided tours…")),
    ("guess_first", mark("Guess first")),
    ("present", mark("Present")),
    ("record_demo", mark("Record a demo…")),
    ("open_settings", mark("Settings…")),
    ("open_glossary", mark("Glossary")),
    ("open_shortcuts", mark("Keyboard shortcuts")),
)


_LABS = (
    ("open_scale", mark("Scale…")), ("open_preference_lab", mark("Preference lab…")), ("open_speed", mark("Speed…")),
)  # fmt: skip
"""Rooms beside the text, in a menu of their own."""
_WORDS = {"plain_words": PLAIN, "usual_words": USUAL, "exact_words": EXACT}
"""The depth of words that each of these actions asks for."""


def scheme_titles() -> tuple[tuple[str, str], ...]:
    """(choice, title in English) of every theme."""
    return tuple(zip(SCHEMES, (mark("Follow the system"), mark("Light"), mark("Dark")), strict=True))


def language_titles() -> tuple[tuple[str, str], ...]:
    """(choice, title): each language by its own name, so that whoever cannot read the others finds it."""
    return ((SYSTEM, mark("Follow the system")), *LANGUAGES.items())


class AppearanceMenu(QMenu):
    """`themeChosen` and `languageChosen` with a name as the settings have it; `actionChosen` with that of an action
    (`app.window.actions`)."""

    themeChosen = Signal(str)
    languageChosen = Signal(str)
    actionChosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = QActionGroup(self)
        for name, title in scheme_titles():
            action = self.addAction(tr(title))
            action.setCheckable(True)
            action.setData(name)
            self._themes.addAction(action)
        self._themes.triggered.connect(self._on_theme)
        self._languages = self._language_menu()
        self._lab_menu()
        self.addSeparator()
        for name, title in _ACTIONS:
            self._add(self, name, title)

    def show_theme(self, theme: str) -> None:
        """Tick the theme in use."""
        for action in self._themes.actions():
            action.setChecked(action.data() == theme)

    def show_language(self, choice: str) -> None:
        """Tick the language that is chosen."""
        for action in self._languages.actions():
            action.setChecked(action.data() == choice)

    @Slot(dict)
    def show_panels(self, panels: dict[str, bool]) -> None:
        """Tick the panels that are open, by the name of their action."""
        self._tick(panels)

    def show_depth(self, depth: str) -> None:
        """Tick the depth of words in use."""
        self._tick({name: wanted == depth for name, wanted in _WORDS.items()})

    def _tick(self, on: Mapping[str, bool]) -> None:
        for action in self.actions():
            if action.data() in on:
                action.setCheckable(True)
                action.setChecked(on[action.data()])

    @Slot(bool, bool)
    def show_steps(self, back: bool, forward: bool) -> None:
        """Whether there are runs before and after the shown one."""
        for action in self.actions():
            if action.data() in ("previous_run", "next_run"):
                action.setEnabled(back if action.data() == "previous_run" else forward)

    def _language_menu(self) -> QActionGroup:
        menu = self.addMenu(tr("Language"))
        menu.setObjectName("languageMenu")
        group = QActionGroup(menu)
        for choice, title in language_titles():
            action = menu.addAction(tr(title))
            action.setCheckable(True)
            action.setData(choice)
            group.addAction(action)
        group.triggered.connect(self._on_language)
        return group

    @Slot(QAction)
    def _on_language(self, action: QAction) -> None:
        self.languageChosen.emit(action.data())

    def _lab_menu(self) -> None:
        menu = self.addMenu(tr("Labs"))
        menu.setObjectName("labsMenu")
        for name, title in _LABS:
            self._add(menu, name, title)

    def _add(self, menu: QMenu, name: str, title: str) -> None:
        if not name:
            menu.addSeparator()
            return
        action = menu.addAction(f"{tr(title)}\t{key_of(name)}")
        action.setData(name)
        action.triggered.connect(self._on_action)

    @Slot(QAction)
    def _on_theme(self, action: QAction) -> None:
        self.themeChosen.emit(action.data())

    @Slot()
    def _on_action(self) -> None:
        action = self.sender()
        assert isinstance(action, QAction)
        self.actionChosen.emit(action.data())
