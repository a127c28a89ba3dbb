"""Build widgets and layouts, and change their texts and roles, in one expression."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar, cast

from PySide6.QtWidgets import QBoxLayout, QLayout, QWidget

STRETCH = 1
"""An item of a layout: empty space that takes the remaining room."""


class Gap(NamedTuple):
    """An item of a layout: empty space of fixed size."""

    pixels: int


_Part = QWidget | QLayout
Item = _Part | Gap | tuple[Any, ...] | int
LayoutType = TypeVar("LayoutType", bound=QLayout)
WidgetType = TypeVar("WidgetType", bound=QWidget)


def arrange(
    layout: LayoutType, *items: Item, margins: int | tuple[int, int, int, int] | None = None, spacing: int | None = None
) -> LayoutType:
    """Add the items to the layout and return it; without margins or spacing it keeps those of the style.

    An item is a widget, a layout, `STRETCH`, a `Gap`, or a tuple of a widget or layout and what the layout's method for
    adding it takes: a stretch and an alignment, or a row and a column.
    """
    if margins is not None:
        layout.setContentsMargins(*(margins if isinstance(margins, tuple) else (margins,) * 4))
    if spacing is not None:
        layout.setSpacing(spacing)
    for item in items:
        if isinstance(item, Gap):
            cast(QBoxLayout, layout).addSpacing(item.pixels)
            continue
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
    name: str | None = None,
    role: str | None = None,
    accessible_name: str | None = None,
    description: str | None = None,
    tooltip: str | None = None,
    clicked: Any = None,
) -> WidgetType:
    """Set the object name, the role in the theme, the texts and the slot for clicks, where given; return the widget."""
    if name is not None:
        widget.setObjectName(name)
    if role is not None:
        widget.setProperty("role", role)
    if accessible_name is not None:
        widget.setAccessibleName(accessible_name)
    if description is not None:
        widget.setAccessibleDescription(description)
    if tooltip is not None:
        widget.setToolTip(tooltip)
    if clicked is not None:
        cast(Any, widget).clicked.connect(clicked)
    return widget


def set_role(widget: QWidget, role: str) -> None:
    """Change the role in the theme and apply its style."""
    if widget.property("role") != role:
        widget.setProperty("role", role)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


class _TextWidget(Protocol):
    def setText(self, text: str, /) -> None: ...

    def setVisible(self, visible: bool, /) -> None: ...


def show_text(widget: _TextWidget, text: str) -> None:
    """Show a text, or hide the widget if the text is empty."""
    widget.setText(text)
    widget.setVisible(bool(text))
