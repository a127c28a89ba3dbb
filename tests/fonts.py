"""Fonts of the window's tests: a wide and a narrow one, Chinese and emoji, and no others of the machine.

Layout has to hold with any font. Tests see the fonts through a fontconfig file of their own; which of the two the
window gets is said by DECODESCOPE_TEST_FONT (`wide`, the default, or `narrow`), and by the fixture `font` where a test
wants both. Both are packages of the system (`.ci/run` installs them); what is missing is left out and told.
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
    """A family, and how its files' names begin."""

    __test__ = False
    family: str
    files: tuple[str, ...]

    def found(self) -> list[Path]:
        """Its files on this machine; none of bundled fallbacks such as its condensed forms."""
        names = set(self.files)
        found = (path for folder in font_folders() for path in folder.rglob("*.ttf") if path.stem in names)
        return sorted({path.resolve() for path in found})


FONTS = {
    "wide": TestFont("DejaVu Sans", ("DejaVuSans", "DejaVuSans-Bold")),
    "narrow": TestFont(
        "Liberation Sans Narrow",
        tuple(f"LiberationSansNarrow-{style}" for style in ("Regular", "Bold", "Italic", "BoldItalic")),
    ),
}
_MONO = TestFont("DejaVu Sans Mono", ("DejaVuSansMono", "DejaVuSansMono-Bold"))
SCRIPTS = {
    "Chinese": TestFont("Droid Sans Fallback", ("DroidSansFallbackFull",)),
    "emoji": TestFont("Noto Color Emoji", ("NotoColorEmoji",)),
}
"""For what the two have no signs for; Arabic and Hebrew are in the wide one."""

_CONFIG = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<dir>{folder}</dir>
<cachedir>{cache}</cachedir>
<alias binding="same"><family>sans-serif</family><prefer><family>{family}</family></prefer></alias>
<alias binding="same"><family>sans</family><prefer><family>{family}</family></prefer></alias>
<alias binding="same"><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
<match target="pattern">
<edit name="family" mode="append_last" binding="weak"><string>{family}</string></edit>
</match>
</fontconfig>
"""


def missing() -> list[str]:
    """Which of them this machine has not."""
    return [name for name, font in (FONTS | SCRIPTS).items() if not font.found()]


def choose(folder: Path) -> None:
    """Make only these fonts visible to processes started later; without the requested font, keep the machine's."""
    wanted = FONTS[os.environ.get("DECODESCOPE_TEST_FONT", "wide")]
    if not wanted.found():
        return
    seen = folder / "fonts"
    seen.mkdir(parents=True)
    for font in (*FONTS.values(), *SCRIPTS.values(), _MONO):
        for file in font.found():
            if not (seen / file.name).exists():
                (seen / file.name).symlink_to(file)
    config = folder / "fonts.conf"
    config.write_text(_CONFIG.format(folder=seen, cache=folder / "font-cache", family=wanted.family))
    os.environ["FONTCONFIG_FILE"] = str(config)
