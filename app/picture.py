"""A picture of the window, for documents: pixels in a PNG, or lines and letters in an SVG."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from PySide6.QtWidgets import QApplication, QWidget

from app.widgets import pictures


class PictureError(Exception):
    """The picture could not be saved; the message says why."""


def save_picture(window: QWidget, path: Path, scale: float = 1.0) -> None:
    """Save the window as it is drawn now, of the kind that `path` ends with: the whole of it, or nothing. Raises
    PictureError.

    A PNG has the window's size times its device pixel ratio and `scale`, in pixels; an SVG its size, in pixels of a
    browser.
    """
    part = path.with_name(f".{path.stem}-part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pictures.save_picture(window, part, scale=window.devicePixelRatioF() * scale)
        part.replace(path)
    except OSError:
        raise PictureError(f"The picture could not be saved as {path}. Choose a folder you may write to.") from None
    finally:
        with suppress(OSError):
            part.unlink()


def hold_still(window: QWidget) -> None:
    """No caret, which blinks, and no focus, which a window manager gives when it likes."""
    QApplication.setCursorFlashTime(0)
    focused = window.focusWidget()
    if focused is not None:
        focused.clearFocus()
