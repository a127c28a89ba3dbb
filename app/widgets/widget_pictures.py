"""Pictures of widgets and views as PNG or SVG, at any size and in any theme, including what is scrolled out of view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QBuffer, QByteArray, QCoreApplication, QEvent, QIODevice, QPoint, QRect, QSize
from PySide6.QtGui import QColor, QFont, QFontInfo, QImage, QImageWriter, QPainter, QRegion
from PySide6.QtWidgets import QAbstractScrollArea, QScrollBar, QWidget

from decodescope.app.theme.fonts import substitutes
from decodescope.app.theme.theme import panel_stylesheet, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from PySide6.QtSvg import QSvgGenerator

SUFFIXES = (".png", ".svg")
_DOTS_PER_INCH, _DOTS_PER_METER = 96, 3780
"""Resolution at scale 1."""


def save_picture(widget: QWidget, path: Path, background: QColor | None = None, scale: float = 1.0) -> None:
    """Write `widget` by the suffix of `path`, on the background `background` or on its own. Raises OSError."""
    if path.suffix.lower() == ".svg":
        _save_svg(widget, path, background)
    else:
        _save_png(widget, path, background, scale)


def render_widget(widget: QWidget, background: QColor | None = None, scale: float = 1.0) -> QImage:
    """Return the widget as an image of its size times `scale`."""
    image = QImage((widget.size().toSizeF() * scale).toSize(), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    image.setDotsPerMeterX(round(_DOTS_PER_METER * scale))
    image.setDotsPerMeterY(round(_DOTS_PER_METER * scale))
    _render(widget, QPainter(image), background)
    return image


def _save_png(widget: QWidget, path: Path, background: QColor | None, scale: float) -> None:
    with _buffered_file(path) as file:
        if not QImageWriter(file, QByteArray(b"png")).write(render_widget(widget, background, scale)):
            raise OSError(None, tr("the picture could not be drawn"))


def _save_svg(widget: QWidget, path: Path, background: QColor | None) -> None:
    from PySide6.QtSvg import QSvgGenerator

    with _buffered_file(path, _resolve_font_names) as file:
        generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)
        generator.setOutputDevice(file)
        _set_metadata(generator, widget)
        _render(widget, QPainter(generator), background)


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML does not allow, even escaped. Qt writes them from a model's text into the file."""


@contextmanager
def _buffered_file(path: Path, finish: Callable[[bytes], bytes] = bytes) -> Iterator[QBuffer]:
    """Yield a buffer and write it to `path` afterwards, because Qt does not report a full disk."""
    content = QByteArray()
    file = QBuffer(content)
    file.open(QIODevice.OpenModeFlag.WriteOnly)
    yield file
    path.write_bytes(finish(bytes(content.data())))


def _set_metadata(generator: QSvgGenerator, widget: QWidget) -> None:
    generator.setResolution(_DOTS_PER_INCH)  # one unit of the picture is then one pixel in a browser
    generator.setSize(widget.size())
    generator.setViewBox(QRect(QPoint(), widget.size()))
    generator.setTitle(widget.accessibleName() or widget.windowTitle())
    generator.setDescription(widget.accessibleDescription())


def _resolve_font_names(svg: bytes) -> bytes:
    """Replace font families by their actual fonts with fallbacks: other machines lack the program's fonts, and browsers
    do not recognize `Sans Serif`.
    """

    def named(found: re.Match[str]) -> str:
        if names := substitutes(unescape(found[1])):
            return f'font-family="{names}"'
        font = QFontInfo(QFont(unescape(found[1])))
        generic = "monospace" if font.fixedPitch() else "sans-serif"
        return f'font-family="{escape(font.family())}, {generic}"'

    text = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", svg.decode("utf-8"))
    return re.sub(r'font-family="([^"]*)"', named, text).encode("utf-8")


