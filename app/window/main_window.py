"""The main window: first an empty frame, which is on the screen at once, then everything in it."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QColor, QGuiApplication, QPaintEvent, QPalette
from PySide6.QtWidgets import QMainWindow

from app.storage.files import StorageError
from app.storage.settings_file import SettingsStore
from app.theme.palettes import PALETTES
from core.events import Notice

if TYPE_CHECKING:
    from app.control.chat import ChatController
    from app.control.library import Library
    from app.control.messages import Messages
    from app.control.setup import SetupController
    from app.panels.centre import Centre
    from app.panels.setup import SetupPanel
    from app.panels.side_splitter import SideSplitter
    from app.panels.status_line import StatusLine
    from app.panels.toolbar import Toolbar
    from app.session.engine import Engine
    from app.session.session import Session
    from app.state.requests import ErrorReport, ModelInfo, Outcome
    from app.state.run import Run
    from app.views.inspector.panel import Inspector
    from app.views.timeline import Timeline
    from app.window.appearance import Appearance
    from app.window.parts import Parts
    from app.window.view_feed import ViewFeed
    from core.events import Event

FIRST_SIZE = (1440, 900)
LEAST_SIZE = (900, 600)
FRAME = QSize(16, 48)
"""What a title bar and borders take around the first window; how much it really is, is known only once it is shown."""


def first_size(screen: QSize) -> QSize:
    """How large the very first window is on a screen that has so much room, its frame included."""
    return QSize(*FIRST_SIZE).boundedTo(screen - FRAME)


class MainWindow(QMainWindow):
    """Everything on one screen; its `parts` are there once it is assembled."""

    closed = Signal()

    parts: Parts
    session: Session
    toolbar: Toolbar
    setup: SetupPanel
    centre: Centre
    inspector: Inspector
    timeline: Timeline
    status: StatusLine
    splitter: SideSplitter
    controller: SetupController
    appearance: Appearance
    library: Library
    messages: Messages
    feed: ViewFeed
    chat: ChatController

    def __init__(self, store: SettingsStore, engine: Engine | None = None, assembled: bool = True) -> None:
        super().__init__()
        self.setWindowTitle("Tokenscope")
        self.store, self.settings = store, store.load()
        self._engine = engine
        self._is_assembled = self._is_warm = self.is_closed = False
        self._place()
        self._paint_empty()
        if assembled:
            self.assemble()

    def assemble(self) -> None:
        """Put everything into the frame; once."""
        if self._is_assembled:
            return
        from app.window.assembly import assemble  # the panels and views take a while to import

        self._is_assembled = True
        self.store.drop_unusable()
        assemble(self, self._engine)
        if self.store.notices:
            self.messages.show_notice("\n".join(self.store.notices), "The settings were repaired")

    # --- runs ---------------------------------------------------------------------------------------------------

    @Slot()
    def run(self) -> None:
        """Run what is set; a run under way is stopped first."""
        problems = self.controller.problems
        if problems:
            self.messages.show_setup_error("This cannot be run yet", " ".join(problems), "Change it and run again.")
            return
        self.messages.dismiss()
        self.session.start(self.controller.request())

    @Slot()
    def run_again(self) -> None:
        """The last run once more, whatever has been set since; an unlocked seed is drawn anew."""
        run = self.session.run
        if run is None:
            self.run()
            return
        self.messages.dismiss()
        seed = run.request.seed if self.toolbar.seed.is_locked else self.toolbar.seed.next_seed()
        self.session.start(replace(run.request, seed=seed))

    @Slot()
    def stop(self) -> None:
        """Stop the run; what it has written stays."""
        self.session.stop()

    @Slot()
    def escape(self) -> None:
        """Stop the run, or close the message that is open."""
        if self.session.busy:
            self.stop()
        else:
            self.messages.dismiss()

    @Slot()
    def run_or_stop(self) -> None:
        """What the one button does."""
        if self.session.busy:
            self.stop()
        else:
            self.run()

    # --- what the session says ----------------------------------------------------------------------------------

    @Slot(object)
    def on_run_started(self, run: Run) -> None:
        """A run has begun."""
        self.centre.show_texts(run)
        self.status.show_run(run)

    @Slot(object, object)
    def on_events(self, run: Run, events: list[Event]) -> None:
        """A batch has come; that memory ended and how the run goes on is said at once."""
        for event in events:
            if isinstance(event, Notice) and event.kind == "memory_fallback":
                self.messages.show_notice(event.message, "Memory ran out; the run goes on")
        if len(run.sequences) != self.centre.texts.count():
            self.centre.show_texts(run)
        self.status.first_events()

    @Slot(object)
    def on_finished(self, outcome: Outcome) -> None:
        """The run has ended, one way or another."""
        self.status.show_outcome(outcome.message)
        run = self.session.run
        if run is not None and run.notices and outcome.error is None:
            self.messages.show_notice("\n".join(notice.message for notice in run.notices), "About this run")

    @Slot(str)
    def on_state(self, state: str) -> None:
        """Run, Stop or Stopping…, and whether the thin bar runs."""
        face = "stopping" if state == "stopping" else "stop" if self.session.busy else "run"
        self.toolbar.run.set_face(face)
        self.centre.set_loading(state == "loading")

    @Slot(object)
    def on_failed(self, error: ErrorReport) -> None:
        """A run or the loading of a model has failed."""
        model: ModelInfo | None = self.session.model
        if model is not None:
            self.status.show_model(model)
        else:
            self.status.show_state("No model loaded")
        self.messages.show_error(error)

    # --- windows and keys ---------------------------------------------------------------------------------------

    @Slot(str)
    def do(self, action: str) -> None:
        """Do what `app.panels.shortcuts` and the menu call by name: a method of the window or of one of its parts."""
        attrgetter(action)(self)()

    @Slot()
    def do_shortcut(self) -> None:
        """The same for the shortcut that was pressed."""
        self.do(self.sender().objectName())

    @Slot()
    def show_numbered_view(self) -> None:
        """The view whose Ctrl+number was pressed."""
        self.centre.show_number(self.sender().property("number"))

    @Slot()
    def open_settings(self) -> None:
        """The settings window."""
        from app.panels.settings_dialog import SettingsDialog

        dialog = SettingsDialog(self.settings, str(self.store.folder), self)
        dialog.changed.connect(self._on_settings)
        dialog.open()

    @Slot()
    def open_shortcuts(self) -> None:
        """The list of keys."""
        from app.panels.dialogs import shortcuts_dialog

        shortcuts_dialog(self).open()

    @Slot()
    def open_used_settings(self) -> None:
        """What the last run really used."""
        from app.panels.dialogs import used_settings_dialog

        if self.session.run is not None:
            used_settings_dialog(self.session.run, self).open()

    @Slot(str)
    def _on_settings(self, section: str) -> None:
        if section == "appearance":
            self.appearance.apply()
        elif section in ("compute", "models"):
            self.controller.load()
        self.save_settings()

    # --- beginning and end --------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._is_assembled and not self._is_warm:
            self._is_warm = True
            QTimer.singleShot(0, self.controller.warm_up)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop, wait for the worker, remember everything."""
        try:
            if self._is_assembled:
                self._end()
        finally:  # whatever fails, no process may stay behind that nobody sees
            self.is_closed = True
            event.accept()
            self.closed.emit()

    def _end(self) -> None:
        self.settings.layout.window = bytes(self.saveGeometry().toBase64().data()).decode("ascii")
        self.hide()
        self.controller.stop()
        self.session.shut_down()
        self.status.stop()
        self.appearance.remember()
        self.controller.remember()
        self.save_settings()

    def save_settings(self) -> None:
        """Write the settings; a disk that refuses is told."""
        try:
            self.store.save()
        except StorageError as error:
            self.messages.show_unsaved(error)

    def _place(self) -> None:
        self.setMinimumSize(*LEAST_SIZE)
        self.resize(first_size(QGuiApplication.primaryScreen().availableSize()))
        if self.settings.layout.window:
            self.restoreGeometry(QByteArray.fromBase64(self.settings.layout.window.encode("ascii")))

    def _paint_empty(self) -> None:
        """The ground of the theme, so that the frame does not flash in another colour."""
        name = self.settings.appearance.theme
        if name == "system":
            dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
            name = "dark" if dark else "light"
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Window, QColor(PALETTES[name]["panel"]))
        self.setPalette(palette)
