"""The window's plug-ins: loads them in the worker, watches their folder, and reloads a file that is saved."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal, Slot

from decodescope.app.session.queries.base import Answer, Query, Report
from decodescope.app.session.session import Session
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import DecodescopeError

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core.plugins import Plugin, PluginFolder, TemplateKind

SETTLE_MS = 150
"""Delay after a change of the folder: an editor may write a file in several steps."""

INSTALL_SECONDS = 2.0
"""Seconds that the worker waits for the window to add plug-ins to the registries, before the next run."""


@plain(frozen=True)
class PluginQuery(Query):
    """Query to run the plug-ins that are switched on in a data folder; reports all of them once."""

    data_folder: Path
    installed: threading.Event = field(default_factory=threading.Event, compare=False)
    """Set once the window has added them to the registries: the worker waits for it, so that the next run uses them."""

    def run(self, models: LocalModels, report: Report) -> None:
        """Report the list of all plug-ins, and wait until the window has installed them."""
        from decodescope.core.plugins import PluginFolder

        folder = PluginFolder(self.data_folder)
        if any(plugin.state == "on" for plugin in folder.scan()):
            from decodescope.app.session.local_models import open_libraries

            open_libraries()
        report(folder.load())
        self.installed.wait(INSTALL_SECONDS)


class PluginJobs(QObject):
    """Loads plug-ins and keeps the list up to date. It outlives a change of the language.

    `changed`: the list or a state changed. `registriesChanged`: entries were added or removed. `failed(Plugin)`: a
    plug-in that is on failed.
    `outdated(Plugin)`: a file was changed elsewhere, and is off until the user switches it on again.
    """

    changed = Signal()
    registriesChanged = Signal()
    failed = Signal(object)
    outdated = Signal(object)

    def __init__(self, session: Session, data_folder: Callable[[], Path]) -> None:
        super().__init__(session)
        self._session, self._data_folder = session, data_folder
        self.plugins: tuple[Plugin, ...] = ()
        self.is_loaded = False
        """Whether plug-ins have been loaded; not in windows for recordings and tours, until the user requests it."""
        self._editing: set[str] = set()
        """Keys of the files that were opened in an editor by this program; saving one keeps it switched on."""
        self._reported: set[tuple[str, str]] = set()
        self._query: PluginQuery | None = None
        self._is_stale = False
        self._watcher = QFileSystemWatcher(self)
        self._settling = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settling.timeout.connect(self._on_settled)
        self._watcher.directoryChanged.connect(self._on_disk)
        self._watcher.fileChanged.connect(self._on_disk)
        session.answered.connect(self._on_answer)

    @property
    def folder(self) -> PluginFolder:
        """The plug-in folder."""
        from decodescope.core.plugins import PluginFolder  # not needed to show the window

        return PluginFolder(self._data_folder())

    @property
    def is_loading(self) -> bool:
        """Whether the worker is loading plug-ins."""
        return self._query is not None

    def scan(self) -> None:
        """Update the list without running anything, unless plug-ins are loaded."""
        if not self.is_loaded and self._query is None:
            self.plugins = tuple(self.folder.scan())
            self.changed.emit()

    @Slot()
    def load(self) -> None:
        """Run all plug-ins that are on; `changed` follows."""
        if self._query is not None:
            self._is_stale = True
            return
        self._watch()
        self._query = PluginQuery(self._data_folder())
        self._session.request(self._query)
        self.changed.emit()

    def switch(self, plugin: Plugin, is_on: bool) -> None:
        """Switch a plug-in on or off, and load it. Raises DecodescopeError, OSError."""
        (self.folder.switch_on if is_on else self.folder.switch_off)(plugin)
        self._editing.discard(plugin.key)
        self.load()

    def create(self, kind: TemplateKind) -> Plugin:
        """Write a template that is on, load it and return it. Raises DecodescopeError, OSError."""
        plugin = self.folder.create(kind)
        self._editing.add(plugin.key)
        self.load()
        return plugin

    def add_folder(self, path: Path) -> Plugin:
        """Add a `custom_generate` folder that the user trusts, and load it. Raises DecodescopeError, OSError."""
        plugin = self.folder.add_folder(path)
        self.load()
        return plugin

    def remove_folder(self, plugin: Plugin) -> None:
        """Remove a `custom_generate` folder from the list and from the registries. Raises DecodescopeError, OSError."""
        self.folder.remove_folder(plugin)
        self._editing.discard(plugin.key)
        self.load()

    def begin_editing(self, plugin: Plugin) -> None:
        """Keep a file switched on when it is saved from now on, if it is on now."""
        if plugin.state == "on" or plugin.error is not None:
            self._editing.add(plugin.key)
        self._watch()

    def close(self) -> None:
        """Stop watching the folder and remove the plug-ins from the registries."""
        self._settling.stop()
        self._watcher.blockSignals(True)
        if self.is_loaded:
            from decodescope.core.plugins import install

            install([])

    def _watch(self) -> None:
        """Watch the folders and their files; editors that replace a file end the watch on it."""
        folder = self.folder.path
        own = [plugin.path.parent for plugin in self.plugins if plugin.folder is not None and plugin.path is not None]
        paths = [str(path) for each in (folder, *own) if each.is_dir() for path in (each, *each.glob("*.py"))]
        known = {*self._watcher.directories(), *self._watcher.files()}
        if new := [path for path in paths if path not in known]:
            self._watcher.addPaths(new)

    @Slot(str)
    def _on_disk(self, _path: str) -> None:
        self._settling.start()

    @Slot()
    def _on_settled(self) -> None:
        self._watch()
        known = {plugin.key: (plugin.digest, plugin.state) for plugin in self.plugins if plugin.path is not None}
        found = [plugin for plugin in self.folder.scan() if plugin.path is not None]
        for plugin in found:
            if plugin.state == "changed" and plugin.key in self._editing:
                with suppress(DecodescopeError, OSError):  # it then remains "changed", which the list shows
                    self.folder.switch_on(plugin)
        if {plugin.key: plugin.digest for plugin in found} == {key: digest for key, (digest, _) in known.items()}:
            return
        if self.is_loaded or any(plugin.key in self._editing for plugin in found):
            self.load()
        else:
            self.scan()

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        query = self._query
        if query is None or answer.query is not query:
            return
        from decodescope.core.plugins import install, installed

        self._query, self.is_loaded = None, True
        before = installed()
        if isinstance(answer.result, list):
            self.plugins = tuple(install(answer.result))
        if before or installed():
            self.registriesChanged.emit()
        self.changed.emit()
        query.installed.set()
        self._watch()
        for plugin in self.plugins:
            self._report(plugin)
        if self._is_stale:
            self._is_stale = False
            self.load()

    def _report(self, plugin: Plugin) -> None:
        """Emit a failure or an outdated file once per content."""
        key = (plugin.key, plugin.digest)
        if plugin.state not in ("failed", "changed") or key in self._reported:
            return
        self._reported.add(key)
        (self.failed if plugin.error is not None else self.outdated).emit(plugin)
