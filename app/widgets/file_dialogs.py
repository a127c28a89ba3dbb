"""Non-blocking file dialogs, and the message for a file that could not be saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QFileInfo, QObject, QStandardPaths, Qt, Slot
from PySide6.QtWidgets import QWidget

from app.widgets.plain_text import as_plain_text
from resources.language import tr

if TYPE_CHECKING:
    from PySide6.QtWidgets import QFileDialog

_last_folder = ""


def initial_folder() -> str:
    """The folder in which the next dialog begins: the one used last, the user's documents, or their home."""
    places = QStandardPaths.StandardLocation
    candidates = (_last_folder, *map(QStandardPaths.writableLocation, (places.DocumentsLocation, places.HomeLocation)))
    return next((folder for folder in candidates if folder and QFileInfo(folder).isDir()), "/")


def remember_folder(path: str) -> None:
    """Begin the next dialog in the folder of that file, or in that folder."""
    global _last_folder
    info = QFileInfo(path)
    _last_folder = info.absoluteFilePath() if info.isDir() else info.absolutePath()


class _FolderMemory(QObject):
    """Remembers the folder of what a dialog has chosen. A part of the dialog: PySide cannot let go of a connection to a
    plain function while the dialog is being destroyed."""

    @Slot(str)
    def remember(self, path: str) -> None:
        """Begin the next dialog there."""
        remember_folder(path)


def open_save_dialog(parent: QWidget, title: str, name: str, kinds: str, slot: Callable[[str], None]) -> None:
    """`name` is offered, its ending is added where none is typed; `kinds` as `Pictures (*.png)`."""
    dialog = _create_dialog(parent, title, kinds, slot)
    dialog.setAcceptMode(dialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(name.rpartition(".")[2])
    dialog.selectFile(name)
    dialog.open()


def open_file_dialog(parent: QWidget, title: str, kinds: str, slot: Callable[[str], None]) -> None:
    """One file that is there."""
    dialog = _create_dialog(parent, title, kinds, slot)
    dialog.setFileMode(dialog.FileMode.ExistingFile)
    dialog.open()


def open_folder_dialog(parent: QWidget, title: str, slot: Callable[[str], None]) -> None:
    """One folder that is there."""
    dialog = _create_dialog(parent, title, "", slot)
    dialog.setFileMode(dialog.FileMode.Directory)
    dialog.open()


def _create_dialog(parent: QWidget, title: str, kinds: str, slot: Callable[[str], None]) -> QFileDialog:
    from PySide6.QtWidgets import QFileDialog  # takes longer to import than the window can wait

    dialog = QFileDialog(parent.window(), title, initial_folder(), kinds)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(_FolderMemory(dialog).remember)
    dialog.fileSelected.connect(slot)
    return dialog


def show_save_error(parent: QWidget, path: str, error: OSError) -> None:
    """Which file, why, and what to do about it."""
    from PySide6.QtWidgets import QMessageBox  # takes longer to import than the window can wait

    cause = error.strerror or str(error) or tr("the file could not be written")
    box = QMessageBox(
        QMessageBox.Icon.Warning,
        tr("Not saved"),
        as_plain_text(tr("{path} was not saved: {cause}.").format(path=path, cause=cause)),
        parent=parent.window(),
    )
    box.setInformativeText(tr("Choose another folder or another name."))
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
