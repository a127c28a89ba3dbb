"""Model downloads: opens the Hub dialog and the engine dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.storage.settings import ModelsSection
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.app.control.engine_connection import EngineConnection
    from decodescope.app.features.downloads.controller.hub_dialog import HubDialog
    from decodescope.app.features.downloads.session import Downloads


class LazyDownloads:
    """Creates the downloads once per window."""

    def __init__(self, parent: QObject) -> None:
        self._parent = parent
        self.created: Downloads | None = None
        """None until first used."""

    def get(self) -> Downloads:
        """Return the downloads, creating them if needed."""
        if self.created is None:
            from decodescope.app.features.downloads.session import Downloads

            self.created = Downloads(self._parent)
        return self.created

    def stop_all(self) -> None:
        """Stop all downloads, if there are any."""
        if self.created is not None:
            self.created.stop_all()


class ModelDownload(QObject):
    """Opens the dialogs above `parent_window` and adds downloaded models to the picker. `noticed(text,
    title)`: a download ended while the dialog was closed; `folderRequested`: open a model folder instead.
    """

    noticed = Signal(str, str)
    folderRequested = Signal()

    def __init__(
        self, parent_window: QWidget, downloads: LazyDownloads, model: ModelChoice, settings: ModelsSection
    ) -> None:
        super().__init__(parent_window)
        self._parent_window, self._downloads, self._model, self._settings = parent_window, downloads, model, settings
        self._dialog: HubDialog | None = None
        model.hubRequested.connect(self.open)
        model.engineRequested.connect(self.connect_engine)
        if downloads.created is not None:
            self._connect_downloads(downloads.created)

    @property
    def selected_name(self) -> str | None:
        """The model selected in the dialog; None while it is closed."""
        return self._dialog.dialog.list.name if self._dialog is not None else None

    @Slot()
    def open(self) -> HubDialog:
        """Open the dialog in its last state."""
        from decodescope.app.features.downloads.controller.hub_dialog import HubDialog

        if self._dialog is None:
            if self._downloads.created is None:
                self._connect_downloads(self._downloads.get())
            self._dialog = HubDialog(self._parent_window.window(), self._downloads.get(), self._model)
            self._dialog.dialog.folderRequested.connect(self._on_folder)
            self._dialog.dialog.destroyed.connect(self._on_closed)
        self._dialog.dialog.show()
        self._dialog.dialog.activateWindow()
        return self._dialog

    @Slot()
    def connect_engine(self) -> EngineConnection:
        """Open the dialog that connects to an engine."""
        from decodescope.app.control.engine_connection import EngineConnection

        connecting = EngineConnection(self._parent_window.window(), self._model, self._settings)
        connecting.dialog.open()
        return connecting

    def _connect_downloads(self, downloads: Downloads) -> None:
        downloads.arrived.connect(self._model.add_hub_model)
        downloads.deleted.connect(self._model.remove)
        downloads.ended.connect(self._on_ended)

    @Slot(str, object)
    def _on_ended(self, name: str, error: ErrorReport | None) -> None:
        """Show a notice if the dialog is closed."""
        if self._dialog is not None:
            return
        if error is None:
            self.noticed.emit(tr("It is now in the model list."), tr("{name} downloaded").format(name=name))
        else:
            self.noticed.emit(join_sentences(error.cause, error.remedy), f"{error.title}: {name}")

    @Slot()
    def _on_folder(self) -> None:
        if self._dialog is not None:
            self._dialog.dialog.close()
        self.folderRequested.emit()

    @Slot()
    def _on_closed(self) -> None:
        self._dialog = None
