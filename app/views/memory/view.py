"""The memory view: the key–value cache over the run, by part and device, by layer and by token."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from decodescope.app.state.cache_history import CacheHistory, CachePoint
from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Table
from decodescope.app.views.memory.charts import MemoryCharts
from decodescope.app.views.memory.report import cache_report
from decodescope.app.views.node_reports import NodeReport
from decodescope.app.views.shared.empty_page import ScrolledView
from decodescope.app.views.shared.table_export import cache_table
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.buttons import MenuButton
from decodescope.app.widgets.file_dialogs import open_file_dialog, open_save_dialog
from decodescope.core.events import Event
from decodescope.resources.language import mark, tr

_FILE_FILTER = mark("Prefixes (*.safetensors)")


class MemoryTools(Themed, QWidget):
    """Buttons that save and load a prefix. Emit `saveWanted(path)` and `loadWanted(path)`."""

    saveWanted = Signal(str)
    loadWanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        words = tr("Save the cache of this run as a prefix, or start from a saved one")
        actions = ((tr("Save prefix…"), self._choose_save_path), (tr("Load prefix…"), self._choose_load_path))
        self.button = MenuButton("prefixButton", tr("Prefix"), words, actions, self)
        arrange(QHBoxLayout(self), self.button, margins=0, spacing=2)

    def restyle(self, theme: Theme) -> None:
        self.button.setFont(theme.font(12))

    @Slot()
    def _choose_save_path(self) -> None:
        open_save_dialog(self, tr("Save the prefix"), "prefix.safetensors", tr(_FILE_FILTER), self.saveWanted.emit)

    @Slot()
    def _choose_load_path(self) -> None:
        open_file_dialog(self, tr("Load a prefix"), tr(_FILE_FILTER), self.loadWanted.emit)


_TITLE = mark("Every byte of the model's memory")
_HINT = mark("Choose a cache above and press Ctrl+Enter to see what it stores, step by step and layer by layer.")


class MemoryView(ScrolledView):
    """The cache over the run, by part, token and layer; its formula is shown in the inspector."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("memoryView", tr(_TITLE), tr(_HINT), tr("Run this prompt"), parent)
        self._run: Run | None = None
        self.model = CacheHistory()
        self.charts = MemoryCharts(self._page)
        self.chart, self.cells = self.charts.chart, self.charts.cells
        self._tools = MemoryTools(self)
        self._tools.hide()
        self._tools.saveWanted.connect(self.signals.prefixSaveRequested)
        self._tools.loadWanted.connect(self.signals.prefixLoadRequested)
        self._column.addWidget(self.charts)
        self.setAccessibleName(tr("Memory"))
        self.setFocusProxy(self.chart)
        self.chart.picked.connect(self._go_to)
        self.set_theme(self._theme)

    # Called by the shell

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been measured yet."""
        return self._point() is None

    def header_widget(self) -> QWidget:
        """Return the buttons for prefixes."""
        return self._tools

    def restyle(self, theme: Theme) -> None:
        self._set_spacing(theme, 0)
        self._draw()

    def wording_changed(self) -> None:
        """Rebuild all texts."""
        self._draw()

    def set_presenting(self, on: bool) -> None:
        """Show only the curve; the figures are shown as text beside the view."""
        self.charts.set_presenting(on)
        self._draw()

    def presentation_caption(self) -> str:
        """Return what the cache holds at the cursor, and why."""
        return self.report.sentence if self.report is not None else ""

    def show_run(self, run: Run | None) -> None:
        """Show another run from its start."""
        self._run, self.model = run, CacheHistory()
        self.chart.reset_zoom()
        self._update_model()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Show the new cache measurements."""
        self._run = run
        self._update_model()

    def _hint_for(self, run: Run | None) -> str:
        """Return the page's hint, or, for a remote run, why it stays empty."""
        if run is None or run.started is None or not run.started.engine:
            return tr(_HINT)
        template = tr("{engine} keeps the cache on its own server and does not report it.")
        return template.format(engine=run.started.engine)

    def cursor_moved(self, run: Run) -> None:
        """Show the cache at the cursor."""
        self._run = run
        self._update_model()

    def selection_changed(self, run: Run) -> None:
        """Ignore the selection: the cache belongs to the whole text."""
        self._run = run

    def showEvent(self, event: QShowEvent) -> None:
        """Draw what has arrived while hidden."""
        super().showEvent(event)
        self._update_model()

    # Drawing

    def _update_model(self) -> None:
        run = self._run
        if run is not None:
            self.model = run.cache_history
        if self.isVisible() or run is None:
            self._draw()

    @property
    def position(self) -> int:
        """Number of generated tokens at the shown position."""
        return self._run.cursor if self._run is not None else 0

    def _point(self) -> CachePoint | None:
        return self.model.at(self.position)

    def _draw(self) -> None:
        point, run = self._point(), self._run
        self._scroll.setVisible(point is not None)
        self._hint = self._hint_for(run)
        self._show_offer(is_waiting=run is not None and run.outcome is None)
        self.update()
        if point is None or run is None:
            self._set_report(None)
            return
        self.charts.draw(self.model, run, self.position, point)
        self._set_report(cache_report(self.model, run, self.position))

    def _set_report(self, report: NodeReport | None) -> None:
        if report != self.report:
            self.report = report
            if self.isVisible():
                self.signals.reportSelected.emit(report)

    # User actions

    @Slot(int)
    def _go_to(self, x: int) -> None:
        run = self._run
        if run is not None:
            self.signals.cursorRequested.emit(min(x, run.length))

    def export_table(self) -> Table:
        """Return one line per measurement."""
        return cache_table(self.model) if self.model.points else ()
