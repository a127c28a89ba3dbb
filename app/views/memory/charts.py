"""The content of the memory view: the cache's curve, its tokens, its layers, and the texts beside them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from decodescope.app.state.cache_history import CacheHistory, CachePoint
from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.memory import cached_tokens as memory_tokens
from decodescope.app.views.memory.report import (
    bytes_by_layer,
    bytes_over_run,
    curve_tooltip,
    formula_line,
    layers_title,
    part_colour,
    part_name,
    reuse_line,
)
from decodescope.app.views.memory.token_cells import HOLLOW_STATES, STATE_COLOURS, TokenCells
from decodescope.app.widgets.building import show_text
from decodescope.app.widgets.legend import KeyLegend, LegendKey
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.app.widgets.plots import PlotPanel
from decodescope.core import sizes
from decodescope.resources.language import tr


class MemoryCharts(Themed, QWidget):
    """Draw a run's cache at one position of the text, with tooltips."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._history, self._position = CacheHistory(), 0
        self._run: Run | None = None
        self._is_presenting = False
        self.chart = PlotPanel(tr("Cache size over generated tokens"), self)
        self.legend, self.cells = KeyLegend(self), TokenCells(self)
        self.layers = PlotPanel(tr("Bytes by layer"), self, size=(180, 64), min_size=(80, 56))
        self._axis, self._layers_title = PlainLabel(self), PlainLabel(tr("Per layer"), self)
        self._formula, self.notice, self.reuse = (PlainLabel(self) for _ in range(3))
        self.chart.setObjectName("memoryChart")
        self.cells.setObjectName("memoryCells")
        self._column = QVBoxLayout(self)
        self._lay_out()
        self.chart.describe_position, self.cells.describe = self.tip, self.token_tip

    def _lay_out(self) -> None:
        for label in (self._axis, self._layers_title, self._formula, self.notice, self.reuse):
            label.setWordWrap(True)
        self._formula.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.notice.setProperty("role", "warning")
        self._column.setContentsMargins(0, 0, 0, 0)
        for part in (self.notice, self.reuse, self._axis, self.chart, self.legend, self.cells, self._layers_title,
                     self.layers, self._formula):  # fmt: skip
            self._column.addWidget(part, 1 if part is self.chart else 0)

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(8))
        self.layers.setFixedHeight(theme.px(64))
        for label in (self._axis, self._layers_title):
            label.setStyleSheet(f"color: {theme.muted}; font-size: {theme.font_pixels(11)}px;")
        for label in (self._formula, self.reuse):
            label.setStyleSheet(f"color: {theme.muted}; font-size: {theme.font_pixels(12)}px;")

    def set_presenting(self, on: bool) -> None:
        """Show only the curve and its legend while presenting."""
        for part in (self.cells, self.layers, self._layers_title):
            part.setVisible(not on)
        self.chart.set_compact(on)
        self._is_presenting = on

    def draw(self, history: CacheHistory, run: Run, position: int, point: CachePoint) -> None:
        """Show `history` at the position `position`, where the cache's state is `point`."""
        self._history, self._run, self._position = history, run, position
        self._draw_chart(run)
        self._draw_tokens(run)
        self.layers.show_figure(bytes_by_layer(history, point))
        self._layers_title.setText(layers_title(point))
        self._formula.setToolTip(tooltip(sizes.format_names(history.plan.size) if history.plan is not None else ""))
        is_hidden = self._is_presenting or history.shared_rows(point) > 1
        show_text(self._formula, "" if is_hidden else formula_line(history, history.length_at(position)))
        show_text(self.notice, "\n".join(history.notices))
        show_text(self.reuse, "" if self._is_presenting else reuse_line(run))

    def _draw_chart(self, run: Run) -> None:
        right = self._history.forecast.limit if run.outcome is None else max(run.length, 1)
        self.chart.show_figure(bytes_over_run(self._history, self._position, right))
        self.chart.set_cursor(self._position, self.tip(self._position))
        self._axis.setText(
            tr("{unit} in the cache, over generated tokens").format(unit=tr(self.chart.figure.unit()[1]))
        )

    def _draw_tokens(self, run: Run) -> None:
        rows = memory_tokens.token_rows(self._history, run, self._position)
        self.cells.set_rows(rows)
        self.cells.setVisible(bool(rows) and not self._is_presenting)
        names = self._history.parts
        labels = [part_name(part, names) for part in names]
        if len(labels) > 1:  # a second cue besides the colours of the areas
            labels[0] = tr("{part} (lowest)").format(part=labels[0])
        keys = [LegendKey(word, part_colour(p), "disk" if p[0] == "disk" else "area")
                for word, p in zip(labels, names, strict=True)]  # fmt: skip
        states = dict.fromkeys(state for row in rows for state in row.states)
        if len(states) > 1:
            words = {state: tr(memory_tokens.STATE_NAMES[state]) for state in states}
            keys += [LegendKey(words[s], STATE_COLOURS[s], "hollow" if s in HOLLOW_STATES else "cell")
                     for s in states if words[s] not in {key.word for key in keys}]  # fmt: skip
        self.legend.set_keys(keys)

    def tip(self, x: int) -> str:
        """Return the tooltip of the curve."""
        return curve_tooltip(self._history, x)

    def token_tip(self, row: int, index: int) -> str:
        """Return the tooltip of a token; empty if there is none."""
        run = self._run
        rows = memory_tokens.token_rows(self._history, run, self._position) if run is not None else []
        if run is None or row >= len(rows) or index >= len(rows[row].states):
            return ""
        return memory_tokens.token_tooltip(self._history, run, rows[row], index)
