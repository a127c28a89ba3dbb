"""Text documents that keep every character, align paragraphs by script, and wrap very long words."""

from __future__ import annotations

import re

from PySide6.QtCore import QMimeData, QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument, QTextOption
from PySide6.QtWidgets import QPlainTextDocumentLayout, QPlainTextEdit


class BidiDocumentLayout(QPlainTextDocumentLayout):
    """Qt's own layout of plain text, which reads a paragraph in its direction and leaves it at the left."""

    def blockBoundingRect(self, block: QTextBlock) -> QRectF:
        """Asked for before a paragraph is drawn or clicked: its lines are laid out by now, and moved where need be."""
        around = super().blockBoundingRect(block)
        if block.textDirection() == Qt.LayoutDirection.RightToLeft:
            _align_right(block)
        return around


def create_bidi_document(parent: QObject) -> QTextDocument:
    """An empty one that is laid out so; `parent` keeps it."""
    document = QTextDocument(parent)
    document.setDocumentLayout(BidiDocumentLayout(document))
    return document


def _align_right(block: QTextBlock) -> None:
    layout = block.layout()
    margin = block.document().documentMargin()
    for number in range(layout.lineCount()):
        line = layout.lineAt(number)
        at = QPointF(margin + line.width() - line.naturalTextWidth(), line.y())
        if line.position() != at:
            line.setPosition(at)


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


_MAX_WORD_LENGTH = 5000
_LONG_WORD = re.compile(rf"[^\s\u2e80-\ud7ff\uf900-\uffef]{{{_MAX_WORD_LENGTH}}}")
"""A word; ideographs and their like can be broken anywhere as it is."""


def wrap_mode(text: str) -> QTextOption.WrapMode:
    """Whole words, or anywhere for a text that holds a word of thousands of letters."""
    if len(text) >= _MAX_WORD_LENGTH and _LONG_WORD.search(text):
        return QTextOption.WrapMode.WrapAnywhere
    return QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
