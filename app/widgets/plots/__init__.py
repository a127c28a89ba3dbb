"""Plots of plain values, drawn by pyqtgraph, which is imported with the first shown plot."""

from decodescope.app.widgets.plots.plot_panel import PlotPanel
from decodescope.app.widgets.plots.plot_spec import (
    BYTES,
    PlotArea,
    PlotAxis,
    PlotBars,
    PlotDots,
    PlotLine,
    PlotSpec,
    TitledPlot,
)

__all__ = ["BYTES", "PlotArea", "PlotAxis", "PlotBars", "PlotDots", "PlotLine", "PlotPanel", "PlotSpec", "TitledPlot"]
