"""Secondary windows: settings, shortcuts, help, settings of the last run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from decodescope import core, resources
from decodescope.app.control.help import focused_topic
from decodescope.app.control.messages import Messages
from decodescope.app.control.requests import ChosenSettings
from decodescope.app.control.settings_watcher import SettingsChangeWatcher
from decodescope.app.session.session import Session
from decodescope.app.state.glossary_terms import find_term
from decodescope.app.state.run import Run
from decodescope.app.state.versions import own_version, version_of
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.storage.settings import Settings
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.widgets.screen import screen_of
from decodescope.core.errors import DecodescopeError
from decodescope.resources import language
from decodescope.resources.language import current_language, mark, tr

if TYPE_CHECKING:
    from decodescope.app.panels.settings.settings_dialog import SettingsDialog
    from decodescope.app.state.worker_messages import DecodeBackend

DISTRIBUTIONS = ("PySide6-Essentials", "torch", "transformers", "tokenizers", "numpy")


class Diagnostics(QObject):
    """Builds the text and copies it to the clipboard."""

    def __init__(
        self, parent_window: QWidget, session: Session, chosen: ChosenSettings, settings: Settings, messages: Messages
    ) -> None:
        super().__init__(parent_window)
        self._parent_window, self._session, self._chosen = parent_window, session, chosen
        self._settings, self._messages = settings, messages

    @Slot()
    def copy(self) -> None:
        """Copy the text to the clipboard and show a notice."""
        QGuiApplication.clipboard().setText(self.text())
        self._messages.show_notice(
            tr("Paste it into a bug report. It contains no prompt, no file names and no personal data."),
            tr("Diagnostics copied"),
        )

    def text(self) -> str:
        """Return the report, one line per item, in English for its readers."""
        return "\n".join(f"{name}: {value}" for name, value in self._lines()) + "\n"

    def _lines(self) -> Iterator[tuple[str, object]]:
        import platform

        yield "Decodescope", own_version()
        yield "Python", f"{platform.python_version()} ({platform.python_implementation()})"
        for name in DISTRIBUTIONS:
            yield name, version_of(name)
        yield "Qt", f"{qVersion()}, platform {QGuiApplication.platformName()}"
        yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
        yield "processors", os.cpu_count() or "unknown"
        screen = screen_of(self._parent_window)
        yield "screen", f"{screen.size().width()} x {screen.size().height()}, ratio {screen.devicePixelRatio():g}"
        yield "language", language.current_language()
        appearance, compute = self._settings.appearance, self._settings.compute
        yield "appearance", f"{appearance.theme}, text {round(100 * appearance.font_scale)} %, {appearance.depth} words"
        yield "compute settings", f"device {compute.device}, number type {compute.dtype}, threads {compute.threads}"
        yield "chosen", f"{self._chosen.strategy.name}, cache {self._chosen.cache.name}"
        run = self._session.run
        started = run.started if run is not None else None
        if started is not None:
            yield "last run", f"{started.strategy}, cache {started.cache}, {started.device}, {started.dtype}"
        if run is not None and run.outcome is not None:
            yield "it ended as", run.outcome.kind


def documentation_folder(root: Path = Path(resources.__file__).parents[1]) -> Path | None:
    """Return the folder of the documentation's pages on this computer: of a checkout, or of an installed program.

    `root` is the folder of the program. None if there are none.
    """
    folders = (root / "docs", root / "resources" / "documentation")
    return next((folder for folder in folders if (folder / "guide" / "README.md").is_file()), None)


class Dialogs(QObject):
    """Opens dialogs above `parent_window`. Emits a signal for each changed settings section, and
    `changed` for all.
    """

    appearanceChanged = Signal()
    loadingChanged = Signal()
    historyChanged = Signal()
    updatesChanged = Signal()
    forgetAllRequested = Signal()
    languageChosen = Signal(str)
    noticed = Signal(str)
    changed = Signal()
    backendChanged = Signal(object)
    commandRequested = Signal(str)
    """Name of the command whose button was pressed in the help window."""

    def __init__(
        self,
        parent_window: QWidget,
        store: SettingsStore,
        session: Session,
        changes: SettingsChangeWatcher,
        update_source: Callable[[], tuple[str, str]],
    ) -> None:
        """`update_source` returns the address where new versions are announced, and why it cannot be used, if so."""
        super().__init__(parent_window)
        self._update_source = update_source
        self._parent_window, self._store, self._session, self._changes = parent_window, store, session, changes
        self._backend: DecodeBackend | None = None
        self._settings: SettingsDialog | None = None

    @property
    def scroll_position(self) -> int | None:
        """Scroll position of the settings window in pixels; None while it is closed."""
        return self._settings.scroll_position if self._settings is not None else None

    @Slot()
    def open_settings(self) -> SettingsDialog:
        """Open the settings window."""
        from decodescope.app.panels.settings.settings_dialog import SettingsDialog

        dialog = SettingsDialog(
            self._store.settings, str(self._store.folder), self._parent_window.window(), *self._update_source()
        )
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
        """Show the decode backend of the loaded model in the settings, now or when they are opened."""
        self._backend = backend
        self.backendChanged.emit(backend)

    @Slot()
    def open_shortcuts(self) -> None:
        """Open the list of keyboard shortcuts."""
        from decodescope.app.panels.info_dialogs import shortcuts_dialog

        shortcuts_dialog(self._parent_window.window()).open()

    @Slot()
    def open_help(self) -> None:
        """Open the help window: the focused control, first steps, views and keys."""
        from decodescope.app.panels.info_dialogs import HelpDialog

        dialog = HelpDialog(self._parent_window.window(), find_term(focused_topic()))
        dialog.commandRequested.connect(self.commandRequested)
        dialog.open()

    @Slot()
    def open_documentation(self) -> None:
        """Open the documentation on this computer, or say that it is missing."""
        folder = documentation_folder()
        if folder is None:
            self.noticed.emit(tr("The documentation is not installed. Press F1 for help in the window."))
            return
        from decodescope.app.panels.documentation import DocumentationDialog

        DocumentationDialog(folder, current_language(), self._parent_window.window()).show()

    @Slot()
    def open_about(self) -> None:
        """Open the window with name, version and licence."""
        from decodescope import core
        from decodescope.app.panels.info_dialogs import about_dialog

        about_dialog(own_version(), core.kernel_status().sentence, self._parent_window.window()).open()

    @Slot()
    def open_used_settings(self) -> None:
        """Show the settings that the last run actually used."""
        from decodescope.app.panels.info_dialogs import used_settings_dialog

        if self._session.run is not None:
            used_settings_dialog(self._session.run, self._changes.changes, self._parent_window.window()).open()

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
        elif section == "updates":
            self.updatesChanged.emit()
        self.changed.emit()


_TITLE = mark("Copy as code")


class CodeController(QObject):
    """Generates the script of the session's run and shows it above `parent_window`."""

    def __init__(self, parent_window: QWidget, session: Session, messages: Messages) -> None:
        super().__init__(parent_window)
        self._parent_window, self._session, self._messages = parent_window, session, messages

    @Slot()
    def show_code(self) -> None:
        """Show the script, or a notice if there is none."""
        run = self._session.run
        if run is None:
            self._messages.show_notice(tr("Run something first: the code reproduces the shown run."), tr(_TITLE))
            return
        if run.is_scored:
            self._messages.show_notice(tr("To score a text, call decodescope.score(model, text)."), tr(_TITLE))
            return
        try:
            scripts, reason = run_scripts(run)
        except DecodescopeError as error:
            self._messages.show_notice(str(error), tr(_TITLE))
            return
        from decodescope.app.panels.info_dialogs import CodeDialog

        dialog = CodeDialog(scripts, reason, self._parent_window.window())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()


def run_scripts(run: Run) -> tuple[dict[str, str], str]:
    """Return the scripts of a run by flavour, and why there is no transformers script (empty if there is). Raises
    DecodescopeError.
    """
    request, load, drafters = _with_phrase_ids(run), run.request.load, run.request.draft_names
    kind = load.dtype if load.weights == "auto" else load.weights
    limit = load.memory_limit
    own = core.as_code(
        request, "core", model=load.model, drafters=drafters, device=load.device, dtype=kind, memory_limit=limit
    )
    device, dtype = (run.started.device, run.started.dtype) if run.started else (load.device, load.dtype)
    if reason := core.why_not_generate(
        request, model=load.model, drafters=drafters, device=device, dtype=dtype, memory_limit=limit
    ):
        return {"core": own}, tr("No transformers script: {reason}").format(reason=reason)
    script = core.as_code(request, model=load.model, drafters=drafters, device=device, dtype=dtype)
    return {"transformers": script, "core": own}, ""


def _with_phrase_ids(run: Run) -> RunRequest:
    """Return the request with the token ids that the run used for phrases."""
    resolved = dict(run.started.settings) if run.started else {}
    config = {name: resolved.get(name, value) for name, value in run.request.config.items()}
    return replace(run.request, config=config)
