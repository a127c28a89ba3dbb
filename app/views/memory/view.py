"""The memory view: every byte of the key–value cache over the run, by place and part, by layer and by token."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from app.state.cache_history import CacheHistory, Point
from app.state.run import Run
from app.theme.theme import Theme
from app.views.base import Table
from app.views.memory.charts import MemoryCharts
from app.views.memory.report import report_on
from app.views.memory.tools import MemoryTools
from app.views.node_reports import NodeReport
from app.views.shared.scrolled_page import ScrolledPage
from app.views.shared.table_export import of_cache
from core.events import Event
from resources.language import mark, tr

_TITLE = mark("Every byte the model remembers with")
_HINT = mark("Choose a cache above and press Ctrl+Enter: what it holds appears here, step by step, layer by layer.")


class MemoryView(ScrolledPage):
    """The cache over the run, by part, by token and by layer; its formula goes to the inspector."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("memoryView", tr(_TITLE), tr(_HINT), tr("Run this prompt"), parent)
        self._run: Run | None = None
        self.model = CacheHistory()
        self.charts = MemoryCharts(self._page)
        self.chart, self.cells = self.charts.chart, self.charts.cells
        self._tools = MemoryTools(self)
        self._tools.hide()
        self._tools.saveWanted.connect(self.signals.prefixSaveWanted)
        self._tools.loadWanted.connect(self.signals.prefixLoadWanted)
        self._column.addWidget(self.charts)
        self.setAccessibleName(tr("Memory"))
        self.setFocusProxy(self.chart)
        self.chart.picked.connect(self._go_to)
        self.set_theme(self._theme)

    # What the shell calls

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been measured yet."""
        return self._point() is None

    def header_widget(self) -> QWidget:
        """Prefixes to and from files."""
        return self._tools

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._set_spacing(theme, 0)
        self.charts.set_theme(theme)
        self._tools.set_theme(theme)
        self._draw()

    def words_changed(self) -> None:
        """Say it all again."""
        self._draw()

    def set_presenting(self, on: bool) -> None:
        """The curve; its figures stand beside the view in words."""
        self.charts.set_presenting(on)
        self._draw()

    def caption(self) -> str:
        """What the cache holds at the cursor, and why."""
        return self.report.sentence if self.report is not None else ""

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning."""
        self._run, self.model = run, CacheHistory()
        self.chart.show_whole()
        self._catch_up()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """The cache has grown."""
        self._run = run
        self._catch_up()

    def _hint_for(self, run: Run | None) -> str:
        """What the page is for; of a run elsewhere, why it stays empty."""
        if run is None or run.started is None or not run.started.engine:
            return tr(_HINT)
        told = tr("{engine} keeps the model's memory on its own machine, and tells nothing of it.")
        return told.format(engine=run.started.engine)

    def cursor_moved(self, run: Run) -> None:
        """Show the cache as it was then."""
        self._run = run
        self._catch_up()

    def selection_changed(self, run: Run) -> None:
        """The memory is that of the whole text, whichever token is selected."""
        self._run = run

    def showEvent(self, event: QShowEvent) -> None:
        """Draw what has come meanwhile."""
        super().showEvent(event)
        self._catch_up()

    # From the run to the picture

    def _catch_up(self) -> None:
        run = self._run
        if run is not None:
            self.model = run.cache_history
        if self.isVisible() or run is None:
            self._draw()

    @property
    def place(self) -> int:
        """Tokens written at the place that is shown."""
        return self._run.cursor if self._run is not None else 0

    def _point(self) -> Point | None:
        return self.model.at(self.place)

    def _draw(self) -> None:
        point, run = self._point(), self._run
        self._scroll.setVisible(point is not None)
        self._hint = self._hint_for(run)
        self._show_offer(is_waiting=run is not None and run.outcome is None)
        self.update()
        if point is None or run is None:
            self._say(None)
            return
        self.charts.draw(self.model, run, self.place, point)
        self._say(report_on(self.model, run, self.place))

    def _say(self, report: NodeReport | None) -> None:
        if report != self.report:
            self.report = report
            if self.isVisible():
                self.signals.reportSelected.emit(report)

    # What the reader does

    @Slot(int)
    def _go_to(self, x: int) -> None:
        run = self._run
        if run is not None:
            self.signals.cursorRequested.emit(min(x, run.length))

    def figures(self) -> Table:
        """Every measurement, a line each."""
        return of_cache(self.model) if self.model.points else ()
