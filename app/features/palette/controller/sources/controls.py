"""Visible buttons of views, messages and the history, by name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QComboBox, QPushButton, QToolButton, QWidget
from shiboken6 import isValid

from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry, PaletteSource
from decodescope.app.panels.parameter_row import ParameterRow
from decodescope.app.widgets.picker_combo import PickerCombo
from decodescope.resources.language import tr


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield visible buttons and drop-down lists, each name once, except those with an entry elsewhere."""
    listed = set(context.panel.prompt.chips)
    seen: set[str] = set()
    for widget in context.window.findChildren(QWidget):
        if widget.window() is not context.window:
            continue
        name = widget.accessibleName() or (
            widget.text().replace("&", "") if isinstance(widget, QAbstractButton) else ""
        )
        if not name or name in seen or widget in listed or not _is_pressable(widget):
            continue
        seen.add(name)
        yield PaletteEntry(
            f"control.{widget.objectName() or name}", name, tr("Button"), partial(_press, widget),
            about=widget.accessibleDescription() or widget.toolTip(),
            reason="" if widget.isEnabled() else widget.toolTip() or tr("Not available now."),
        )  # fmt: skip


def _is_pressable(widget: QWidget) -> bool:
    """Return whether a widget is visible and can be pressed."""
    if not isinstance(widget, QAbstractButton | QComboBox) or isinstance(widget, PickerCombo):
        return False
    return widget.isVisible() and not any(isinstance(above, ParameterRow) for above in _ancestors(widget))


def _ancestors(widget: QWidget) -> Iterator[QWidget]:
    above = widget.parentWidget()
    while above is not None:
        yield above
        above = above.parentWidget()


def _press(widget: QWidget) -> None:
    """Press a widget as a click would, if it still exists."""
    if not isValid(widget):
        return
    widget.setFocus(Qt.FocusReason.ShortcutFocusReason)
    if isinstance(widget, QComboBox):
        widget.showPopup()
    elif isinstance(widget, QToolButton | QPushButton) and widget.menu() is not None:
        widget.menu().popup(widget.mapToGlobal(widget.rect().bottomLeft()))  # the menu must not block
    elif isinstance(widget, QAbstractButton):
        widget.click()


SOURCE = PaletteSource(140, entries)
