"""Taking something out of the window: asks what and how, where to, and writes or copies it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.control.messages import Messages
from app.control.recorded_runs import RecordedRuns
from app.panels.centre import Centre
from app.theme.theme import Theme, theme_for
from app.views.base import Excerpt
from app.widgets.clipboard import copy_text_and_html
from app.widgets.file_dialogs import open_save_dialog, show_save_error
from resources.language import mark, tr

if TYPE_CHECKING:
    from app.control.export_items import ExportItems
    from app.control.stage.demo_film import DemoRecorder
    from app.panels.export_dialog import ExportTarget
    from app.views.base import View
    from app.widgets.widget_pictures import PictureOptions

_TITLE = mark("Nothing was copied")
_NOTHING = mark("There is no text yet: run something first.")


class CopyController(QObject):
    """Takes the words of the view in front, or the run's text where that view shows none."""

    def __init__(self, centre: Centre, messages: Messages) -> None:
        super().__init__(centre)
        self._centre, self._messages = centre, messages

    @Slot()
    def copy_text(self) -> None:
        """Plain words."""
        excerpt = self._excerpt()
        if excerpt is not None:
            QGuiApplication.clipboard().setText(excerpt.plain)

    @Slot()
    def copy_coloured(self) -> None:
        """Words with colours for what takes HTML, and plain for what does not."""
        excerpt = self._excerpt()
        if excerpt is not None:
            copy_text_and_html(excerpt.plain, excerpt.html)

    def _excerpt(self) -> Excerpt | None:
        column = self._centre.columns[0]
        excerpt = column.current_view.excerpt() or column.view("tokens").excerpt()
        if excerpt is None:
            self._messages.show_notice(tr(_NOTHING), tr(_TITLE))
        return excerpt


class ExportController(QObject):
    """Speaks above the window that `over` lies in; how a run is recorded, `recorded` knows. What can be taken out is
    made when somebody first asks."""

    def __init__(self, over: QWidget, make: Callable[[], ExportItems], recorded: RecordedRuns) -> None:
        super().__init__(over)
        self._over, self._make, self._recorded = over, make, recorded
        self._theme = theme_for("light")

    @cached_property
    def exports(self) -> ExportItems:
        """What can be taken out of the window, in the shown theme."""
        exports = self._make()
        exports.theme = self._theme
        return exports

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """This is the shown one."""
        self._theme = theme
        if "exports" in vars(self):
            self.exports.theme = theme

    def add_lab(self, name: str, title: str, view: View) -> None:
        """A lab's view can be taken out too, as long as its room is open."""
        self.exports.add_lab(name, title, view)

    def remove_lab(self, name: str) -> None:
        """It is gone."""
        if "exports" in vars(self):
            self.exports.remove_lab(name)

    @Slot()
    def open_dialog(self) -> None:
        """Ask what to take out, and how."""
        self._open_dialog(self.exports.offers(), self._over)

    def open_dialog_for(self, name: str, over: QWidget) -> None:
        """Ask how to take out what is called so, above a window of its own."""
        self._open_dialog([offer for offer in self.exports.offers() if offer.name == name], over)

    def _open_dialog(self, offers: list[ExportTarget], over: QWidget) -> None:
        from app.panels.export_dialog import ExportDialog

        dialog = ExportDialog(offers, over.window())
        dialog.chosen.connect(self._choose_path)
        dialog.copyRequested.connect(self.copy)
        dialog.open()

    @Slot(str, str, object)
    def _choose_path(self, name: str, kind: str, pose: PictureOptions) -> None:
        from app.panels.export_dialog import EXPORT_FORMATS, TRACE

        if kind == TRACE:
            self._recorded.choose_save_path()
            return
        title = tr(EXPORT_FORMATS[kind].save_title)
        files = f"{tr(EXPORT_FORMATS[kind].filter_title)} (*.{kind})"
        open_save_dialog(self._over, title, f"{name}.{kind}", files, partial(self.save, name, pose))

    def save(self, name: str, pose: PictureOptions, path: str) -> None:
        """Write what `ExportItems` calls so; a failure is told."""
        try:
            self.exports.save(name, Path(path), pose)
        except OSError as error:
            show_save_error(self._over, path, error)

    @Slot(str, str, object)
    def copy(self, name: str, kind: str, pose: PictureOptions) -> None:
        """Put a picture, or figures as text, on the clipboard; a failure is told."""
        from app.panels.export_dialog import PNG
        from app.storage.exported_files import CSV, as_json, to_csv

        clipboard = QGuiApplication.clipboard()
        if kind != PNG:
            rows = self.exports.figures(name)
            clipboard.setText(to_csv(rows, pose.guard_formulas) if kind == CSV else as_json(rows))
            return
        try:
            clipboard.setImage(self.exports.image(name, pose))
        except OSError as error:
            show_save_error(self._over, tr("The picture"), error)

    @Slot()
    def copy_picture(self) -> None:
        """Put a picture of the view in front on the clipboard, as large as it is shown and twice as fine."""
        from app.panels.export_dialog import PNG
        from app.widgets.widget_pictures import PictureOptions

        offer = self.exports.offers()[0]
        self.copy(offer.name, PNG, PictureOptions(offer.size, scale=2.0))


class LazyDemoRecorder(QObject):
    """Films the shown run as it would be presented."""

    def __init__(self, make: Callable[[], DemoRecorder], parent: QObject) -> None:
        super().__init__(parent)
        self._make = make
        self._recorder: DemoRecorder | None = None

    @property
    def recorder(self) -> DemoRecorder:
        """What films; made when it is first asked for."""
        if self._recorder is None:
            self._recorder = self._make()
        return self._recorder

    @Slot()
    def open_dialog(self) -> None:
        """Ask how the film is to be."""
        self.recorder.open_dialog()
