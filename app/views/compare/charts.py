"""The plots of a comparison under their headings, in two columns where the width allows."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import STRETCH, arrange
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.plots import PlotPanel, PlotSpec, TitledPlot

_TWO_COLUMNS_FROM = 560
"""Minimum width in pixels for two columns."""
_BAR_HEIGHT, _CURVE_HEIGHT = 25, 180
"""Heights in pixels: of each horizontal bar, and of an upright plot."""


class ChartGrid(Themed, QWidget):
    """A grid with one plot per figure."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._grid = arrange(QGridLayout(self), margins=0)
        self._cells: list[QWidget] = []
        self._headings: list[QLabel] = []
        self.plots: list[PlotPanel] = []

    def restyle(self, theme: Theme) -> None:
        self._grid.setHorizontalSpacing(theme.px(28))
        self._grid.setVerticalSpacing(theme.px(14))
        for plot in self.plots:
            plot.set_theme(theme)
            self._set_height(plot)
        self._arrange()

    def show_figures(self, figures: Sequence[TitledPlot]) -> None:
        """Show these figures."""
        while len(self.plots) < len(figures):
            self._add(figures[len(self.plots)][0])
        for number, cell in enumerate(self._cells):
            cell.setVisible(number < len(figures))
        for (title, figure), heading, plot in zip(figures, self._headings, self.plots, strict=False):
            heading.setText(title.upper())
            plot.setAccessibleName(title)
            plot.show_figure(figure)
            self._set_height(plot)
        self._arrange()

    def _add(self, title: str) -> None:
        cell = QWidget(self)
        heading, plot = PlainLabel(cell), PlotPanel(title, cell, min_size=(160, 60))
        heading.setProperty("role", "heading")
        heading.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        arrange(QVBoxLayout(cell), heading, plot, STRETCH, margins=0, spacing=2)
        plot.set_theme(self._theme)
        self._cells.append(cell)
        self._headings.append(heading)
        self.plots.append(plot)

    def _set_height(self, plot: PlotPanel) -> None:
        """Set the plot's height from its number of bars."""
        plot.setFixedHeight(self._theme.px(chart_height(plot.figure)))

    def _arrange(self) -> None:
        column_count = 2 if self.width() >= self._theme.px(_TWO_COLUMNS_FROM) else 1
        for number, cell in enumerate(self._cells):
            self._grid.addWidget(cell, number // column_count, number % column_count)
        for column in range(2):
            self._grid.setColumnStretch(column, 1 if column < column_count else 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Switch to one column when the width is small."""
        super().resizeEvent(event)
        self._arrange()

    def minimumSizeHint(self) -> QSize:
        """Return the width of one plot."""
        return QSize(self._theme.px(160), super().minimumSizeHint().height())


def chart_height(figure: PlotSpec) -> int:
    """Return the height of a plot in pixels at 100 %."""
    return _BAR_HEIGHT * figure.count + 12 if figure.is_horizontal else _CURVE_HEIGHT
