"""Getting a model: the dialog in step with what is searched for, fetched and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.model_choice import ModelChoice
from app.session.lazy_downloads import LateDownloads
from app.state.worker_messages import ErrorReport
from app.storage.settings import Models
from app.theme.theme import Theme
from resources.language import sentences, tr

if TYPE_CHECKING:
    from app.control.engine_connection import EngineConnection
    from app.control.hub_dialog import HubDialog
    from app.session.downloads import Downloads


class ModelDownload(QObject):
    """Opens the dialog over the window that `over` lies in; lists what has come in the picker, and tells of it where
    the dialog is closed by then: `noticed(text, title)`. `folderWanted`: a model's folder is to be opened instead."""

    noticed = Signal(str, str)
    folderWanted = Signal()

    def __init__(self, over: QWidget, downloads: LateDownloads, model: ModelChoice, kept: Models) -> None:
        super().__init__(over)
        self._over, self._downloads, self._model, self._kept = over, downloads, model, kept
        self._theme: Theme | None = None
        self._shown: HubDialog | None = None
        model.hubWanted.connect(self.open)
        model.engineWanted.connect(self.connect_engine)
        if downloads.made is not None:
            self._follow(downloads.made)

    @property
    def picked(self) -> str | None:
        """The model that is picked in the dialog; None while it is not open."""
        return self._shown.dialog.list.name if self._shown is not None else None

    @Slot()
    def open(self) -> HubDialog:
        """The dialog, as it was left."""
        from app.control.hub_dialog import HubDialog

        if self._shown is None:
            if self._downloads.made is None:
                self._follow(self._downloads.get())
            self._shown = HubDialog(self._over.window(), self._downloads.get(), self._model)
            self._shown.dialog.folderWanted.connect(self._on_folder)
            self._shown.dialog.destroyed.connect(self._on_closed)
            if self._theme is not None:
                self._shown.dialog.set_theme(self._theme)
        self._shown.dialog.show()
        self._shown.dialog.activateWindow()
        return self._shown

    @Slot()
    def connect_engine(self) -> EngineConnection:
        """The dialog that reaches a model on another machine."""
        from app.control.engine_connection import EngineConnection

        connecting = EngineConnection(self._over.window(), self._model, self._kept)
        if self._theme is not None:
            connecting.dialog.set_theme(self._theme)
        connecting.dialog.open()
        return connecting

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, now or once it is there."""
        self._theme = theme
        if self._shown is not None:
            self._shown.dialog.set_theme(theme)

    def _follow(self, downloads: Downloads) -> None:
        downloads.arrived.connect(self._model.add_hub)
        downloads.deleted.connect(self._model.drop)
        downloads.ended.connect(self._on_ended)

    @Slot(str, object)
    def _on_ended(self, name: str, error: ErrorReport | None) -> None:
        """Said here only where the dialog does not."""
        if self._shown is not None:
            return
        if error is None:
            self.noticed.emit(tr("It stands in the list of models now."), tr("{name} is here").format(name=name))
        else:
            self.noticed.emit(sentences(error.cause, error.remedy), f"{error.title}: {name}")

    @Slot()
    def _on_folder(self) -> None:
        if self._shown is not None:
            self._shown.dialog.close()
        self.folderWanted.emit()

    @Slot()
    def _on_closed(self) -> None:
        self._shown = None
