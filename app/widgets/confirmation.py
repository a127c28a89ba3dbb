"""Questions with Cancel as the default answer."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from decodescope.app.widgets.building import set_up
from decodescope.resources.language import tr


def ask(
    parent: QWidget, name: str, title: str, question: str, details: str, accept: str, on_accept: Callable[[], object],
    *, is_destructive: bool = False,
) -> QMessageBox:  # fmt: skip
    """Open a box above `parent` whose button `accept` calls `on_accept`, and return it. All texts are shown literally.

    `name` is its object name. The function returns at once; the box deletes itself when it is closed.
    """
    role = QMessageBox.ButtonRole.DestructiveRole if is_destructive else QMessageBox.ButtonRole.AcceptRole
    box = set_up(QMessageBox(QMessageBox.Icon.Warning, title, "", parent=parent), name=name)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(question)
    box.setInformativeText(details)
    box.addButton(accept, role).clicked.connect(on_accept)
    box.setDefaultButton(box.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole))
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
    return box
