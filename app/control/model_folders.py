"""Model folders, opened by hand."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.control.messages import Messages
from app.control.model_choice import ModelChoice
from app.widgets.ask_file import open_folder_dialog
from resources.language import tr


class ModelFolders(QObject):
    """Asks for a folder above the window that `over` lies in, and lists the model that it holds."""

    def __init__(self, over: QWidget, model: ModelChoice, messages: Messages) -> None:
        super().__init__(over)
        self._over, self._model, self._messages = over, model, messages
        model.folderRequested.connect(self.open)

    @Slot()
    def open(self) -> None:
        """Choose a model folder."""
        open_folder_dialog(self._over, tr("Open a model folder"), self.use)

    @Slot(str)
    def use(self, folder: str) -> None:
        """List a model folder and choose it."""
        if not self._model.add_folder(folder):
            self._messages.show_setup_error(tr("This folder holds no model"), *self._model.folder_problem(folder))
