"""Text editors that return every character as it was entered.

`QPlainTextEdit.toPlainText` changes no-break spaces to spaces and line separators to line feeds. A document breaks
lines at characters (carriage returns, paragraph separators) that it does not give back: the model reads another text.
"""

from __future__ import annotations

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QPlainTextEdit

_PARAGRAPH = "\u2029"
_SUBSTITUTES = {"\r": "\ufdd2", _PARAGRAPH: "\ufdd3", "\ufdd0": "\ufdd4", "\ufdd1": "\ufdd5", "\ufffc": "\ufdd6"}
"""Characters that a document breaks lines at or takes for its own marks, and the noncharacters that stand for them. All
are one UTF-16 unit, so that places in the document are places in the text."""
_TO_DOCUMENT = str.maketrans(_SUBSTITUTES)
_FROM_DOCUMENT = str.maketrans({_PARAGRAPH: "\n", **{inner: outer for outer, inner in _SUBSTITUTES.items()}})


def document_text(text: str) -> str:
    """Return what a document has to contain for `text`."""
    return text.translate(_TO_DOCUMENT)


def exact_text(text: str) -> str:
    """Return the text that a document's raw text or selection stands for."""
    return text.translate(_FROM_DOCUMENT)


class ExactTextEdit(QPlainTextEdit):
    """A plain text editor whose text comes back as it was set, typed or pasted."""

    def toPlainText(self) -> str:
        """The text, with every character as it was entered."""
        return exact_text(self.document().toRawText())

    def setPlainText(self, text: str) -> None:
        """Replace the text; undo cannot bring the old one back."""
        super().setPlainText(document_text(text))

    def insertPlainText(self, text: str) -> None:
        """Insert at the cursor."""
        super().insertPlainText(document_text(text))

    def replace_text(self, text: str) -> None:
        """Replace the text; undo brings the old one back."""
        cursor = self.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(document_text(text))

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste or drop text."""
        if source.hasText():
            self.textCursor().insertText(document_text(source.text()))
            self.ensureCursorVisible()
        else:
            super().insertFromMimeData(source)

    def createMimeDataFromSelection(self) -> QMimeData:
        """What is copied, cut or dragged."""
        data = QMimeData()
        data.setText(exact_text(self.textCursor().selectedText()))
        return data
