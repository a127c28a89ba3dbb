"""Simulate how colours look with colour vision deficiencies.

The matrices are those of Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
Deficiency" (IEEE TVCG 15(6), 2009), for a severity of 1.0, applied to linear RGB.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage

Floats = NDArray[np.float64]

VISION_TYPES = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
_TO_XYZ = np.array(((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)))
_WHITE = np.array((0.9505, 1.0, 1.089))


def simulate_color(color: QColor, eye: str) -> Floats:
    """Return the simulated colour as linear RGB [3]."""
    return _through(np.array([color.redF(), color.greenF(), color.blueF()]), eye)


def simulate_image(image: QImage, eye: str) -> QImage:
    """Return an image as seen with this color vision deficiency."""
    plain = image.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(plain.constBits(), np.uint8).reshape(plain.height(), plain.bytesPerLine())
    pixels = rows[:, : 3 * plain.width()].reshape(plain.height(), plain.width(), 3) / 255.0
    linear = _through(pixels, eye)
    coded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    data = np.ascontiguousarray((coded * 255).round().astype(np.uint8))
    return QImage(data.data, plain.width(), plain.height(), 3 * plain.width(), QImage.Format.Format_RGB888).copy()


def color_distance(one: Floats, other: Floats) -> float:
    """CIE76 ΔE between two colours in linear RGB [3]."""
    return float(np.linalg.norm(_lab(one) - _lab(other)))


def _through(coded: Floats, eye: str) -> Floats:
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    return np.clip(linear @ np.array(VISION_TYPES[eye]).T, 0.0, 1.0)


def _lab(linear: Floats) -> Floats:
    ratio = _TO_XYZ @ linear / _WHITE
    curve = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array((116 * curve[1] - 16, 500 * (curve[0] - curve[1]), 200 * (curve[1] - curve[2])))
