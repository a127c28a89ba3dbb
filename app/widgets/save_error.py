"""What is said when a file could not be written."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.widgets.plain_text import as_plain_text
from resources.language import tr


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
