"""The one motion of all animations: from 0 to 1 within `DURATION`, or at once where nothing is to move."""

from __future__ import annotations

import math

from PySide6.QtCore import QEasingCurve, QVariantAnimation
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme

DURATION = 300
"""Milliseconds; never more."""


class Animated(QWidget):
    """A widget that paints where its motion stands; a step that comes meanwhile begins from its own start."""

    STOPPED = QVariantAnimation.State.Stopped

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.motion = QVariantAnimation(self)
        self.motion.setStartValue(0.0)
        self.motion.setEndValue(1.0)
        self.motion.setDuration(DURATION)
        self.motion.setEasingCurve(QEasingCurve.Type.OutCubic)
        self.motion.valueChanged.connect(self.update)
        self.motion.finished.connect(self.update)

    @property
    def progress(self) -> float:
        """0 at the start, 1 at the end: always, where nothing moves."""
        if self.motion.state() == self.STOPPED:
            return 1.0
        return float(self.motion.currentValue())

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def begin(self, moves: bool) -> None:
        """Go to what is set now, or be there."""
        self.motion.stop()
        if moves:
            self.motion.start()
        self.update()


def part(progress: float, first: float, last: float) -> float:
    """How far that stretch of a motion has come: 0 before it, 1 behind it."""
    return min(1.0, max(0.0, (progress - first) / (last - first)))


def between(one: float, other: float, share: float) -> float:
    """`share` of the way."""
    return one + (other - one) * share


def bounced(share: float) -> float:
    """A fall that springs back once, from 0 to 1."""
    if share < 0.7:
        return (share / 0.7) ** 2
    return 1.0 - 0.12 * math.sin((share - 0.7) / 0.3 * math.pi)
