"""Text and HTML on the clipboard."""

from __future__ import annotations

import atexit

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication

_HEADLESS_PLATFORMS = ("offscreen", "minimal")
"""Qt platforms whose clipboard belongs to the process and ends with it."""


def copy_text_and_html(plain: str, html: str) -> None:
    """Put text and HTML on the clipboard; the receiving program chooses."""
    data = QMimeData()
    data.setText(plain)
    data.setHtml(html)
    QGuiApplication.clipboard().setMimeData(data)


@atexit.register
def _clear_at_exit() -> None:
    """Clear the clipboard on headless platforms: Qt would free it after Python has ended and crash."""
    if QGuiApplication.instance() is not None and QGuiApplication.platformName() in _HEADLESS_PLATFORMS:
        QGuiApplication.clipboard().clear()
