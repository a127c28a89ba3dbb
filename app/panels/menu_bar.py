"""Menu bar with every command of `app.panels.commands`; native where the desktop has a global menu bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar, QWidget

from decodescope.app.panels.commands import COMMANDS, FILE, MENUS, VIEW, Command
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.resources.language import mark, tr

_ROLES = {
    "open_settings": QAction.MenuRole.PreferencesRole,
    "quit": QAction.MenuRole.QuitRole,
    "about": QAction.MenuRole.AboutRole,
}
"""macOS roles of these commands. All others have no role: macOS would guess one from the title."""
_GROUP_LOCATIONS = {"views": (VIEW, 0, ""), "theme": (VIEW, 3, mark("Theme"))}
"""Menu, section and submenu of each group of choices."""
RECENT_SECTION = 1


class MenuChoice(NamedTuple):
    """A checkable line of a choice group."""

    value: str
    title: str
    key: str = ""
    """Key that is shown but not bound."""


class ChoiceGroup(NamedTuple):
    """Exclusive group of checkable lines: the views, the themes."""

    choices: Sequence[MenuChoice]
    current: Callable[[], str]
    choose: Callable[[str], object]
    is_available: Callable[[str], bool]


class MenuState(Protocol):
    """Window state shown in the menus; read whenever a menu opens."""

    def unavailable_reason(self, name: str) -> str:
        """Return why a command cannot be used now; empty if it can."""

    def is_checked(self, name: str) -> bool | None:
        """Return whether a command is checked; None if it is not checkable."""

    @property
    def groups(self) -> Mapping[str, ChoiceGroup]:
        """Choice groups by the names in `_GROUP_PLACES`."""

    @property
    def recent_files(self) -> Sequence[str]:
        """Paths of recently opened or saved files, the latest first."""


class MenuBar(QMenuBar):
    """Menu bar. Emits `chosen(command name)`, `recentChosen(path)` and `recentCleared`."""

    chosen = Signal(str)
    recentChosen = Signal(str)
    recentCleared = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("menuBar")
        self.commands: dict[str, QAction] = {}
        self.menus: dict[str, QMenu] = {}
        self._state: MenuState | None = None
        self._choices: dict[str, list[QAction]] = {}

    def build(self, state: MenuState) -> None:
        """Create all menus; `state` is read whenever one of them opens."""
        self._state = state
        for title in MENUS:
            self._build_menu(title)

    def bind_keys(self, widget: QWidget) -> None:
        """Make the keys of all commands work in the window of `widget`, even while the menu bar is hidden."""
        widget.addActions(list(self.commands.values()))

    @Slot()
    def refresh(self) -> None:
        """Update checks, disabled lines and recent files of every menu."""
        for menu in self.menus.values():
            self._refresh_menu(menu)

    def _build_menu(self, title: str) -> None:
        menu = self._add_menu(self, tr(title), title)
        sections = {command.section for command in COMMANDS if command.menu == title}
        sections |= {section for place, section, _submenu in _GROUP_LOCATIONS.values() if place == title}
        for section in sorted(sections):
            if not menu.isEmpty():
                menu.addSeparator()
            for name, (place, group_section, submenu) in _GROUP_LOCATIONS.items():
                if (place, group_section) == (title, section):
                    self._add_group(self._submenu(menu, submenu), name)
            for command in COMMANDS:
                if (command.menu, command.section) == (title, section):
                    self._add_command(self._submenu(menu, command.submenu), command)
            if (title, section) == (FILE, RECENT_SECTION):
                self._add_menu(menu, tr("Open recent"), "recent")

    def _submenu(self, menu: QMenu, title: str) -> QMenu:
        if not title:
            return menu
        return self.menus.get(title) or self._add_menu(menu, tr(title), title)

    def _add_menu(self, parent: QMenuBar | QMenu, title: str, name: str) -> QMenu:
        menu = parent.addMenu(title)
        menu.setObjectName(name.replace("&", ""))
        menu.setToolTipsVisible(True)
        menu.aboutToShow.connect(partial(self._refresh_menu, menu))
        menu.aboutToHide.connect(partial(self._release_keys, menu))
        self.menus[name] = menu
        return menu

    def _add_command(self, menu: QMenu, command: Command) -> None:
        title = tr(command.short_title)
        action = QAction(caption(f"{title}\t{tr(command.shown_key)}" if command.shown_key else title), self)
        action.setObjectName(command.name)
        action.setData(command.name)
        action.setMenuRole(_ROLES.get(command.name, QAction.MenuRole.NoRole))
        action.setShortcuts([QKeySequence(key) for key in command.keys])
        action.setCheckable(self._state is not None and self._state.is_checked(command.name) is not None)
        action.triggered.connect(partial(self.chosen.emit, command.name))
        menu.addAction(action)
        self.commands[command.name] = action

    def _add_group(self, menu: QMenu, name: str) -> None:
        assert self._state is not None
        group = QActionGroup(menu)
        chosen = self._state.groups[name]
        self._choices[name] = []
        for choice in chosen.choices:
            action = menu.addAction(caption(f"{choice.title}\t{choice.key}" if choice.key else choice.title))
            action.setMenuRole(QAction.MenuRole.NoRole)
            action.setCheckable(True)
            action.setData(choice.value)
            action.triggered.connect(partial(chosen.choose, choice.value))
            group.addAction(action)
            self._choices[name].append(action)

    def _refresh_menu(self, menu: QMenu, *_shown: object) -> None:
        state = self._state
        assert state is not None
        for action in menu.actions():
            name = action.data()
            if self.commands.get(name) is action:
                reason = state.unavailable_reason(name)
                action.setEnabled(not reason)
                action.setToolTip(tooltip(reason))
                if action.isCheckable():
                    action.setChecked(bool(state.is_checked(name)))
        for name, actions in self._choices.items():
            group = state.groups[name]
            current = group.current()
            for action in actions:
                action.setChecked(action.data() == current)
                action.setEnabled(group.is_available(action.data()))
        if menu in (self.menus[FILE], self.menus["recent"]):
            self._fill_recent(state.recent_files)

    def _release_keys(self, menu: QMenu) -> None:
        """Re-enable the commands disabled while the menu was open, so that their keys work as soon as the command is
        usable again.
        """
        for action in menu.actions():
            if self.commands.get(action.data()) is action:
                action.setEnabled(True)

    def _fill_recent(self, paths: Sequence[str]) -> None:
        menu = self.menus["recent"]
        menu.clear()
        for path in paths:
            action = menu.addAction(caption(Path(path).name))
            action.setData(path)
            action.triggered.connect(partial(self.recentChosen.emit, path))
        if paths:
            menu.addSeparator()
            menu.addAction(tr("Clear this list")).triggered.connect(self.recentCleared)
        menu.menuAction().setEnabled(bool(paths))
