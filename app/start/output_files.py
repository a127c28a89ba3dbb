"""Save pictures, exports and films of the window for documents."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QApplication, QWidget

from decodescope.app.control.export_items import RUN, ExportItems
from decodescope.app.panels.export_dialog import HTML, ExportTarget
from decodescope.app.storage.exported_files import CSV
from decodescope.app.views import VIEWS
from decodescope.app.widgets import widget_pictures
from decodescope.app.widgets.widget_pictures import PictureOptions
from decodescope.app.window.main_window import MainWindow
from decodescope.core.system.file_writing import atomic_write, not_written_error
from decodescope.resources.language import join_names, tr


class PictureError(Exception):
    """Raised when a picture cannot be saved; the message gives the reason."""


def save_window_picture(window: QWidget, path: Path, scale: float = 1.0) -> None:
    """Save the window as currently drawn, in the format of the extension of `path`; a failed save leaves no file.
    Raises PictureError.

    A PNG has the window's size times its device pixel ratio and `scale`, in pixels; an SVG has the window's size in CSS
    pixels.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as part:
            widget_pictures.save_picture(window, part, scale=window.devicePixelRatioF() * scale)
    except OSError as error:
        raise PictureError(str(not_written_error(path, error))) from None


def export(window: MainWindow, path: Path, guard_formulas: bool = True) -> None:
    """Export the shown content in the format of the extension of `path`: the run as a web page, or the view as a
    picture (complete, at its current width) or as data. `guard_formulas` protects cells that a spreadsheet would run.

    Raises PictureError.
    """
    exports, kind = window.parts.export.exports, path.suffix.lower().removeprefix(".")
    view = exports.front_offer()
    name = RUN if kind == HTML else view.name
    offer = next((offer for offer in exports.offers() if offer.name == name), None)
    if offer is None:
        raise PictureError(tr("There is no run to export. Add --run, or pass a recorded run, FILE.decodescope."))
    if kind not in offer.formats:
        raise PictureError(_no_figures_message(exports, offer))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scale = window.devicePixelRatioF()
        exports.save(
            name, path, PictureOptions(view.size, expands_scrolled=True, scale=scale, guard_formulas=guard_formulas)
        )
    except OSError as error:
        raise PictureError(str(not_written_error(path, error))) from None


def record_demo(window: MainWindow, path: Path, tokens_per_second: float, size: tuple[int, int] | None) -> None:
    """Record a film of the shown run in the shown view, at `tokens_per_second` tokens per second, in the format of the
    extension of `path`. Raises PictureError.
    """
    from decodescope.app.features.presentation.controller.demo_film import FilmSettings, failure_text, render_film
    from decodescope.app.features.presentation.store import FilmError
    from decodescope.app.theme.theme import REFERENCE_SIZE

    parts, run = window.parts, window.session.run
    if run is None:
        raise PictureError(tr("There is no run to film. Add --run, or pass a recorded run, FILE.decodescope."))
    look, view = parts.appearance, parts.centre.columns[0].current_name
    order = FilmSettings(
        path,
        view,
        QSize(*size) if size else REFERENCE_SIZE,
        look.settings_theme,
        tokens_per_second,
        look.should_animate(),
    )
    try:
        for _done in render_film(run, order):
            pass
    except (OSError, FilmError) as error:
        raise PictureError(failure_text(error, path)) from None


def _no_figures_message(exports: ExportItems, offer: ExportTarget) -> str:
    """Explain that a view has no data to export, and name the views that have."""
    others = [
        other.name for other in exports.offers() if CSV in other.formats and other.name in {v.name for v in VIEWS}
    ]
    instead = (
        tr(" Use --view to choose one that has data: {names}.").format(names=join_names(others))
        if others
        else tr(" Add --run to produce some.")
    )
    return tr("The view “{title}” has no data to export yet.{instead}").format(title=offer.title, instead=instead)


def hide_transient_state(window: QWidget) -> None:
    """Remove the blinking text cursor, the keyboard focus and the hover state, so that pictures are reproducible."""
    QApplication.setCursorFlashTime(0)
    for widget in window.findChildren(QWidget):
        if widget.underMouse():
            widget.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False)
            widget.update()
    focused = window.focusWidget()
    if focused is not None:
        focused.clearFocus()
