"""Draw the program's icon in the formats of the systems."""

from __future__ import annotations

import io
from pathlib import Path

SIZES = {".ico": (16, 24, 32, 48, 64, 128, 256), ".icns": (16, 32, 64, 128, 256, 512, 1024), ".png": (256,)}
"""Pixels per side of the pictures in a file of each format."""


def write_icon(drawing: Path, target: Path) -> Path:
    """Write an SVG file as .ico, .icns or .png, by the name of `target`, and return it. Raises KeyError for others."""
    from PIL import Image

    sizes = SIZES[target.suffix]
    pictures = [Image.open(io.BytesIO(draw(drawing, size))) for size in sizes]
    largest, *others = reversed(pictures)
    if target.suffix == ".png":
        largest.save(target)
    elif target.suffix == ".ico":
        largest.save(target, sizes=[(size, size) for size in sizes], append_images=others)
    else:
        largest.save(target, append_images=others)
    return target


def draw(drawing: Path, size: int) -> bytes:
    """Return an SVG file without text as a square PNG with this many pixels per side. Needs no Qt application."""
    from PySide6.QtCore import QBuffer, QIODevice, Qt
    from PySide6.QtGui import QImage, QPainter
    from PySide6.QtSvg import QSvgRenderer

    picture = QImage(size, size, QImage.Format.Format_ARGB32)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    QSvgRenderer(str(drawing)).render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    picture.save(buffer, "PNG")
    return bytes(buffer.data().data())
