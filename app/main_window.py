"""The main window: lays out what there is, and connects it to the session."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSettings, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QGuiApplication, QKeySequence, QPaintEvent, QShortcut
from PySide6.QtWidgets import QApplication, QFileDialog, QInputDialog, QMainWindow, QSplitter, QVBoxLayout, QWidget

import resources
from app import examples, presets
from app.desk import Desk
from app.engine import Engine
from app.panels.centre import Centre
from app.panels.look_menu import LookMenu
from app.panels.settings_dialog import SettingsDialog
from app.panels.setup import SetupPanel
from app.panels.status_line import StatusLine
from app.panels.tables import shortcuts_dialog, used_settings_dialog
from app.panels.toolbar import Toolbar
from app.requests import ErrorReport, ModelInfo, Outcome, report
from app.run import Run
from app.session import Session
from app.settings import LARGEST_SCALE, SMALLEST_SCALE
from app.shortcuts import MOST_VIEW_KEYS, SHORTCUTS
from app.store import SettingsStore
from app.theme import Theme, theme_for
from app.views import VIEWS
from app.views.inspector import Inspector
from app.views.timeline import Timeline

log = logging.getLogger(__name__)
SIDE_WIDTHS = (300, 324)
_PERMISSIONS = {
    "PickledWeightsError": ("allow_pickle", "Allow for this model"),
    "RemoteCodeError": ("allow_remote_code", "Allow for this model"),
}


class MainWindow(QMainWindow):
    """Everything on one screen: setup, views, inspector, timeline, status."""

    closed = Signal()

    def __init__(self, store: SettingsStore, engine: Engine | None = None) -> None:
        super().__init__()
        self.setWindowTitle("Tokenscope")
        self.store, self.settings = store, store.load()
        self.session = Session(engine, self)
        self._painted = False
        self._failed_loading = False
        self._build()
        self.desk = Desk(self.toolbar, self.setup, self.settings, self.session)
        self._connect()
        self._bind_keys()
        self._show_presets()
        self.apply_appearance()
        self._restore_layout()
        self._show_face("idle")
        if store.notices:
            self.show_notice("Settings were repaired", "\n".join(store.notices))

    # --- runs ---------------------------------------------------------------------------------------------------

    @Slot()
    def run(self) -> None:
        """Run what is set; a run under way is stopped first."""
        problems = self.desk.problems
        if problems:
            self.show_error(
                ErrorReport("This cannot be run yet", " ".join(problems), "Change it and run again.", kind="Setup")
            )
            return
        self._dismiss_messages()
        self.session.start(self.desk.request())

    @Slot()
    def run_again(self) -> None:
        """The last run once more, whatever has been set since; an unlocked seed is drawn anew."""
        run = self.session.run
        if run is None:
            self.run()
            return
        self._dismiss_messages()
        seed = self.toolbar.seed.next_seed()
        request = run.request if self.toolbar.seed.is_locked else _with_seed(run.request, seed)
        self.session.start(request)

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
            self._dismiss_messages()

    @Slot()
    def _on_run_button(self) -> None:
        if self.session.busy:
            self.stop()
        else:
            self.run()

    # --- messages -----------------------------------------------------------------------------------------------

    @Slot(object)
    def show_error(self, error: ErrorReport) -> None:
        """Say in the window what went wrong and what to do."""
        actions = [("retry", "Try again")] if error.kind != "Setup" else []
        if error.kind in _PERMISSIONS:
            actions = [_PERMISSIONS[error.kind]]
        self._failed_loading = not self.session.busy
        self.centre.error_banner.show_message(error.title, error.cause, error.remedy, error.details, actions)
        row = self.setup.parameters.rows.get(error.parameter)
        if row is not None:
            row.editor.setFocus()

    def show_notice(self, title: str, text: str = "") -> None:
        """Something to know that stopped nothing."""
        self.centre.notice_banner.show_message(title, text)

    @Slot(str)
    def _on_notice(self, text: str) -> None:
        self.show_notice("Good to know", text)

    @Slot(str)
    def _on_error_action(self, action: str) -> None:
        if action == "retry":
            self._retry()
        elif action.startswith("allow_"):
            self.desk.allow(action)
            self._save()
            self._retry()

    def _retry(self) -> None:
        last = self.session.run
        if last is not None and last.outcome is not None and last.outcome.kind == "failed":
            self.run()
        else:
            self._dismiss_messages()
            self.desk.warm_up()

    def _dismiss_messages(self) -> None:
        self.centre.error_banner.dismiss()
        self.centre.notice_banner.dismiss()

    # --- what the session says ----------------------------------------------------------------------------------

    @Slot(object)
    def _on_run_started(self, run: Run) -> None:
        self.centre.show_texts(run)
        self.status_line.show_run(run)

    @Slot(object, object)
    def _on_events(self, run: Run, _events: object) -> None:
        if len(run.sequences) != self.centre.texts.count():
            self.centre.show_texts(run)
        self.status_line.first_events()

    @Slot(object)
    def _on_finished(self, outcome: Outcome) -> None:
        self.status_line.show_outcome(outcome.message)
        run = self.session.run
        if run is not None and run.notices and outcome.error is None:
            self.show_notice("About this run", "\n".join(notice.message for notice in run.notices))

    @Slot(object)
    def _on_cursor(self, run: Run) -> None:
        self.centre.show_texts(run)

    @Slot(str)
    def _show_face(self, state: str) -> None:
        """Run, Stop or Stopping…, and whether the thin bar runs."""
        face = "stopping" if state == "stopping" else "stop" if self.session.busy else "run"
        self.toolbar.run.set_face(face)
        self.centre.set_loading(state == "loading")

    @Slot(str)
    def _on_loading(self, name: str) -> None:
        self.status_line.show_state(f"Loading {Path(name).name}…")

    @Slot(object)
    def _on_ready(self, info: ModelInfo) -> None:
        self.status_line.show_model(info)

    @Slot(object)
    def _on_failed(self, error: ErrorReport) -> None:
        if self.session.model is not None:
            self.status_line.show_model(self.session.model)
        else:
            self.status_line.show_state("No model loaded")
        self.show_error(error)

    # --- settings, presets, folders -----------------------------------------------------------------------------

    @Slot()
    def open_settings(self) -> None:
        """The settings window."""
        dialog = SettingsDialog(self.settings, str(self.store.folder), self)
        dialog.changed.connect(self._on_settings)
        dialog.open()

    @Slot(str)
    def _on_settings(self, section: str) -> None:
        if section == "appearance":
            self.apply_appearance()
        elif section in ("compute", "models"):
            self.desk.load()
        self._save()

    @Slot()
    def open_shortcuts(self) -> None:
        """The list of keys."""
        shortcuts_dialog(self).open()

    @Slot()
    def open_used_settings(self) -> None:
        """What the last run really used."""
        if self.session.run is not None:
            used_settings_dialog(self.session.run, self).open()

    @Slot()
    def open_folder(self) -> None:
        """Choose a model folder."""
        self._open_file_dialog("Open a model folder", QFileDialog.FileMode.Directory, self._on_folder)

    @Slot(str)
    def _on_folder(self, folder: str) -> None:
        if not self.desk.add_folder(folder):
            self.show_error(
                ErrorReport(
                    "This folder holds no model",
                    f"There is no usable config.json in {folder}.",
                    "Choose the folder that holds config.json beside the weights.",
                    kind="Setup",
                )
            )

    @Slot()
    def open_preset(self) -> None:
        """Choose a generation_config.json file."""
        self._open_file_dialog("Open a generation config", QFileDialog.FileMode.ExistingFile, self._on_preset_file)

    @Slot(str)
    def _on_preset_file(self, path: str) -> None:
        self.use_preset(Path(path))

    @Slot(object)
    def use_preset(self, path: Path) -> None:
        """Take the settings of a preset's file."""
        try:
            self.desk.apply_preset(presets.load(path))
        except presets.PresetProblem as problem:
            self.show_error(_setup_error(problem))

    @Slot()
    def save_preset(self) -> None:
        """Ask for a name and save the settings under it."""
        dialog = QInputDialog(self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle("Save as a preset")
        dialog.setLabelText("Name of the preset")
        dialog.textValueSelected.connect(self.save_preset_as)
        dialog.open()

    @Slot(str)
    def save_preset_as(self, name: str) -> None:
        """Save the settings under `name`."""
        try:
            presets.save(self.store.presets, self.desk.as_preset(name))
        except presets.PresetProblem as problem:
            self.show_error(_setup_error(problem))
        self._show_presets()

    @Slot(object)
    def delete_preset(self, path: Path) -> None:
        """Delete a saved preset."""
        path.unlink(missing_ok=True)
        self._show_presets()

    def _show_presets(self) -> None:
        shipped = presets.folder_presets(resources.path("presets"))
        self.setup.presets.show_presets(shipped, presets.folder_presets(self.store.presets))

    def _open_file_dialog(self, title: str, mode: QFileDialog.FileMode, slot: Any) -> None:
        dialog = QFileDialog(self, title)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(mode)
        if mode == QFileDialog.FileMode.ExistingFile:
            dialog.setNameFilter("Generation configs (*.json)")
        dialog.fileSelected.connect(slot)
        dialog.open()

    # --- looks and layout ---------------------------------------------------------------------------------------

    def apply_appearance(self) -> None:
        """Draw everything in the theme and text size of the settings."""
        look = self.settings.appearance
        self.theme: Theme = theme_for(look.theme, look.font_scale)
        self.setStyleSheet(self.theme.stylesheet())
        for part in (self.toolbar, self.setup, self.centre, self.inspector, self.timeline, self.status_line):
            part.set_theme(self.theme)
        self.menu.show_state(look.theme, self._panel_states())

    @Slot(str)
    def set_theme(self, name: str) -> None:
        """Change to the theme `light`, `dark` or `system`."""
        self.settings.appearance.theme = name
        self.apply_appearance()

    def set_font_scale(self, scale: float) -> None:
        """Change the text size; 1.0 is 100 %."""
        self.settings.appearance.font_scale = round(min(LARGEST_SCALE, max(SMALLEST_SCALE, scale)), 2)
        self.apply_appearance()

    @Slot()
    def enlarge_text(self) -> None:
        """Ten per cent more."""
        self.set_font_scale(self.settings.appearance.font_scale + 0.1)

    @Slot()
    def reduce_text(self) -> None:
        """Ten per cent less."""
        self.set_font_scale(self.settings.appearance.font_scale - 0.1)

    @Slot()
    def reset_text(self) -> None:
        """Back to 100 %."""
        self.set_font_scale(1.0)

    @Slot()
    def _on_system_scheme(self) -> None:
        if self.settings.appearance.theme == "system":
            self.apply_appearance()

    @Slot()
    def toggle_setup(self) -> None:
        """Show or hide prompt and parameters."""
        self.setup.setVisible(self.setup.isHidden())
        self._show_toggles()

    @Slot()
    def toggle_inspector(self) -> None:
        """Show or hide the inspector."""
        self.inspector.setVisible(self.inspector.isHidden())
        self._show_toggles()

    @Slot()
    def toggle_timeline(self) -> None:
        """Show or hide the timeline."""
        self.timeline.setVisible(self.timeline.isHidden())
        self._show_toggles()

    def _panel_states(self) -> dict[str, bool]:
        return {
            "toggle_setup": not self.setup.isHidden(),
            "toggle_inspector": not self.inspector.isHidden(),
            "toggle_timeline": not self.timeline.isHidden(),
        }

    def _show_toggles(self) -> None:
        states = self._panel_states()
        self.menu.show_state(self.settings.appearance.theme, states)
        centre = self.centre
        for name, button in (
            ("toggle_setup", centre.setup_toggle),
            ("toggle_timeline", centre.timeline_toggle),
            ("toggle_inspector", centre.inspector_toggle),
        ):
            button.setChecked(states[name])

    # --- keys ---------------------------------------------------------------------------------------------------

    @Slot()
    def run_or_restart(self) -> None:
        """Ctrl+Enter: run, or begin anew."""
        self.run()

    @Slot()
    def toggle_seed_lock(self) -> None:
        """Lock or unlock the seed."""
        self.toolbar.seed.lock.toggle()

    @Slot()
    def focus_prompt(self) -> None:
        """Put the cursor into the prompt."""
        self.setup.show()
        self._show_toggles()
        self.setup.prompt.editor.setFocus()

    @Slot()
    def open_models(self) -> None:
        """Unfold the list of models."""
        self.toolbar.model.showPopup()

    @Slot()
    def open_strategies(self) -> None:
        """Unfold the list of strategies."""
        self.toolbar.strategy.showPopup()

    @Slot(str)
    def _on_menu(self, action: str) -> None:
        getattr(self, action)()

    @Slot()
    def _on_view_key(self) -> None:
        self.centre.show_number(self.sender().property("number"))

    def _bind_keys(self) -> None:
        for shortcut in SHORTCUTS:
            for key in shortcut.keys if shortcut.action else ():
                QShortcut(QKeySequence(key), self).activated.connect(getattr(self, shortcut.action))
        for number in range(MOST_VIEW_KEYS):
            shortcut_key = QShortcut(QKeySequence(f"Ctrl+{number + 1}"), self)
            shortcut_key.setProperty("number", number)
            shortcut_key.activated.connect(self._on_view_key)

    # --- building -----------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.toolbar = Toolbar()
        self.setup = SetupPanel(examples.load())
        self.centre = Centre(VIEWS)
        self.inspector = Inspector()
        self.timeline = Timeline()
        self.status_line = StatusLine()
        self.menu = LookMenu(self)
        self.toolbar.text.setMenu(self.menu)
        self.splitter = QSplitter(Qt.Orientation.Horizontal, childrenCollapsible=False, handleWidth=1)
        for part in (self.setup, self.centre, self.inspector):
            self.splitter.addWidget(part)
        self.splitter.setStretchFactor(1, 1)
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.toolbar)
        column.addWidget(self.splitter, 1)
        column.addWidget(self.timeline)
        column.addWidget(self.status_line)
        self.setCentralWidget(body)

    def _connect(self) -> None:
        session = self.session
        for signal, slot in (
            (session.runStarted, self._on_run_started),
            (session.eventsArrived, self._on_events),
            (session.cursorMoved, self._on_cursor),
            (session.finished, self._on_finished),
            (session.stateChanged, self._show_face),
            (session.modelLoading, self._on_loading),
            (session.modelLoading, self.desk.on_loading),
            (session.modelReady, self._on_ready),
            (session.modelReady, self.desk.on_ready),
            (session.failed, self._on_failed),
            (session.failed, self.desk.on_failed),
        ):
            signal.connect(slot)
        for view in (*self.centre.views, self.inspector, self.timeline):
            self._connect_view(view)
        self._connect_controls()

    @Slot(object)
    def _connect_view(self, view: Any) -> None:
        """Feed a view from the session, and obey what the reader does in it."""
        session = self.session
        session.runStarted.connect(view.show_run)
        session.eventsArrived.connect(view.events_arrived)
        session.cursorMoved.connect(view.cursor_moved)
        session.selectionChanged.connect(view.selection_changed)
        for name, slot in (
            ("tokenActivated", session.select_token),
            ("cursorRequested", session.move_cursor),
            ("sequenceActivated", session.show_sequence),
        ):
            if hasattr(view, name):
                getattr(view, name).connect(slot)
        view.show_run(session.run)

    def _connect_controls(self) -> None:
        for signal, slot in (
            (self.toolbar.run.clicked, self._on_run_button),
            (self.desk.folderWanted, self.open_folder),
            (self.desk.notice, self._on_notice),
            (self.centre.error_banner.actionChosen, self._on_error_action),
            (self.centre.viewAdded, self._connect_view),
            (self.centre.sequenceWanted, self.session.show_sequence),
            (self.centre.setup_toggle.clicked, self.toggle_setup),
            (self.centre.timeline_toggle.clicked, self.toggle_timeline),
            (self.centre.inspector_toggle.clicked, self.toggle_inspector),
            (self.setup.presets.chosen, self.use_preset),
            (self.setup.presets.saveWanted, self.save_preset),
            (self.setup.presets.openWanted, self.open_preset),
            (self.setup.presets.deleteWanted, self.delete_preset),
            (self.status_line.settingsWanted, self.open_used_settings),
            (self.menu.themeChosen, self.set_theme),
            (self.menu.actionChosen, self._on_menu),
            (QGuiApplication.styleHints().colorSchemeChanged, self._on_system_scheme),
        ):
            signal.connect(slot)

    # --- beginning and end --------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            QTimer.singleShot(0, self.desk.warm_up)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop, wait for the worker, remember everything."""
        self.hide()
        self.desk.stop()
        self.session.shut_down()
        self.status_line.stop()
        self._remember_layout()
        self.desk.remember()
        self._save()
        event.accept()
        self.closed.emit()

    def _save(self) -> None:
        try:
            self.store.save()
        except OSError as error:
            log.warning("The settings could not be saved: %s", error)

    def _geometry(self) -> QSettings:
        return QSettings(str(self.store.geometry), QSettings.Format.IniFormat)

    def _restore_layout(self) -> None:
        layout, kept = self.settings.layout, self._geometry()
        self.setup.parameters.set_advanced(layout.advanced)
        self.setup.setVisible(layout.setup)
        self.inspector.setVisible(layout.inspector)
        self.timeline.setVisible(layout.timeline)
        self.centre.show_view(layout.view)
        self._show_toggles()
        self._place_on_screen()
        left, right = (self._side(width) for width in SIDE_WIDTHS)
        self.splitter.setSizes([left, max(200, self.width() - left - right), right])
        for name, restore in (("window", self.restoreGeometry), ("panels", self.splitter.restoreState)):
            if kept.contains(name):
                restore(kept.value(name))

    def _remember_layout(self) -> None:
        layout, kept = self.settings.layout, self._geometry()
        layout.advanced = self.setup.parameters.is_advanced
        layout.view = self.centre.columns[0].current
        states = self._panel_states()
        layout.setup, layout.inspector = states["toggle_setup"], states["toggle_inspector"]
        layout.timeline = states["toggle_timeline"]
        kept.setValue("window", self.saveGeometry())
        kept.setValue("panels", self.splitter.saveState())

    def _place_on_screen(self) -> None:
        self.setMinimumSize(900, 600)
        screen = QApplication.primaryScreen().availableSize()
        self.resize(min(1440, screen.width()), min(900, screen.height()))

    def _side(self, width: int) -> int:
        """Width of a side panel: it grows with the text, but less, for the middle must keep its place."""
        return round(width * (1 + (self.theme.scale - 1) * 0.6))


def _with_seed(request: Any, seed: int) -> Any:
    from dataclasses import replace

    return replace(request, seed=seed)


def _setup_error(problem: presets.PresetProblem) -> ErrorReport:
    words = report(problem)
    return ErrorReport(words.title, words.cause, words.remedy, kind="Setup")
