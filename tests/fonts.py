"""Fonts of the machine that tests see: those for scripts that the program's own fonts lack.

The program has its own fonts (`resources/fonts`). Tests see further ones through a fontconfig file of their own, so
that a text in another script looks the same everywhere. They are packages of the system, which `.ci/run` installs.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

PLACES = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.local/share/fonts",
    "~/.fonts",
    "/Library/Fonts",
    "/System/Library/Fonts",
    "~/Library/Fonts",
)


def font_folders() -> list[Path]:
    """Return the folders with this machine's fonts.

    A fontconfig file named by the environment decides alone: fonts that it hides from the program are hidden from the
    tests as well.
    """
    named = _folders_in(os.environ.get("FONTCONFIG_FILE", ""))
    return [folder for folder in named or [Path(place).expanduser() for place in PLACES] if folder.is_dir()]


def _folders_in(config: str) -> list[Path]:
    """Return the folders that a fontconfig file names; none for a file that cannot be read."""
    try:
        root = ElementTree.parse(config).getroot()
    except (OSError, ElementTree.ParseError):
        return []
    return [
        Path(entry.text.strip()).expanduser() for entry in root.iter("dir") if entry.text and not entry.get("prefix")
    ]


@dataclass(frozen=True)
class TestFont:
    """A family, and the names of its files without suffix."""

    __test__ = False
    family: str
    files: tuple[str, ...]

    def found(self) -> list[Path]:
        """Its files on this machine; none of bundled fallbacks such as its condensed forms."""
        names = set(self.files)
        found = (path for folder in font_folders() for path in folder.rglob("*.ttf") if path.stem in names)
        return sorted({path.resolve() for path in found})


SCRIPTS = {
    "Arabic and Hebrew": TestFont("DejaVu Sans", ("DejaVuSans", "DejaVuSans-Bold")),
    "East Asian": TestFont("Droid Sans Fallback", ("DroidSansFallbackFull",)),
    "emoji": TestFont("Noto Color Emoji", ("NotoColorEmoji",)),
}

_CONFIG = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<dir>{folder}</dir>
<cachedir>{cache}</cachedir>
<match target="pattern">
<edit name="family" mode="append_last" binding="weak"><string>DejaVu Sans</string></edit>
</match>
</fontconfig>
"""


def choose(folder: Path) -> None:
    """Make only these fonts of the machine visible to processes that start later."""
    seen = folder / "fonts"
    seen.mkdir(parents=True)
    for font in SCRIPTS.values():
        for file in font.found():
            if not (seen / file.name).exists():
                (seen / file.name).symlink_to(file)
    config = folder / "fonts.conf"
    config.write_text(_CONFIG.format(folder=seen, cache=folder / "font-cache"))
    os.environ["FONTCONFIG_FILE"] = str(config)
