"""Builds widgets and layouts in one expression."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from PySide6.QtWidgets import QBoxLayout, QLayout, QWidget

STRETCH = 1
"""An item of a layout: empty space that takes the remaining room."""

_Part = QWidget | QLayout
Item = _Part | tuple[Any, ...] | int
LayoutType = TypeVar("LayoutType", bound=QLayout)
WidgetType = TypeVar("WidgetType", bound=QWidget)


def arrange(
    layout: LayoutType, *items: Item, margins: int | tuple[int, int, int, int] | None = None, spacing: int | None = None
) -> LayoutType:
    """Add the items to the layout and return it; without margins or spacing it keeps those of the style.

    An item is a widget, a layout, `STRETCH`, or a tuple of a widget or layout, its stretch and its alignment.
    """
    if margins is not None:
        layout.setContentsMargins(*(margins if isinstance(margins, tuple) else (margins,) * 4))
    if spacing is not None:
        layout.setSpacing(spacing)
    for item in items:
        part, *options = item if isinstance(item, tuple) else (item,)
        if isinstance(part, int):
            cast(QBoxLayout, layout).addStretch(part)
        elif isinstance(part, QLayout):
            cast(QBoxLayout, layout).addLayout(part, *options)
        else:
            cast(Any, layout).addWidget(part, *options)
    return layout


def set_up(
    widget: WidgetType,
    *,
    name: str = "",
    role: str = "",
    accessible_name: str = "",
    description: str = "",
    tooltip: str = "",
    clicked: Any = None,
) -> WidgetType:
    """Set the object name, the role in the theme, the texts and the slot for clicks, where given; return the widget."""
    if name:
        widget.setObjectName(name)
    if role:
        widget.setProperty("role", role)
    if accessible_name:
        widget.setAccessibleName(accessible_name)
    if description:
        widget.setAccessibleDescription(description)
    if tooltip:
        widget.setToolTip(tooltip)
    if clicked is not None:
        cast(Any, widget).clicked.connect(clicked)
    return widget
