"""Any widget saved as a picture: PNG of exactly its size times a scale, or SVG, whose text stays text."""

from __future__ import annotations

import re
from html import escape, unescape
from pathlib import Path

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QColor, QFont, QFontInfo, QImage, QImageWriter, QPainter, QRegion
from PySide6.QtWidgets import QWidget

from resources.language import tr

SUFFIXES = (".png", ".svg")
_DOTS_PER_INCH, _DOTS_PER_METER = 96, 3780
"""What a scale of 1 stands for."""


def save_picture(widget: QWidget, path: Path, ground: QColor | None = None, scale: float = 1.0) -> None:
    """Write `widget` as the path's suffix says, on `ground`, or on its own where that is None. Raises OSError."""
    if path.suffix.lower() == ".svg":
        _save_svg(widget, path, ground)
    else:
        _save_png(widget, path, ground, scale)


def picture_of(widget: QWidget, ground: QColor | None = None, scale: float = 1.0) -> QImage:
    """The same in pixels: the widget's size times `scale`."""
    image = QImage((widget.size().toSizeF() * scale).toSize(), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    image.setDotsPerMeterX(round(_DOTS_PER_METER * scale))
    image.setDotsPerMeterY(round(_DOTS_PER_METER * scale))
    _paint(widget, QPainter(image), ground)
    return image


def _save_png(widget: QWidget, path: Path, ground: QColor | None, scale: float) -> None:
    if not QImageWriter(str(path), b"png").write(picture_of(widget, ground, scale)):
        raise OSError(None, tr("the file could not be written"))


def _save_svg(widget: QWidget, path: Path, ground: QColor | None) -> None:
    from PySide6.QtSvg import QSvgGenerator

    path.touch()  # the generator says nothing of a file that cannot be written
    generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)
    generator.setFileName(str(path))
    generator.setResolution(_DOTS_PER_INCH)  # a unit of the picture is then a pixel of a browser
    generator.setSize(widget.size())
    generator.setViewBox(QRect(QPoint(), widget.size()))
    generator.setTitle(widget.accessibleName() or widget.windowTitle())
    generator.setDescription(widget.accessibleDescription())
    _paint(widget, QPainter(generator), ground)
    _name_fonts(path)


def _name_fonts(path: Path) -> None:
    """Each family by the name of the font it stands for, a generic one behind it: no browser knows `Sans Serif`."""

    def named(found: re.Match[str]) -> str:
        font = QFontInfo(QFont(unescape(found[1])))
        generic = "monospace" if font.fixedPitch() else "sans-serif"
        return f'font-family="{escape(font.family())}, {generic}"'

    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r'font-family="([^"]*)"', named, text), encoding="utf-8", newline="")


def _paint(widget: QWidget, painter: QPainter, ground: QColor | None) -> None:
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    flags = QWidget.RenderFlag.DrawChildren
    if ground is None:
        flags |= QWidget.RenderFlag.DrawWindowBackground
    else:
        painter.fillRect(widget.rect(), ground)
    # A view of graphics has a render of its own, which means something else.
    QWidget.render(widget, painter, QPoint(), QRegion(), flags)
    painter.end()
