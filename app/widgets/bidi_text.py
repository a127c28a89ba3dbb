"""Plain text whose paragraphs begin at the side that their script begins at: Arabic and Hebrew at the right."""

from __future__ import annotations

from PySide6.QtCore import QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QTextBlock, QTextDocument
from PySide6.QtWidgets import QPlainTextDocumentLayout


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
