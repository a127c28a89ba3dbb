"""The memory view: every byte of the key–value cache over the run, by place and part, by layer and by token."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.state.cache_history import CacheHistory, Point
from app.state.run import Run
from app.theme.theme import Theme
from app.views.base import Table
from app.views.memory import tokens as memory_tokens
from app.views.memory.cells import COLOURS, HOLLOW, TokenCells
from app.views.memory.legend import Key, MemoryLegend
from app.views.memory.plots import by_layer, colour_of, layers_title, over_the_run
from app.views.memory.report import formula_line, part_name, report_on, reuse_line
from app.views.memory.tools import MemoryTools
from app.views.reports import NodeReport
from app.views.shared.scrolled_page import ScrolledPage
from app.widgets.plots import PlotPanel
from core import sizes, words
from core.events import Event

_TITLE = "Every byte the model remembers with"
_HINT = "Choose a cache above and press Ctrl+Enter: what it holds appears here, step by step, layer by layer."


class MemoryView(ScrolledPage):
    """The cache over the run, by part, by token and by layer; its formula goes to the inspector."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("memoryView", _TITLE, _HINT, parent)
        self._run: Run | None = None
        self.model = CacheHistory()
        self.chart = PlotPanel("Bytes held, by tokens written", self._page)
        self.legend, self.cells = MemoryLegend(self._page), TokenCells(self._page)
        self.layers = PlotPanel("Bytes by layer", self._page, size=(180, 64), least=(80, 56))
        self._axis, self._layers_title = QLabel(self._page), QLabel("Per layer", self._page)
        self._formula, self._notice, self._reuse = (QLabel(self._page) for _ in range(3))
        self._tools = MemoryTools(self)
        self._tools.hide()
        self._tools.saveWanted.connect(self.signals.prefixSaveWanted)
        self._tools.loadWanted.connect(self.signals.prefixLoadWanted)
        self._lay_out()
        self.chart.describe, self.cells.describe = self._tip, self._token_tip
        self.chart.picked.connect(self._go_to)
        self.set_theme(self._theme)

    def _lay_out(self) -> None:
        self.setAccessibleName("Memory")
        for label in (self._axis, self._layers_title, self._formula, self._notice, self._reuse):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        self._formula.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._notice.setProperty("role", "warning")
        for part in (self._notice, self._reuse, self._axis, self.chart, self.legend, self.cells, self._layers_title,
                     self.layers, self._formula):  # fmt: skip
            self._column.addWidget(part, 1 if part is self.chart else 0)
        self.setFocusProxy(self.chart)

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
        self._set_spacing(theme, 8)
        for part in (self.chart, self.legend, self.cells, self.layers, self._tools):
            part.set_theme(theme)
        self.layers.setFixedHeight(theme.px(64))
        for label in (self._axis, self._layers_title):
            label.setStyleSheet(f"color: {theme.muted}; font-size: {theme.px(11)}px;")
        for label in (self._formula, self._reuse):
            label.setStyleSheet(f"color: {theme.muted}; font-size: {theme.px(12)}px;")
        self._draw()

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning."""
        self._run, self.model = run, CacheHistory()
        self.chart.show_whole()
        self._catch_up()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """The cache has grown."""
        self._run = run
        self._catch_up()

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
        self.update()
        if point is None or run is None:
            self._say(None)
            return
        length = self.model.length_at(self.place)
        self._draw_chart(run)
        self._draw_tokens(run)
        self._draw_layers(point)
        self._formula.setText(formula_line(self.model, length))
        self._formula.setToolTip(sizes.in_names(self.model.plan.size) if self.model.plan is not None else "")
        self._formula.setVisible(bool(self._formula.text()))
        self._notice.setText("\n".join(self.model.notices))
        self._notice.setVisible(bool(self.model.notices))
        self._reuse.setText(reuse_line(run))
        self._reuse.setVisible(bool(self._reuse.text()))
        self._say(report_on(self.model, run, self.place))

    def _draw_chart(self, run: Run) -> None:
        right = self.model.forecast.limit if run.outcome is None else max(run.length, 1)
        self.chart.show_figure(over_the_run(self.model, self.place, right))
        self.chart.set_cursor(self.place, self._tip(self.place))
        self._axis.setText(f"{self.chart.unit()[1]} held, by tokens written")

    def _draw_tokens(self, run: Run) -> None:
        rows = memory_tokens.rows(self.model, run, self.place)
        self.cells.set_rows(rows)
        self.cells.setVisible(bool(rows))
        names = self.model.parts
        keys = [Key(part_name(p, names), colour_of(p), "disk" if p[0] == "disk" else "area") for p in names]
        states = dict.fromkeys(state for row in rows for state in row.states)
        if len(states) > 1:
            keys += [Key(memory_tokens.WORDS[s], COLOURS[s], "hollow" if s in HOLLOW else "cell")
                     for s in states if memory_tokens.WORDS[s] not in {key.word for key in keys}]  # fmt: skip
        self.legend.set_keys(keys)

    def _draw_layers(self, point: Point) -> None:
        self.layers.show_figure(by_layer(self.model, point))
        self._layers_title.setText(layers_title(point))

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

    def _tip(self, x: int) -> str:
        length, point = self.model.length_at(x), self.model.at(min(x, self.model.written))
        if x > self.model.written or point is None:
            size = self.model.forecast.predicted(length)
            return f"after token {x:,}: {round(size):,} bytes predicted" if size is not None else ""
        lines = [f"after token {x:,}: {point.bytes:,} bytes ({words.size(point.bytes)})"]
        if point.tokens:
            lines.append(f"{length:,} tokens read")
        lines += [f"{part_name(part, self.model.parts)} {size:,}" for part, size in point.parts if size]
        return "\n".join(lines)

    def _token_tip(self, row: int, place: int) -> str:
        run = self._run
        rows = memory_tokens.rows(self.model, run, self.place) if run is not None else []
        if run is None or row >= len(rows) or place >= len(rows[row].states):
            return ""
        return memory_tokens.describe(self.model, run, rows[row], place)

    def figures(self) -> Table:
        """Every measurement, a line each."""
        parts = self.model.parts
        head = ["tokens_written", "tokens_read", "bytes", "peak", *(f"{place}_{part}" for place, part in parts)]
        layers = max((len(point.layers) for point in self.model.points), default=0)
        lines: list[list[object]] = [[*head, *(f"layer_{n + 1}" for n in range(layers))]]
        for point in (point for point in self.model.points if point.measured):
            sizes = dict(point.parts)
            lines.append([point.x, point.tokens, point.bytes, point.peak, *(sizes.get(p, 0) for p in parts),
                          *point.layers])  # fmt: skip
        return lines
