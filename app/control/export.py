"""Export from the window: choose content, format and file; then write or copy it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from decodescope.app.control.messages import Messages
from decodescope.app.control.recorded_runs import RecordedRuns
from decodescope.app.panels.centre import Centre
from decodescope.app.views.base import Excerpt
from decodescope.app.widgets.clipboard import copy_text_and_html
from decodescope.app.widgets.file_dialogs import open_save_dialog, show_save_error
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.app.control.export_items import ExportItems
    from decodescope.app.panels.export_dialog import ExportTarget
    from decodescope.app.views.base import View
    from decodescope.app.widgets.widget_pictures import PictureOptions

_TITLE = mark("Nothing copied")
_NOTHING = mark("There is no text yet. Run something first.")


class CopyController(QObject):
    """Copies the text of the front view, or the text of the run if that view has none."""

    def __init__(self, centre: Centre, messages: Messages) -> None:
        super().__init__(centre)
        self._centre, self._messages = centre, messages

    @Slot()
    def copy_text(self) -> None:
        """Copy plain text."""
        excerpt = self._excerpt()
        if excerpt is not None:
            QGuiApplication.clipboard().setText(excerpt.plain)

    @Slot()
    def copy_coloured(self) -> None:
        """Copy HTML with colours, and plain text for programs that do not accept HTML."""
        excerpt = self._excerpt()
        if excerpt is not None:
            copy_text_and_html(excerpt.plain, excerpt.html)

    def _excerpt(self) -> Excerpt | None:
        column = self._centre.columns[0]
        excerpt = column.current_view.current_excerpt() or column.view("tokens").current_excerpt()
        if excerpt is None:
            self._messages.show_notice(tr(_NOTHING), tr(_TITLE))
        return excerpt


class ExportController(QObject):
    """Shows its dialogs above `parent_window`; `recorded` saves runs. `make` builds the exports on first
    use.
    """

    def __init__(
        self, parent_window: QWidget, make: Callable[[], ExportItems], recorded: RecordedRuns, messages: Messages
    ) -> None:
        super().__init__(parent_window)
        self._parent_window, self._make, self._recorded, self._messages = parent_window, make, recorded, messages

    @cached_property
    def exports(self) -> ExportItems:
        """The available exports."""
        return self._make()

    def add_lab(self, name: str, title: str, view: View) -> None:
        """Offer the view of an open lab for export."""
        self.exports.add_lab(name, title, view)

    def remove_lab(self, name: str) -> None:
        """Stop offering the view of a closed lab."""
        if "exports" in vars(self):
            self.exports.remove_lab(name)

    @Slot()
    def open_dialog(self) -> None:
        """Open the export dialog."""
        self._open_dialog(self.exports.offers(), self._parent_window)

    def open_dialog_for(self, name: str, parent_window: QWidget) -> None:
        """Open the export dialog for the item `name` above a window of its own."""
        self._open_dialog([offer for offer in self.exports.offers() if offer.name == name], parent_window)

    @Slot()
    def save_page(self) -> None:
        """Let the user choose a file, then write the run as a web page; show a notice if there is no run."""
        from decodescope.app.control.export_items import RUN
        from decodescope.app.panels.export_dialog import HTML
        from decodescope.app.widgets.widget_pictures import PictureOptions

        if any(offer.name == RUN for offer in self.exports.offers()):
            self._choose_path(RUN, HTML, PictureOptions(self._parent_window.size()))
        else:
            self._messages.show_notice(tr(_NOTHING), tr("Nothing to save"))

    def _open_dialog(self, offers: list[ExportTarget], parent_window: QWidget) -> None:
        from decodescope.app.panels.export_dialog import ExportDialog

        dialog = ExportDialog(offers, parent_window.window())
        dialog.chosen.connect(self._choose_path)
        dialog.copyRequested.connect(self.copy)
        dialog.open()

    @Slot(str, str, object)
    def _choose_path(self, name: str, kind: str, options: PictureOptions) -> None:
        from decodescope.app.panels.export_dialog import EXPORT_FORMATS, TRACE

        if kind == TRACE:
            self._recorded.choose_save_path()
            return
        title = tr(EXPORT_FORMATS[kind].save_title)
        files = f"{tr(EXPORT_FORMATS[kind].filter_title)} (*.{kind})"
        open_save_dialog(self._parent_window, title, f"{name}.{kind}", files, partial(self.save, name, options))

    def save(self, name: str, options: PictureOptions, path: str) -> None:
        """Write the item `name` of `ExportItems`; show a message on failure."""
        try:
            self.exports.save(name, Path(path), options)
        except OSError as error:
            show_save_error(self._parent_window, path, error)

    @Slot(str, str, object)
    def copy(self, name: str, kind: str, options: PictureOptions) -> None:
        """Copy a picture, or a table as text, to the clipboard; show a message on failure."""
        from decodescope.app.panels.export_dialog import PNG
        from decodescope.app.storage.exported_files import CSV, as_json, to_csv

        clipboard = QGuiApplication.clipboard()
        if kind != PNG:
            rows = self.exports.figures(name)
            clipboard.setText(to_csv(rows, options.guard_formulas) if kind == CSV else as_json(rows))
            return
        try:
            clipboard.setImage(self.exports.image(name, options))
        except OSError as error:
            show_save_error(self._parent_window, tr("The picture"), error)

    @Slot()
    def copy_picture(self) -> None:
        """Copy a picture of the front view at twice its resolution."""
        from decodescope.app.panels.export_dialog import PNG
        from decodescope.app.widgets.widget_pictures import PictureOptions

        offer = self.exports.front_offer()
        self.copy(offer.name, PNG, PictureOptions(offer.size, scale=2.0))
