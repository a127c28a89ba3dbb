"""Compare pictures from different machines.

Letters are rasterized a little differently from one version of FreeType or Qt to the next. So both are looked at in
quarter size, where a letter's edge is a shade: a picture matches while its mean difference is at most 0.6 of 255 and at
most 0.04 % of its points (19 of a picture of 1100×700: a short word) differ by more than 32 of 255 in a colour.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage

MAX_MEAN = 0.6
MAX_RATIO = 0.0004
_POINT = 32
_QUARTER = 4


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of two pictures: mean over all pixels and colours (0 to 255), and fraction of differing pixels."""

    mean: float
    share: float

    @property
    def matches(self) -> bool:
        """Whether it is within the tolerance."""
        return self.mean <= MAX_MEAN and self.share <= MAX_RATIO

    def __str__(self) -> str:
        return f"mean {self.mean:.2f} of 255 (at most {MAX_MEAN}), {self.share:.2%} changed (at most {MAX_RATIO:.2%})"


def difference(one: QImage, other: QImage) -> Difference:
    """Pictures of another size, or that cannot be read, differ wholly."""
    if one.isNull() or one.size() != other.size():
        return Difference(255.0, 1.0)
    apart = np.abs(_small(one) - _small(other))
    return Difference(float(apart.mean()), float((apart.max(axis=2) > _POINT).mean()))


def _small(picture: QImage) -> np.ndarray:
    """Colours [height ÷ 4, width ÷ 4, 3]."""
    small = picture.convertToFormat(QImage.Format.Format_RGB888).scaled(
        picture.width() // _QUARTER, picture.height() // _QUARTER, Qt.AspectRatioMode.IgnoreAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    )  # fmt: skip
    small = small.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(small.constBits(), np.uint8).reshape(small.height(), small.bytesPerLine())
    return rows[:, : small.width() * 3].reshape(small.height(), small.width(), 3).astype(np.int16)
