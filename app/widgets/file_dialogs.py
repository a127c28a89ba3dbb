"""Non-blocking file dialogs, and the message for a file that could not be saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QFileInfo, QObject, QStandardPaths, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.widgets.plain_text import as_plain_text
from decodescope.core.system.system_errors import system_error_reason, writing_remedy
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from PySide6.QtWidgets import QFileDialog

_last_folder = ""


def initial_folder(last: str | None = None) -> str:
    """Return the folder in which a dialog starts: the last used one, the documents folder or the home folder.

    `last`: the last folder of dialogs with a purpose of their own; that of all dialogs without it.
    """
    places = QStandardPaths.StandardLocation
    last = _last_folder if last is None else last
    candidates = (last, *map(QStandardPaths.writableLocation, (places.DocumentsLocation, places.HomeLocation)))
    return next((folder for folder in candidates if folder and QFileInfo(folder).isDir()), "/")


def remember_folder(path: str) -> None:
    """Start the next dialog in the folder of this file, or in this folder."""
    global _last_folder
    info = QFileInfo(path)
    _last_folder = info.absoluteFilePath() if info.isDir() else info.absolutePath()


class _FolderMemory(QObject):
    """Stores the folder of a dialog's choice. It is a child of the dialog, because PySide cannot release a
    connection to a plain function while the dialog is destroyed.
    """

    @Slot(str)
    def remember(self, path: str) -> None:
        """Start the next dialog in the folder of `path`."""
        remember_folder(path)


def open_save_dialog(parent: QWidget, title: str, name: str, kinds: str, slot: Callable[[str], None]) -> None:
    """Open a save dialog with `name` proposed; its suffix is added if none is typed. `kinds`: `Pictures (*.png)`."""
    dialog = _create_dialog(parent, title, kinds, slot)
    dialog.setAcceptMode(dialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(name.rpartition(".")[2])
    dialog.selectFile(name)
    dialog.open()


def open_format_save_dialog(
    parent: QWidget, title: str, name: str, formats: Sequence[str], slot: Callable[[str, int], None], folder: str
) -> None:
    """Open a save dialog in `folder` with a choice of formats (`8 bits (*.gguf)`); `slot` gets the path and the
    format's place.
    """
    dialog = _create_dialog(parent, title, ";;".join(formats), None)
    dialog.setDirectory(folder)
    choice = _FormatChoice(dialog, formats)
    choice.chosen.connect(slot)
    dialog.fileSelected.connect(choice.emit_choice)
    dialog.setAcceptMode(dialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(name.rpartition(".")[2])
    dialog.selectFile(name)
    dialog.open()


class _FormatChoice(QObject):
    """`chosen(path, place)`: the file with the place of the selected format."""

    chosen = Signal(str, int)

    def __init__(self, dialog: QFileDialog, formats: Sequence[str]) -> None:
        super().__init__(dialog)
        self._dialog, self._formats = dialog, list(formats)

    @Slot(str)
    def emit_choice(self, path: str) -> None:
        """Emit `chosen`."""
        selected = self._dialog.selectedNameFilter()
        self.chosen.emit(path, self._formats.index(selected) if selected in self._formats else 0)


def open_file_dialog(parent: QWidget, title: str, kinds: str, slot: Callable[[str], None]) -> None:
    """Open a dialog for one existing file."""
    dialog = _create_dialog(parent, title, kinds, slot)
    dialog.setFileMode(dialog.FileMode.ExistingFile)
    dialog.open()


def open_folder_dialog(parent: QWidget, title: str, slot: Callable[[str], None]) -> None:
    """Open a dialog for one existing folder."""
    dialog = _create_dialog(parent, title, "", slot)
    dialog.setFileMode(dialog.FileMode.Directory)
    dialog.open()


def _create_dialog(parent: QWidget, title: str, kinds: str, slot: Callable[[str], None] | None) -> QFileDialog:
    from PySide6.QtWidgets import QFileDialog  # slow import, which the window's start does not need

    dialog = QFileDialog(parent.window(), title, initial_folder(), kinds)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(_FolderMemory(dialog).remember)
    if slot is not None:
        dialog.fileSelected.connect(slot)
    return dialog


def show_save_error(parent: QWidget, path: str, error: OSError) -> None:
    """Show which file could not be saved, why, and what to do."""
    from PySide6.QtWidgets import QMessageBox  # slow import, which the window's start does not need

    cause = system_error_reason(error)
    box = QMessageBox(
        QMessageBox.Icon.Warning,
        tr("Not saved"),
        as_plain_text(tr("{path} could not be saved: {cause}.").format(path=path, cause=cause)),
        parent=parent.window(),
    )
    box.setInformativeText(writing_remedy(error, tr("Choose another folder or another name.")))
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
