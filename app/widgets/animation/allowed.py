"""Whether the desktop asks for less motion. Qt does not say it before 6.12; each system has its own way."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

REDUCED_MOTION_VARIABLE = "DECODESCOPE_REDUCED_MOTION"
"""Environment: 1 wins over the desktop, and so does 0."""
_TIMEOUT_SECONDS = 1.0
"""Seconds that a desktop has to answer."""
_GNOME = ("gsettings", "get", "org.gnome.desktop.interface", "enable-animations")
_MAC = ("defaults", "read", "com.apple.universalaccess", "reduceMotion")
_CLIENT_AREA_ANIMATION = 0x1042


@cache
def prefers_reduced_motion() -> bool:
    """Whether nothing is to move; asked once."""
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
    """What a command prints; nothing where there is none of that name, or it has nothing to say."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
