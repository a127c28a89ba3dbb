"""A plot saved as a picture or as figures.

pyqtgraph's own exporters are not used: that for SVG fails on the paths of Qt 6.11, that for CSV knows curves only.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtGui import QColor

from app.state.csv_text import to_csv
from app.widgets.plots.plot_canvas import PlotCanvas
from app.widgets.plots.plot_words import plot_table
from app.widgets.widget_pictures import SUFFIXES, save_picture

_PNG_SCALE = 2
"""Pixels of a picture for each pixel of the screen, so that it can be printed."""


def save_plot(canvas: PlotCanvas, path: Path, ground: QColor) -> None:
    """Write the plot as the path's suffix says: svg, png or csv. Raises OSError."""
    if path.suffix.lower() in SUFFIXES:
        save_picture(canvas, path, ground, _PNG_SCALE)
        return
    path.write_text(to_csv(plot_table(canvas.figure)), encoding="utf-8", errors="replace", newline="")
