"""Pictures of widgets and views as PNG or SVG, at any size and in any theme, including what is scrolled out of view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from PySide6.QtCore import QBuffer, QByteArray, QCoreApplication, QEvent, QIODevice, QPoint, QRect, QSize
from PySide6.QtGui import QColor, QFont, QFontInfo, QImage, QImageWriter, QPainter, QRegion
from PySide6.QtWidgets import QAbstractScrollArea, QScrollBar, QWidget

from app.theme.theme import Theme, panel_stylesheet, theme_for
from resources.language import tr

if TYPE_CHECKING:
    from PySide6.QtSvg import QSvgGenerator

SUFFIXES = (".png", ".svg")
_DOTS_PER_INCH, _DOTS_PER_METER = 96, 3780
"""What a scale of 1 stands for."""


def save_picture(widget: QWidget, path: Path, ground: QColor | None = None, scale: float = 1.0) -> None:
    """Write `widget` as the path's suffix says, on `ground`, or on its own where that is None. Raises OSError."""
    if path.suffix.lower() == ".svg":
        _save_svg(widget, path, ground)
    else:
        _save_png(widget, path, ground, scale)


def render_widget(widget: QWidget, ground: QColor | None = None, scale: float = 1.0) -> QImage:
    """The same in pixels: the widget's size times `scale`."""
    image = QImage((widget.size().toSizeF() * scale).toSize(), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    image.setDotsPerMeterX(round(_DOTS_PER_METER * scale))
    image.setDotsPerMeterY(round(_DOTS_PER_METER * scale))
    _render(widget, QPainter(image), ground)
    return image


def _save_png(widget: QWidget, path: Path, ground: QColor | None, scale: float) -> None:
    with _buffered_file(path) as file:
        if not QImageWriter(file, QByteArray(b"png")).write(render_widget(widget, ground, scale)):
            raise OSError(None, tr("the picture could not be drawn"))


def _save_svg(widget: QWidget, path: Path, ground: QColor | None) -> None:
    from PySide6.QtSvg import QSvgGenerator

    with _buffered_file(path, _resolve_font_names) as file:
        generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)
        generator.setOutputDevice(file)
        _set_metadata(generator, widget)
        _render(widget, QPainter(generator), ground)


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML has no place for, not even escaped: Qt writes those of a model's text into the file."""


@contextmanager
def _buffered_file(path: Path, finish: Callable[[bytes], bytes] = bytes) -> Iterator[QBuffer]:
    """Drawn in memory and written here: Qt does not say that a disk has become full."""
    content = QByteArray()
    file = QBuffer(content)
    file.open(QIODevice.OpenModeFlag.WriteOnly)
    yield file
    path.write_bytes(finish(bytes(content.data())))


def _set_metadata(generator: QSvgGenerator, widget: QWidget) -> None:
    generator.setResolution(_DOTS_PER_INCH)  # a unit of the picture is then a pixel of a browser
    generator.setSize(widget.size())
    generator.setViewBox(QRect(QPoint(), widget.size()))
    generator.setTitle(widget.accessibleName() or widget.windowTitle())
    generator.setDescription(widget.accessibleDescription())


def _resolve_font_names(svg: bytes) -> bytes:
    """Each family by the name of the font it stands for, a generic one behind it: no browser knows `Sans Serif`."""

    def named(found: re.Match[str]) -> str:
        font = QFontInfo(QFont(unescape(found[1])))
        generic = "monospace" if font.fixedPitch() else "sans-serif"
        return f'font-family="{escape(font.family())}, {generic}"'

    text = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", svg.decode("utf-8"))
    return re.sub(r'font-family="([^"]*)"', named, text).encode("utf-8")


def _render(widget: QWidget, painter: QPainter, ground: QColor | None) -> None:
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    flags = QWidget.RenderFlag.DrawChildren
    if ground is None:
        flags |= QWidget.RenderFlag.DrawWindowBackground
    else:
        painter.fillRect(widget.rect(), ground)
    # A view of graphics has a render of its own, which means something else.
    QWidget.render(widget, painter, QPoint(), QRegion(), flags)
    painter.end()


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
