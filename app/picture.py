"""A picture of the window, for documents: pixels in a PNG, or lines and letters in an SVG."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QApplication, QWidget

from app.widgets import pictures


class PictureError(Exception):
    """The picture could not be saved; the message says why."""


def save_picture(window: QWidget, path: Path) -> None:
    """Save the window as it is drawn now, of the kind that `path` ends with. Raises PictureError.

    A PNG has the window's size times its device pixel ratio, in pixels; an SVG its size, in pixels of a browser.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pictures.save_picture(window, path, scale=window.devicePixelRatioF())
    except OSError:
        raise PictureError(f"The picture could not be saved as {path}. Choose a folder you may write to.") from None


def hold_still(window: QWidget) -> None:
    """No caret, which blinks, and no focus, which a window manager gives when it likes."""
    QApplication.setCursorFlashTime(0)
    focused = window.focusWidget()
    if focused is not None:
        focused.clearFocus()
