"""The window of studies: file and run buttons above, pages for the study and its results below."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QMenu,
    QProgressBar,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.studies.state import StudyResults
from decodescope.app.features.studies.view.result_pages import (
    AnswersPage,
    CellsPage,
    ChartPage,
    MapPage,
    NoResults,
    ResultPage,
    RunsPage,
    TextsPage,
)
from decodescope.app.features.studies.view.setup_page import SetupPage
from decodescope.app.theme.theme import Theme
from decodescope.app.widgets.building import arrange, set_up, show_text
from decodescope.app.widgets.buttons import MenuButton, SegmentedControl
from decodescope.app.widgets.dialog import WINDOW_FRAME, BaseDialog
from decodescope.app.widgets.labels import ElidedLabel, WrappedLabel
from decodescope.app.widgets.plain_text import caption, tooltip, window_title
from decodescope.app.widgets.screen import available_rect
from decodescope.resources.language import mark, tr

SIZE = (1200, 780)
"""Initial size in pixels at 100 %, if the screen is large enough."""
SETUP, CELLS, RUNS, CHART, MAP, TEXTS, ANSWERS = "study", "cells", "runs", "chart", "map", "texts", "answers"
PAGES = (
    (SETUP, mark("Study")), (CELLS, mark("Cells")), (RUNS, mark("Runs")), (CHART, mark("Curves")),
    (MAP, mark("Heat map")), (TEXTS, mark("Texts")), (ANSWERS, mark("Right answers")),
)  # fmt: skip


class StudyDialog(BaseDialog):
    """Window of studies; not modal, deleted on close, which stops nothing."""

    newRequested = Signal()
    openRequested = Signal()
    recentRequested = Signal(str)
    saveRequested = Signal()
    saveAsRequested = Signal()
    runRequested = Signal(bool)
    """Run what is missing; with True only a pilot."""
    stopRequested = Signal()
    csvRequested = Signal()
    reportRequested = Signal()
    runChosen = Signal(str, int, bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "studyDialog", tr("Studies"))
        self.file_button = MenuButton(
            "studyFile", tr("File"), tr("New, open and saved studies"),
            (
                (tr("New study"), self.newRequested.emit), (tr("Open…"), self.openRequested.emit),
                (tr("Save"), self.saveRequested.emit), (tr("Save as…"), self.saveAsRequested.emit),
            ), self,
        )  # fmt: skip
        self._fixed_actions = self.file_button.menu().actions()
        self.title = set_up(ElidedLabel("", self), role="brand")
        self.state_label = set_up(ElidedLabel("", self), name="studyState", role="muted")
        self.pilot_button = self._button("studyPilot", tr("Pilot run"))
        self.pilot_button.setToolTip(
            tooltip(tr("Runs eight prompts with two seeds, and estimates the time and the number of prompts needed."))
        )
        self.pilot_button.clicked.connect(lambda: self.runRequested.emit(True))
        self.run_button = set_up(self._button("studyRun", tr("Run")), role="primary")
        self.run_button.clicked.connect(self._on_run)
        self.export_button = MenuButton(
            "studyExport", tr("Export"), tr("Save the results as files"),
            ((tr("Table (CSV)…"), self.csvRequested.emit), (tr("Report (HTML)…"), self.reportRequested.emit)), self,
        )  # fmt: skip
        self.pages = SegmentedControl([(name, tr(title)) for name, title in PAGES], tr("Page"), self, wraps=True)
        self.pages.chosen.connect(self.show_page)
        self.progress = set_up(QProgressBar(self), name="studyProgress", accessible_name=tr("Progress"))
        self.progress.setTextVisible(False)
        policy = self.progress.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(policy)
        self.message = set_up(WrappedLabel("", self), name="studyMessage", role="danger")
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.notices = set_up(WrappedLabel("", self), name="studyNotices", role="muted")
        self.setup = SetupPage(self)
        self.cells, self.runs, self.chart = CellsPage(self), RunsPage(self), ChartPage(self)
        self.map, self.texts, self.answers = MapPage(self), TextsPage(self), AnswersPage(self)
        self._result_pages: dict[str, ResultPage] = {
            CELLS: self.cells, RUNS: self.runs, CHART: self.chart, MAP: self.map, TEXTS: self.texts,
            ANSWERS: self.answers,
        }  # fmt: skip
        self.no_results = NoResults(self)
        self._results: StudyResults | None = None
        self._stale: set[str] = set()
        self._is_running = False
        for page in self._result_pages.values():
            page.cellChosen.connect(self._on_cell)
            page.runChosen.connect(self.runChosen)
        self._lay_out()
        for keys, slot in (
            (QKeySequence.StandardKey.Save, self.saveRequested.emit),
            (QKeySequence.StandardKey.Open, self.openRequested.emit),
            (QKeySequence.StandardKey.New, self.newRequested.emit),
        ):
            QShortcut(QKeySequence(keys), self, slot)
        for key in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(key), self, self._on_run)
        self.resize(*SIZE)
        self.show_page(SETUP)
        self.show_message("")
        self.show_notices(())

    def _button(self, name: str, title: str) -> QPushButton:
        button = set_up(QPushButton(caption(title), self), name=name)
        button.setAutoDefault(False)
        return button

    def _lay_out(self) -> None:
        self.stack = QStackedWidget(self)
        self.stack.setStyleSheet("QStackedWidget { background: transparent; }")
        for page in (self.setup, self.no_results, *self._result_pages.values()):
            self.stack.addWidget(page)
        line = set_up(QFrame(self), role="line")
        above = arrange(
            QHBoxLayout(), self.file_button, (self.title, 3), self.pilot_button, self.run_button, self.export_button,
            margins=0, spacing=8,
        )  # fmt: skip
        below = arrange(QHBoxLayout(), (self.pages, 3), (self.state_label, 2), margins=0, spacing=12)
        self.state_label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        arrange(
            QVBoxLayout(self), above, below, arrange(QVBoxLayout(), self.progress, line, margins=0, spacing=0),
            self.message, self.notices, (self.stack, 1), margins=(16, 12, 16, 14), spacing=8,
        )  # fmt: skip

    def restyle(self, theme: Theme) -> None:
        room = available_rect(self).size() - WINDOW_FRAME
        self.setMinimumSize(QSize(theme.px(620), theme.px(440)).boundedTo(room))

    # --- pages

    @property
    def page(self) -> str:
        """Name of the shown page."""
        return self.pages.value

    @Slot(str)
    def show_page(self, name: str) -> None:
        """Show a page."""
        self.pages.set_value(name)
        if name == SETUP:
            self.stack.setCurrentWidget(self.setup)
            return
        page = self._result_pages[name]
        if self._results is None or not (self._results.rows or self._results.failed):
            self.stack.setCurrentWidget(self.no_results)
            return
        if name in self._stale:
            self._stale.discard(name)
            page.show_results(self._results)
        self.stack.setCurrentWidget(page)

    def show_results(self, results: StudyResults | None, empty_text: str) -> None:
        """Show results on the current page, and on others when they are opened; `empty_text` if there are none."""
        self._results, self._stale = results, set(self._result_pages)
        self.no_results.label.setText(empty_text)
        self.export_button.setEnabled(results is not None and bool(results.rows))
        self.show_page(self.page)

    @Slot(str)
    def _on_cell(self, label: str) -> None:
        self.show_page(RUNS)
        self.runs.show_cell(label)

    # --- state

    def show_title(self, name: str, path: Path | None, is_saved: bool) -> None:
        """Show the study's file, with a mark if the text differs from it."""
        self.title.setText(name if is_saved or path is None else tr("{name} (changed)").format(name=name))
        self.title.setToolTip(tooltip(str(path)) if path is not None else "")
        self.setWindowTitle(window_title(tr("Studies: {name}").format(name=name)))

    def show_recent(self, paths: Sequence[str]) -> None:
        """Offer recently opened studies."""
        menu: QMenu = self.file_button.menu()
        for action in [one for one in menu.actions() if one not in self._fixed_actions]:
            menu.removeAction(action)
        if paths:
            menu.addSeparator()
        for path in paths:
            menu.addAction(caption(Path(path).name), partial(self.recentRequested.emit, path)).setToolTip(tooltip(path))

    def show_state(self, text: str, done: int, total: int, is_running: bool, is_stopping: bool) -> None:
        """Show the progress of a run, or what is done."""
        self._is_running = is_running
        self.state_label.setText(text)
        self.state_label.setToolTip(tooltip(text))
        self.progress.setRange(0, max(1, total))
        self.progress.setValue(done)
        self.progress.setVisible(is_running)

    def show_buttons(self, can_run: bool, reason: str, run_title: str, can_pilot: bool) -> None:
        """Show what the Run button does; `reason`: why it cannot."""
        self.run_button.setText(caption(run_title))
        self.run_button.setEnabled(can_run)
        self.run_button.setToolTip(tooltip(reason) if reason else "")
        self.pilot_button.setEnabled(can_pilot)

    def show_message(self, text: str) -> None:
        """Show an error; empty for none."""
        show_text(self.message, text)

    def show_notices(self, notices: Sequence[str]) -> None:
        """Show messages about engines and the results, or the result of a pilot run."""
        self.notices.setText("\n".join(notices))
        self.notices.setVisible(bool(notices))

    @Slot()
    def _on_run(self) -> None:
        if self._is_running:
            self.stopRequested.emit()
        elif self.run_button.isEnabled():
            self.runRequested.emit(False)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Stop the run with Esc; without one, Esc closes the window."""
        if event.key() == Qt.Key.Key_Escape and self._is_running:
            self.stopRequested.emit()
        else:
            super().keyPressEvent(event)
