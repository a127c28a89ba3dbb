"""Plots of plain values, drawn by pyqtgraph, which is imported with the first plot that is shown."""

from app.widgets.plots.figure import BYTES, Area, Axis, Bars, Dots, Figure, Line, Titled
from app.widgets.plots.panel import PlotPanel

__all__ = ["BYTES", "Area", "Axis", "Bars", "Dots", "Figure", "Line", "PlotPanel", "Titled"]
