"""Words on the clipboard."""

from __future__ import annotations

import atexit

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication

_HEADLESS_PLATFORMS = ("offscreen", "minimal")
"""Platforms of Qt whose clipboard is the program's own, and goes with it."""


def copy_text_and_html(plain: str, html: str) -> None:
    """For what takes HTML and for what does not; who pastes decides."""
    data = QMimeData()
    data.setText(plain)
    data.setHtml(html)
    QGuiApplication.clipboard().setMimeData(data)


@atexit.register
def _clear_at_exit() -> None:
    """Without a screen Qt would let go of it only after Python has ended, and that ends the process with a fault."""
    if QGuiApplication.instance() is not None and QGuiApplication.platformName() in _HEADLESS_PLATFORMS:
        QGuiApplication.clipboard().clear()
