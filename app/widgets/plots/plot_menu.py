"""A plot's one menu: all of it again, and the plot as a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QMenu, QWidget

from app.widgets.ask_file import open_save_dialog
from app.widgets.save_error import show_save_error
from core.file_writing import atomic_write
from resources.language import mark, tr

if TYPE_CHECKING:
    from app.widgets.plots.plot_canvas import PlotCanvas

_FILE_TYPES = (
    (mark("Picture (SVG)…"), "svg", mark("Pictures (*.svg)")),
    (mark("Picture (PNG)…"), "png", mark("Pictures (*.png)")),
    (mark("Figures (CSV)…"), "csv", mark("Tables (*.csv)")),
)


class PlotMenu(QObject):
    """What can be done with the plot of `panel`; it outlives each menu that it opens."""

    def __init__(self, panel: QWidget, canvas: Callable[[], PlotCanvas], show_whole: Callable[[], None]) -> None:
        """`canvas` makes the drawing if there is none yet: it is asked for only to save."""
        super().__init__(panel)
        self._panel, self._canvas, self._show_whole = panel, canvas, show_whole

    def create_menu(self, is_zoomed: bool) -> QMenu:
        """A menu that deletes itself once it is closed."""
        menu = QMenu(self._panel)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Show all"), self._show_whole).setEnabled(is_zoomed)
        menu.addSeparator()
        for title, suffix, kinds in _FILE_TYPES:
            menu.addAction(tr(title), partial(self._open_save_dialog, suffix, tr(kinds)))
        return menu

    def _open_save_dialog(self, suffix: str, kinds: str) -> None:
        name = self._panel.accessibleName().lower().replace(" ", "-").replace(",", "")
        open_save_dialog(self._panel, tr("Save the plot"), f"{name}.{suffix}", kinds, self.save)

    @Slot(str)
    def save(self, path: str) -> None:
        """Write the plot to a file, as its suffix says."""
        from app.widgets.plots.plot_export import save_plot

        canvas = self._canvas()
        try:
            with atomic_write(Path(path)) as part:
                save_plot(canvas, part, canvas.backgroundBrush().color())
        except OSError as error:
            show_save_error(self._panel, path, error)
