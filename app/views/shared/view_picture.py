"""A part of the window as a picture: at any size, in either theme, all of what scrolls; the part itself stays put."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from PySide6.QtCore import QCoreApplication, QEvent, QSize
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QAbstractScrollArea, QScrollBar, QWidget

from app.theme.panel_rules import rules
from app.theme.theme import Theme, theme_for
from app.widgets.widget_pictures import picture_of, save_picture
from resources.language import tr

MOST_PIXELS = 120_000_000
"""Of a PNG; more would take more memory than a picture is worth."""
_LONGEST = 30_000
"""Pixels in one direction; Qt paints no further than 32,767."""


class Themed(Protocol):
    """What can be drawn in a theme."""

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""


class PictureSubject(NamedTuple):
    """What can be taken a picture of."""

    title: str
    widget: QWidget
    themed: Themed
    ground: str = "window"
    """The theme's colour below it."""


class Pose(NamedTuple):
    """How the picture is to look. `size` is in pixels at scale 1; `theme` is light, dark or empty for the shown one."""

    size: QSize
    whole: bool = False
    """As high as all of what scrolls, however small `size` is."""
    scale: float = 1.0
    theme: str = ""
    guard_formulas: bool = True
    """Whether a text in a CSV that a spreadsheet would run as a formula is marked as text."""


def take(subject: PictureSubject, path: Path, pose: Pose, shown: Theme) -> None:
    """Write the picture: SVG or PNG, as the path's suffix says. Raises OSError."""
    with _posing(subject, pose, shown) as ground:
        save_picture(subject.widget, path, ground, pose.scale)


def picture(subject: PictureSubject, pose: Pose, shown: Theme) -> QImage:
    """The picture in pixels. Raises OSError when there would be too many."""
    with _posing(subject, pose, shown) as ground:
        return picture_of(subject.widget, ground, pose.scale)


@contextmanager
def _posing(subject: PictureSubject, pose: Pose, shown: Theme) -> Iterator[QColor]:
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
            widget.setStyleSheet(theme.stylesheet() + rules(theme))
            subject.themed.set_theme(theme)
        widget.setMinimumSize(0, 0)
        widget.setMaximumSize(_LONGEST, _LONGEST)
        widget.resize(pose.size)
        _settle(widget)
        if pose.whole:
            _grow(widget)
        _check(widget.size() * pose.scale)
        yield theme.color(subject.ground)
    finally:
        if theme != shown:
            widget.setStyleSheet(sheet)
            subject.themed.set_theme(shown)
        widget.setMinimumSize(bounds[0])
        widget.setMaximumSize(bounds[1])
        widget.setGeometry(geometry)
        _settle(widget)
        for bar, value in scrolled:
            bar.setValue(value)


def _check(size: QSize) -> None:
    if max(size.width(), size.height()) > _LONGEST or size.width() * size.height() > MOST_PIXELS:
        raise OSError(None, _too_large(size))


def _too_large(size: QSize) -> str:
    told = tr("a picture of {width:,} × {height:,} pixels is too large")
    return told.format(width=size.width(), height=size.height())


def _settle(widget: QWidget) -> None:
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


def _grow(widget: QWidget) -> None:
    """Higher, until nothing in it scrolls any more."""
    areas = [*([widget] if isinstance(widget, QAbstractScrollArea) else []), *widget.findChildren(QAbstractScrollArea)]
    for _ in range(3):  # a scroll bar that goes leaves more width, which may need less height
        missing = max((area.verticalScrollBar().maximum() for area in areas if area.isVisibleTo(widget)), default=0)
        if not missing or widget.height() + missing > _LONGEST:
            return
        widget.resize(widget.width(), widget.height() + missing)
        _settle(widget)
