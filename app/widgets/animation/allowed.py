"""Whether the desktop asks for less motion. Qt does not say it before 6.12; each system has its own way."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

REDUCED = "DECODESCOPE_REDUCED_MOTION"
"""Environment: 1 wins over the desktop, and so does 0."""
_PATIENCE = 1.0
"""Seconds that a desktop has to answer."""
_GNOME = ("gsettings", "get", "org.gnome.desktop.interface", "enable-animations")
_MAC = ("defaults", "read", "com.apple.universalaccess", "reduceMotion")
_CLIENT_AREA_ANIMATION = 0x1042


@cache
def system_reduces() -> bool:
    """Whether nothing is to move; asked once."""
    said = os.environ.get(REDUCED, "")
    return said == "1" if said in ("0", "1") else _desktop_reduces()


def _desktop_reduces() -> bool:
    if sys.platform == "win32":
        import ctypes

        on = ctypes.c_int(1)
        ctypes.windll.user32.SystemParametersInfoW(_CLIENT_AREA_ANIMATION, 0, ctypes.byref(on), 0)
        return not on.value
    if sys.platform == "darwin":
        return _answer(_MAC) == "1"
    return _answer(_GNOME) == "false"


def _answer(command: tuple[str, ...]) -> str:
    """What a command prints; nothing where there is none of that name, or it has nothing to say."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
