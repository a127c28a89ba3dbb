"""The motion shared by all animations, and whether the desktop requests reduced motion."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from functools import cache

from PySide6.QtCore import QEasingCurve, QVariantAnimation
from PySide6.QtWidgets import QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed

REDUCED_MOTION_VARIABLE = "DECODESCOPE_REDUCED_MOTION"
"""Environment variable; 1 and 0 override the desktop."""
_TIMEOUT_SECONDS = 1.0
"""Time limit for the desktop's answer, in seconds."""
_GNOME = ("gsettings", "get", "org.gnome.desktop.interface", "enable-animations")
_MAC = ("defaults", "read", "com.apple.universalaccess", "reduceMotion")
_CLIENT_AREA_ANIMATION = 0x1042


@cache
def prefers_reduced_motion() -> bool:
    """Return whether animations are disabled; queried once."""
    value = os.environ.get(REDUCED_MOTION_VARIABLE, "")
    return value == "1" if value in ("0", "1") else _desktop_prefers_reduced_motion()


def _desktop_prefers_reduced_motion() -> bool:
    if sys.platform == "win32":
        import ctypes

        on = ctypes.c_int(1)
        ctypes.windll.user32.SystemParametersInfoW(_CLIENT_AREA_ANIMATION, 0, ctypes.byref(on), 0)
        return not on.value
    if sys.platform == "darwin":
        return _command_output(_MAC) == "1"
    return _command_output(_GNOME) == "false"


def _command_output(command: tuple[str, ...]) -> str:
    """Return the output of a command, or an empty string if it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


DURATION = 300
"""Duration in milliseconds."""


class AnimatedWidget(Themed, QWidget):
    """A widget that paints the progress of its motion. A new step restarts the motion."""

    STOPPED = QVariantAnimation.State.Stopped

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.animation = QVariantAnimation(self)
        self.animation.setStartValue(0.0)
        self.animation.setEndValue(1.0)
        self.animation.setDuration(DURATION)
        self.animation.setEasingCurve(QEasingCurve.Type.OutCubic)
        self.animation.valueChanged.connect(self.update)
        self.animation.finished.connect(self.update)

    @property
    def progress(self) -> float:
        """Progress from 0 to 1; always 1 without motion."""
        if self.animation.state() == self.STOPPED:
            return 1.0
        return float(self.animation.currentValue())

    def start_motion(self, animate: bool) -> None:
        """Start the motion to the current state, or jump there."""
        self.animation.stop()
        if animate:
            self.animation.start()
        self.update()


def sub_progress(progress: float, first: float, last: float) -> float:
    """Return the progress within a part of the motion: 0 before it, 1 after it."""
    return min(1.0, max(0.0, (progress - first) / (last - first)))


def interpolate(start: float, end: float, fraction: float) -> float:
    """Interpolate linearly between two values."""
    return start + (end - start) * fraction


def bounce(fraction: float) -> float:
    """Return the progress of a fall that bounces once, from 0 to 1."""
    if fraction < 0.7:
        return (fraction / 0.7) ** 2
    return 1.0 - 0.12 * math.sin((fraction - 0.7) / 0.3 * math.pi)
