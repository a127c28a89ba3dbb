"""The screen that a widget is on, asked without the widget.

In PySide6, `QWidget.screen()` makes the screen's wrapper a child of the widget's: when the widget is collected, the
screen can go with it, and the next window that is made crashes.
"""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtGui import QGuiApplication, QScreen
from PySide6.QtWidgets import QWidget


def screen_of(widget: QWidget) -> QScreen:
    """The screen under the middle of the widget's window; of one not shown yet, its parent's; else the first."""
    window = widget.window()
    parent = window.parentWidget()
    shown = parent.window() if parent is not None and not window.isVisible() else window
    return QGuiApplication.screenAt(shown.geometry().center()) or QGuiApplication.primaryScreen()


def available_rect(widget: QWidget) -> QRect:
    """The part of the widget's screen that a desktop leaves to windows."""
    return screen_of(widget).availableGeometry()
