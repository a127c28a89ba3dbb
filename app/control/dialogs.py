"""The small windows over the main one: settings, keys, what the last run used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.setting_changes import SettingsChangeWatcher
from app.session.session import Session
from app.storage.settings_file import SettingsStore

if TYPE_CHECKING:
    from app.panels.settings_dialog import SettingsDialog
    from app.state.decode_backend import DecodeBackend


class Dialogs(QObject):
    """Opens them above the window that `over` lies in; tells which settings were changed, and `changed` for all."""

    appearanceChanged = Signal()
    loadingChanged = Signal()
    historyChanged = Signal()
    forgetAllRequested = Signal()
    languageChosen = Signal(str)
    changed = Signal()
    backendChanged = Signal(object)
    commandRequested = Signal(str)
    """A button of the help window was pressed: the name of a command."""

    def __init__(self, over: QWidget, store: SettingsStore, session: Session, changes: SettingsChangeWatcher) -> None:
        super().__init__(over)
        self._over, self._store, self._session, self._changes = over, store, session, changes
        self._backend: DecodeBackend | None = None
        self._settings: SettingsDialog | None = None

    @property
    def scroll_position(self) -> int | None:
        """How far down the settings window shows its settings, in pixels; None while it is not open."""
        return self._settings.scroll_position if self._settings is not None else None

    @Slot()
    def open_settings(self) -> SettingsDialog:
        """The settings window."""
        from app.panels.settings_dialog import SettingsDialog

        dialog = SettingsDialog(self._store.settings, str(self._store.folder), self._over.window())
        dialog.changed.connect(self._on_changed)
        dialog.forgetAllRequested.connect(self.forgetAllRequested)
        dialog.languageChosen.connect(self.languageChosen)
        dialog.destroyed.connect(self._on_settings_closed)
        self.backendChanged.connect(dialog.show_backend)
        dialog.show_backend(self._backend)
        dialog.open()
        self._settings = dialog
        return dialog

    @Slot(object)
    def show_decode_backend(self, backend: DecodeBackend | None) -> None:
        """Who takes the steps of the model in memory; the settings say so, now or once they are open."""
        self._backend = backend
        self.backendChanged.emit(backend)

    @Slot()
    def open_shortcuts(self) -> None:
        """The list of keys."""
        from app.panels.dialogs import shortcuts_dialog

        shortcuts_dialog(self._over.window()).open()

    @Slot()
    def open_help(self) -> None:
        """First steps, views and keys."""
        from app.panels.help_dialog import HelpDialog

        dialog = HelpDialog(self._over.window())
        dialog.commandRequested.connect(self.commandRequested)
        dialog.open()

    @Slot()
    def open_about(self) -> None:
        """Name, version and licence."""
        from app.control.diagnostics import own_version
        from app.panels.dialogs import about_dialog

        about_dialog(own_version(), self._over.window()).open()

    @Slot()
    def open_used_settings(self) -> None:
        """What the last run really used."""
        from app.panels.dialogs import used_settings_dialog

        if self._session.run is not None:
            used_settings_dialog(self._session.run, self._changes.changes, self._over.window()).open()

    @Slot()
    def _on_settings_closed(self) -> None:
        self._settings = None

    @Slot(str)
    def _on_changed(self, section: str) -> None:
        if section == "appearance":
            self.appearanceChanged.emit()
        elif section in ("compute", "models"):
            self.loadingChanged.emit()
        elif section == "history":
            self.historyChanged.emit()
        self.changed.emit()
