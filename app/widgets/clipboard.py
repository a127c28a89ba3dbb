"""Words on the clipboard."""

from __future__ import annotations

import atexit

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication

_WITHOUT_A_SCREEN = ("offscreen", "minimal")
"""Platforms of Qt whose clipboard is the program's own, and goes with it."""


def put_words(plain: str, html: str) -> None:
    """For what takes HTML and for what does not; who pastes decides."""
    data = QMimeData()
    data.setText(plain)
    data.setHtml(html)
    QGuiApplication.clipboard().setMimeData(data)


@atexit.register
def _empty() -> None:
    """Without a screen Qt would let go of it only after Python has ended, and that ends the process with a fault."""
    if QGuiApplication.instance() is not None and QGuiApplication.platformName() in _WITHOUT_A_SCREEN:
        QGuiApplication.clipboard().clear()
