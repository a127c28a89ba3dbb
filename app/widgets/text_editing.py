"""Undo, redo, cut, copy, paste and select all in the focused text field."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLineEdit, QPlainTextEdit, QTextEdit, QWidget

TextField = QLineEdit | QPlainTextEdit | QTextEdit


def focused_field() -> TextField | None:
    """Return the focused text field, or None. The field of a number counts too."""
    widget = QApplication.focusWidget()
    if isinstance(widget, QAbstractSpinBox):
        widget = widget.lineEdit()
    return widget if isinstance(widget, QLineEdit | QPlainTextEdit | QTextEdit) else None


def can_apply(name: str) -> bool:
    """Return whether `undo`, `redo`, `cut`, `paste` or `select_all` would have an effect in the focused text field."""
    field = focused_field()
    if field is None:
        return False
    if name == "select_all":
        return bool(_text(field))
    if field.isReadOnly():
        return False
    if name == "cut":
        return _has_selection(field)
    if name == "paste":
        return bool(QGuiApplication.clipboard().text())
    if isinstance(field, QLineEdit):
        return field.isUndoAvailable() if name == "undo" else field.isRedoAvailable()
    document = field.document()
    return document.isUndoAvailable() if name == "undo" else document.isRedoAvailable()


def can_copy() -> bool:
    """Return whether something can be copied: selected text in a field, or the selection of a view."""
    field = focused_field()
    return _has_selection(field) if field is not None else QApplication.focusWidget() is not None


def undo() -> bool:
    """Undo the last change in the focused text field. Returns False if there is none."""
    return _apply("undo")


def redo() -> bool:
    """Redo the undone change in the focused text field. Returns False if there is none."""
    return _apply("redo")


def cut() -> None:
    """Cut the selected text of the focused text field."""
    if (field := focused_field()) is not None:
        field.cut()


def copy() -> None:
    """Copy the selected text, or what the focused view copies on Ctrl+C."""
    if (field := focused_field()) is not None:
        field.copy()
    elif (widget := QApplication.focusWidget()) is not None:
        _press_copy(widget)


def paste() -> None:
    """Insert the clipboard's text into the focused text field."""
    if (field := focused_field()) is not None:
        field.paste()


def select_all() -> None:
    """Select all text of the focused text field."""
    if (field := focused_field()) is not None:
        field.selectAll()


def _apply(name: str) -> bool:
    field = focused_field()
    if field is None or not can_apply(name):
        return False
    getattr(field, name)()
    return True


def _text(field: TextField) -> str:
    return field.text() if isinstance(field, QLineEdit) else field.toPlainText()


def _has_selection(field: TextField) -> bool:
    return field.hasSelectedText() if isinstance(field, QLineEdit) else field.textCursor().hasSelection()


def _press_copy(widget: QWidget) -> None:
    for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
        event = QKeyEvent(kind, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        QApplication.sendEvent(widget, event)
