"""Name the system libraries that Qt lacks before it is started. The list of libraries is the program's own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from bootstrap_parts.errors import SetupError

SHARED = Path(__file__).resolve().parents[2] / "app" / "start" / "qt_libraries.py"


def load_shared():
    """Load the program's module by its path: the program itself may not be importable yet."""
    spec = importlib.util.spec_from_file_location("decodescope_qt_libraries", str(SHARED))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_shared = load_shared()
os = _shared.os
remedy = _shared.remedy
missing_of = _shared.missing_libraries


COMMANDS_WITHOUT_QT = (
    "atlas", "claim", "generate", "infer-settings", "probability", "serve", "show", "study", "watch", "why",
)  # fmt: skip
INFORMATION = ("-h", "--help", "--version")
FILE_OPTIONS = ("--export", "--pictures", "--record-demo", "--screenshot")
"""Words of the program's command line that decide what it needs: nothing of Qt, or Qt without a screen."""


def needs(arguments: list[str]) -> str:
    """Return what a command line of the program needs: "nothing" of Qt, Qt "offscreen", or a "screen"."""
    if arguments[:1] and arguments[0] in COMMANDS_WITHOUT_QT:
        return "nothing"
    if set(INFORMATION) & set(arguments):
        return "nothing"
    return "offscreen" if set(FILE_OPTIONS) & {word.partition("=")[0] for word in arguments} else "screen"


def has_screen(variables: dict[str, str]) -> bool:
    """Return whether a window can be shown; only a Linux can be without a graphical session."""
    names = ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY", "DISPLAY")
    return not sys.platform.startswith("linux") or any(variables.get(name) for name in names)


def check(site_packages: Path, variables: dict[str, str]) -> None:
    """Make sure that Qt can show its windows where the variables say. Before Qt is installed, the libraries that it
    will need are checked by name.

    Raises:
        SetupError: There is no screen, or libraries are missing; names the packages that hold them.
    """
    if not sys.platform.startswith("linux"):
        return
    if not has_screen(variables):
        raise SetupError(
            "there is no screen: neither DISPLAY nor WAYLAND_DISPLAY is set.",
            "start it in a desktop session (over ssh with -X), or draw into a file with --screenshot FILE.",
        )
    qt = site_packages / "PySide6" / "Qt"
    if is_installed(site_packages):
        missing = missing_of([qt / "lib" / "libQt6Widgets.so.6"])
        missing |= _shared.missing_for_platform(_shared.platform_plugins(qt / "plugins", variables), missing_of)
    else:
        missing = _shared.missing_before_installation(variables)
    if missing:
        raise SetupError(_shared.MISSING.format(libraries=", ".join(sorted(missing))), remedy(missing))


def is_installed(site_packages: Path) -> bool:
    """Return whether the environment has Qt."""
    return (site_packages / "PySide6" / "Qt" / "lib" / "libQt6Widgets.so.6").exists()
