"""Words on the clipboard."""

from __future__ import annotations

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication


def put_words(plain: str, html: str) -> None:
    """For what takes HTML and for what does not; who pastes decides."""
    data = QMimeData()
    data.setText(plain)
    data.setHtml(html)
    QGuiApplication.clipboard().setMimeData(data)
