"""Any widget saved as a picture: PNG of exactly its size times a scale, or SVG, whose text stays text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QRect
from PySide6.QtGui import QColor, QFont, QFontInfo, QImage, QImageWriter, QPainter, QRegion
from PySide6.QtWidgets import QWidget

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
