"""Text documents that keep every character, align paragraphs by script, and wrap very long words."""

from __future__ import annotations

import re

from PySide6.QtCore import QMimeData, QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument, QTextOption
from PySide6.QtWidgets import QPlainTextDocumentLayout, QPlainTextEdit


class BidiDocumentLayout(QPlainTextDocumentLayout):
    """Qt's plain text layout, extended to right-align right-to-left paragraphs, which Qt leaves at the left."""

    def blockBoundingRect(self, block: QTextBlock) -> QRectF:
        """Move the lines of right-to-left paragraphs. Qt calls this after layout and before it draws or hit-tests a
        paragraph.
        """
        around = super().blockBoundingRect(block)
        if block.textDirection() == Qt.LayoutDirection.RightToLeft:
            _align_right(block)
        return around


def create_bidi_document(parent: QObject) -> QTextDocument:
    """Return an empty document with this layout, owned by `parent`."""
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
"""Characters that a document treats as line breaks or as internal marks, and the noncharacters that replace them. All
are one UTF-16 unit, so positions in the document equal positions in the text.
"""
_TO_DOCUMENT = str.maketrans(_SUBSTITUTES)
_FROM_DOCUMENT = str.maketrans({_PARAGRAPH: "\n", **{inner: outer for outer, inner in _SUBSTITUTES.items()}})


def document_text(text: str) -> str:
    """Return the form of `text` that a document can hold."""
    return text.translate(_TO_DOCUMENT)


def exact_text(text: str) -> str:
    """Return the original text of a document's raw text or selection."""
    return text.translate(_FROM_DOCUMENT)


class ExactTextEdit(QPlainTextEdit):
    """A plain text editor that returns its text exactly as it was set, typed or pasted."""

    def toPlainText(self) -> str:
        """Return the text with every character as it was entered."""
        return exact_text(self.document().toRawText())

    def setPlainText(self, text: str) -> None:
        """Replace the text and clear the undo history."""
        super().setPlainText(document_text(text))

    def insertPlainText(self, text: str) -> None:
        """Insert text at the cursor."""
        super().insertPlainText(document_text(text))

    def replace_text(self, text: str) -> None:
        """Replace the text; undo restores the old one."""
        cursor = self.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(document_text(text))

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Insert pasted or dropped text."""
        if source.hasText():
            self.textCursor().insertText(document_text(source.text()))
            self.ensureCursorVisible()
        else:
            super().insertFromMimeData(source)

    def createMimeDataFromSelection(self) -> QMimeData:
        """Return the data for copy, cut and drag."""
        data = QMimeData()
        data.setText(exact_text(self.textCursor().selectedText()))
        return data


_MAX_WORD_LENGTH = 5000
_LONG_WORD = rf"[^\s\u2e80-\ud7ff\uf900-\uffef]{{{_MAX_WORD_LENGTH}}}"
"""A pattern of a long word, compiled at the first long text. Ideographs and similar characters can be broken anywhere
and do not count.
"""


def wrap_mode(text: str) -> QTextOption.WrapMode:
    """Return wrapping at words, or anywhere if the text contains a word of thousands of letters."""
    if len(text) >= _MAX_WORD_LENGTH and re.search(_LONG_WORD, text):
        return QTextOption.WrapMode.WrapAnywhere
    return QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