def _render(widget: QWidget, painter: QPainter, background: QColor | None) -> None:
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    flags = QWidget.RenderFlag.DrawChildren
    if background is None:
        flags |= QWidget.RenderFlag.DrawWindowBackground
    else:
        painter.fillRect(widget.rect(), background)
    # A graphics view overrides `render` with another meaning.
    QWidget.render(widget, painter, QPoint(), QRegion(), flags)
    painter.end()


MAX_PIXELS = 120_000_000
"""Maximum pixels of a PNG; a larger one needs too much memory."""
_MAX_SIDE = 30_000
"""Maximum pixels in one direction; Qt paints at most 32,767."""


class PictureSubject(NamedTuple):
    """A widget that can be rendered as a picture."""

    title: str
    widget: Themed
    ground: str = "window"
    """Theme colour of the background."""


class PictureOptions(NamedTuple):
    """Options of a picture. `size` is in pixels at scale 1; `theme` is "light", "dark" or empty for the shown theme."""

    size: QSize
    expands_scrolled: bool = False
    """Grow the picture to the full height of scrolled content, however small `size` is."""
    scale: float = 1.0
    theme: str = ""
    guard_formulas: bool = True
    """Whether CSV cells that a spreadsheet would run as formulas are marked as text."""


def save_view_picture(subject: PictureSubject, path: Path, options: PictureOptions) -> None:
    """Write the picture as SVG or PNG, by the suffix of `path`. Raises OSError."""
    with _applied_options(subject, options) as ground:
        save_picture(subject.widget, path, ground, options.scale)


def render_view(subject: PictureSubject, options: PictureOptions) -> QImage:
    """Return the picture as an image. Raises OSError if it would have too many pixels."""
    with _applied_options(subject, options) as ground:
        return render_widget(subject.widget, ground, options.scale)


@contextmanager
def _applied_options(subject: PictureSubject, options: PictureOptions) -> Iterator[QColor]:
    """Apply the options to the widget and yield the background colour.

    Everything is restored afterwards, before the screen is painted again.
    """
    widget, shown = subject.widget, subject.widget.current_theme
    theme = theme_for(options.theme or shown.name, shown.scale)
    geometry, sheet = widget.geometry(), widget.styleSheet()
    bounds = widget.minimumSize(), widget.maximumSize()
    scrolled = [(bar, bar.value()) for bar in widget.findChildren(QScrollBar)]
    try:
        if theme != shown:
            widget.setStyleSheet(theme.stylesheet() + panel_stylesheet(theme))
            widget.set_theme(theme)
        widget.setMinimumSize(0, 0)
        widget.setMaximumSize(_MAX_SIDE, _MAX_SIDE)
        widget.resize(options.size)
        _apply_layouts(widget)
        if options.expands_scrolled:
            _expand_scroll_areas(widget)
        _check(widget.size() * options.scale)
        yield theme.color(subject.ground)
    finally:
        if theme != shown:
            widget.setStyleSheet(sheet)
            widget.set_theme(shown)
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
    """Apply all layouts inside the widget, without its surroundings."""
    for _ in range(2):  # a new width can require another height
        parts = (widget, *widget.findChildren(QWidget))
        for part in parts:
            part.updateGeometry()
        for part in parts:
            layout = part.layout()
            if layout is not None:
                layout.activate()
            QCoreApplication.sendPostedEvents(part, QEvent.Type.LayoutRequest)


def _expand_scroll_areas(widget: QWidget) -> None:
    """Increase the height until nothing inside scrolls."""
    areas = [*([widget] if isinstance(widget, QAbstractScrollArea) else []), *widget.findChildren(QAbstractScrollArea)]
    for _ in range(3):  # without a scroll bar the content is wider and may need less height
        missing = max((area.verticalScrollBar().maximum() for area in areas if area.isVisibleTo(widget)), default=0)
        if not missing or widget.height() + missing > _MAX_SIDE:
            return
        widget.resize(widget.width(), widget.height() + missing)
        _apply_layouts(widget)
