"""A picture of the window, for documents: pixels in a PNG, or lines and letters in an SVG."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication, QWidget


class PictureError(Exception):
    """The picture could not be saved; the message says why."""


def save_picture(window: QWidget, path: Path) -> None:
    """Save the window as it is drawn now, of the kind that `path` ends with. Raises PictureError.

    A PNG has the window's size times its device pixel ratio, in pixels; an SVG its size, in points.
    """
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    saved = _save_svg(window, path) if path.suffix.lower() == ".svg" else _save_png(window, path)
    if not saved:
        raise PictureError(f"The picture could not be saved as {path}. Choose a folder you may write to.")


def hold_still(window: QWidget) -> None:
    """No caret, which blinks, and no focus, which a window manager gives when it likes."""
    QApplication.setCursorFlashTime(0)
    focused = window.focusWidget()
    if focused is not None:
        focused.clearFocus()


def _save_png(window: QWidget, path: Path) -> bool:
    ratio = window.devicePixelRatioF()
    image = QImage((window.size().toSizeF() * ratio).toSize(), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    painter = QPainter(image)
    window.render(painter, QPoint())
    painter.end()
    return bool(image.save(str(path), "PNG"))  # type: ignore[call-overload]  # PySide's stub wants bytes, Qt a name


def _save_svg(window: QWidget, path: Path) -> bool:
    from PySide6.QtSvg import QSvgGenerator  # for this alone

    file = QSvgGenerator()
    file.setFileName(str(path))
    file.setResolution(window.logicalDpiX())
    file.setSize(window.size())
    file.setViewBox(QRect(QPoint(), window.size()))
    file.setTitle(window.windowTitle())
    painter = QPainter()
    if not painter.begin(file):
        return False
    window.render(painter, QPoint())
    return painter.end() and path.exists()
