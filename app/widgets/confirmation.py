"""Questions to the user: yes or Cancel, and one line of text."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QInputDialog, QMessageBox, QWidget

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


TEXT_WIDTH_IN_DIGITS = 42
"""Width of a dialog for one line of text, in digits of its font."""


def ask_text(
    parent: QWidget, name: str, title: str, label: str, on_accept: Callable[[str], object], text: str = ""
) -> QInputDialog:
    """Open a dialog above `parent` for one line of text, with `text` in it, and return it. OK calls `on_accept` with
    the line.

    `name` is its object name. The function returns at once; the dialog deletes itself when it is closed.
    """
    dialog = set_up(QInputDialog(parent.window()), name=name)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setWindowTitle(title)
    dialog.setLabelText(label)
    dialog.setTextValue(text)
    dialog.textValueSelected.connect(on_accept)
    dialog.resize(TEXT_WIDTH_IN_DIGITS * dialog.fontMetrics().horizontalAdvance("0"), dialog.sizeHint().height())
    dialog.open()
    return dialog
