"""Opens the list of plug-ins, and shows new entries of the registries in the pickers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QProcess, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from decodescope.app.control.messages import Messages
from decodescope.app.control.requests import ChosenSettings
from decodescope.app.features.plugins.session import PluginJobs
from decodescope.core.errors import DecodescopeError
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.app.features.plugins.panel import PluginDialog
    from decodescope.core.plugins import Plugin, TemplateKind


def open_in_editor(path: Path) -> bool:
    """Open a text file in the system's editor; never run it. Return whether that was possible."""
    if sys.platform == "win32":
        try:
            os.startfile(str(path), "edit")  # the default verb would run the file
        except OSError:
            return QProcess.startDetached("notepad.exe", [str(path)])[0]
        return True
    if sys.platform == "darwin":
        return QProcess.startDetached("open", ["-t", str(path)])[0]
    return QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))


class PluginController(QObject):
    """Controls the plug-in list above `parent_window`."""

    def __init__(self, parent_window: QWidget, jobs: PluginJobs, chosen: ChosenSettings, messages: Messages) -> None:
        super().__init__(parent_window)
        self._parent_window, self._jobs, self._chosen, self._messages = parent_window, jobs, chosen, messages
        self._dialog: PluginDialog | None = None
        self._selected_folder = ""
        """Key of the `custom_generate` folder whose strategy is selected once it is loaded."""
        jobs.changed.connect(self._show_list)
        jobs.registriesChanged.connect(self._refresh_pickers)
        jobs.failed.connect(self._on_failed)
        jobs.outdated.connect(self._on_outdated)

    @Slot()
    def open(self) -> PluginDialog:
        """Open the list."""
        from decodescope.app.features.plugins.panel import PluginDialog

        if self._dialog is None:
            self._dialog = dialog = PluginDialog(self._parent_window.window())
            dialog.switched.connect(self._switch)
            dialog.editRequested.connect(self._edit)
            dialog.createRequested.connect(self._create)
            dialog.folderChosen.connect(self._on_folder_chosen)
            dialog.trusted.connect(self._add_folder)
            dialog.removeRequested.connect(self._remove_folder)
            dialog.folderRequested.connect(self._open_folder)
            dialog.loadRequested.connect(self._jobs.load)
            dialog.destroyed.connect(self._on_closed)
        self._jobs.scan()
        self._show_list()
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
        return self._dialog

    @property
    def is_open(self) -> bool:
        """Whether the list is open."""
        return self._dialog is not None

    @Slot()
    def _on_closed(self) -> None:
        self._dialog = None

    @Slot()
    def _refresh_pickers(self) -> None:
        self._chosen.strategy.refresh_registry()
        self._chosen.cache.refresh_registry()
        added = next((plugin for plugin in self._jobs.plugins if plugin.key == self._selected_folder), None)
        if added is not None and added.entries:
            self._selected_folder = ""
            self._chosen.strategy.choose(added.entries[0].name, "strategy")

    @Slot()
    def _show_list(self) -> None:
        if self._dialog is not None:
            jobs = self._jobs
            self._dialog.show_plugins(jobs.plugins, str(jobs.folder.path), jobs.is_loaded or jobs.is_loading)

    @Slot(object)
    def _on_failed(self, plugin: Plugin) -> None:
        if plugin.key == self._selected_folder:
            self._selected_folder = ""
        if plugin.error is not None and self._dialog is None:
            text = join_sentences(plugin.error.cause, plugin.error.remedy)
            self._messages.show_notice(text, tr("A plug-in failed"))

    @Slot(object)
    def _on_outdated(self, plugin: Plugin) -> None:
        if self._dialog is None:
            text = tr("“{plugin}” was changed outside this program, and is off. Look at it under Tools, Plug-ins.")
            self._messages.show_notice(text.format(plugin=plugin.title), tr("A plug-in was changed"))

    @Slot(object, bool)
    def _switch(self, plugin: Plugin, is_on: bool) -> None:
        try:
            self._jobs.switch(plugin, is_on)
        except (DecodescopeError, OSError) as error:
            self._show_problem(error)

    @Slot(str)
    def _create(self, kind: TemplateKind) -> None:
        try:
            plugin = self._jobs.create(kind)
        except (DecodescopeError, OSError) as error:
            self._show_problem(error)
            return
        self._edit(plugin)

    @Slot(str)
    def _on_folder_chosen(self, path: str) -> None:
        """Ask whether the code of a chosen folder may run, if it contains a decoding function."""
        from decodescope.core.plugins import find_generate_folder

        if self._dialog is None:
            return
        try:
            self._dialog.ask_trust(str(find_generate_folder(Path(path))))
        except DecodescopeError as error:
            self._dialog.show_message(join_sentences(error.cause, error.remedy))

    @Slot(str)
    def _add_folder(self, path: str) -> None:
        """Add a `custom_generate` folder that the user trusts; its strategy is selected once it is loaded."""
        try:
            self._selected_folder = self._jobs.add_folder(Path(path)).key
        except (DecodescopeError, OSError) as error:
            self._show_problem(error)

    @Slot(object)
    def _remove_folder(self, plugin: Plugin) -> None:
        try:
            self._jobs.remove_folder(plugin)
        except (DecodescopeError, OSError) as error:
            self._show_problem(error)

    @Slot(object)
    def _edit(self, plugin: Plugin) -> None:
        if plugin.path is None:
            return
        self._jobs.begin_editing(plugin)
        if not open_in_editor(plugin.path) and self._dialog is not None:
            self._dialog.show_message(
                tr("No editor was found. Open this file yourself: {path}").format(path=plugin.path)
            )

    @Slot()
    def _open_folder(self) -> None:
        folder = self._jobs.folder.path
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._show_problem(error)
            return
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    def _show_problem(self, error: Exception) -> None:
        self._show_list()  # it replaces the message
        if self._dialog is not None:
            text = str(error)
            if isinstance(error, OSError):
                text = tr("The plug-in folder {folder} cannot be written: {reason}.").format(
                    folder=self._jobs.folder.path, reason=system_error_reason(error)
                )
            self._dialog.show_message(text)
