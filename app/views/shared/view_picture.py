"""A part of the window as a picture: at any size, in either theme, all of what scrolls; the part itself stays put."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from PySide6.QtCore import QCoreApplication, QEvent, QSize
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QAbstractScrollArea, QScrollBar, QWidget

from app.theme.panel_rules import panel_stylesheet
from app.theme.theme import Theme, theme_for
from app.widgets.widget_pictures import render_widget, save_picture
from resources.language import tr

MAX_PIXELS = 120_000_000
"""Of a PNG; more would take more memory than a picture is worth."""
_MAX_SIDE = 30_000
"""Pixels in one direction; Qt paints no further than 32,767."""


class ThemeTarget(Protocol):
    """What can be drawn in a theme."""

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""


class PictureSubject(NamedTuple):
    """What can be taken a picture of."""

    title: str
    widget: QWidget
    themed: ThemeTarget
    ground: str = "window"
    """The theme's colour below it."""


class PictureOptions(NamedTuple):
    """How the picture is to look. `size` is in pixels at scale 1; `theme` is light, dark or empty for the shown one."""

    size: QSize
    expands_scrolled: bool = False
    """As high as all of what scrolls, however small `size` is."""
    scale: float = 1.0
    theme: str = ""
    guard_formulas: bool = True
    """Whether a text in a CSV that a spreadsheet would run as a formula is marked as text."""


def save_view_picture(subject: PictureSubject, path: Path, pose: PictureOptions, shown: Theme) -> None:
    """Write the picture: SVG or PNG, as the path's suffix says. Raises OSError."""
    with _applied_options(subject, pose, shown) as ground:
        save_picture(subject.widget, path, ground, pose.scale)


def render_view(subject: PictureSubject, pose: PictureOptions, shown: Theme) -> QImage:
    """The picture in pixels. Raises OSError when there would be too many."""
    with _applied_options(subject, pose, shown) as ground:
        return render_widget(subject.widget, ground, pose.scale)


@contextmanager
def _applied_options(subject: PictureSubject, pose: PictureOptions, shown: Theme) -> Iterator[QColor]:
    """Let the part take the pose, and tell the colour below it.

    All is as before afterwards, and the screen, painted later, never shows it.
    """
    theme = theme_for(pose.theme or shown.name, shown.scale)
    widget = subject.widget
    geometry, sheet = widget.geometry(), widget.styleSheet()
    bounds = widget.minimumSize(), widget.maximumSize()
    scrolled = [(bar, bar.value()) for bar in widget.findChildren(QScrollBar)]
    try:
        if theme != shown:
            widget.setStyleSheet(theme.stylesheet() + panel_stylesheet(theme))
            subject.themed.set_theme(theme)
        widget.setMinimumSize(0, 0)
        widget.setMaximumSize(_MAX_SIDE, _MAX_SIDE)
        widget.resize(pose.size)
        _apply_layouts(widget)
        if pose.expands_scrolled:
            _expand_scroll_areas(widget)
        _check(widget.size() * pose.scale)
        yield theme.color(subject.ground)
    finally:
        if theme != shown:
            widget.setStyleSheet(sheet)
            subject.themed.set_theme(shown)
        widget.setMinimumSize(bounds[0])
        widget.setMaximumSize(bounds[1])
        widget.setGeometry(geometry)
        _apply_layouts(widget)
        for bar, value in scrolled:
            bar.setValue(value)


def _check(size: QSize) -> None:
    if max(size.width(), size.height()) > _MAX_SIDE or size.width() * size.height() > MAX_PIXELS:
        raise OSError(None, _too_large_message(size))


def _too_large_message(size: QSize) -> str:
    message = tr("a picture of {width:,} × {height:,} pixels is too large")
    return message.format(width=size.width(), height=size.height())


def _apply_layouts(widget: QWidget) -> None:
    """Everything in it finds its place; what is around it is not asked."""
    for _ in range(2):  # a width that has come about may ask for another height
        parts = (widget, *widget.findChildren(QWidget))
        for part in parts:
            part.updateGeometry()
        for part in parts:
            layout = part.layout()
            if layout is not None:
                layout.activate()
            QCoreApplication.sendPostedEvents(part, QEvent.Type.LayoutRequest)


def _expand_scroll_areas(widget: QWidget) -> None:
    """Higher, until nothing in it scrolls any more."""
    areas = [*([widget] if isinstance(widget, QAbstractScrollArea) else []), *widget.findChildren(QAbstractScrollArea)]
    for _ in range(3):  # a scroll bar that goes leaves more width, which may need less height
        missing = max((area.verticalScrollBar().maximum() for area in areas if area.isVisibleTo(widget)), default=0)
        if not missing or widget.height() + missing > _MAX_SIDE:
            return
        widget.resize(widget.width(), widget.height() + missing)
        _apply_layouts(widget)
