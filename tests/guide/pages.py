"""The pages of the guide as files: their pictures and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from decodescope.app.album.picture import Picture
from decodescope.app.album.picture_script import read_script

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
CHINESE = GUIDE / "zh_CN"
"""Holds a page for each English one, in the same place, and the few pictures that are its own."""
CHINESE_PAGES = sorted(CHINESE.rglob("*.md"))
PAGES = sorted(set(GUIDE.rglob("*.md")) - set(CHINESE_PAGES))
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)[^)]*\)")


def name_of(page: Path) -> str:
    """strategies/greedy.md"""
    return page.relative_to(GUIDE).as_posix()


def links(page: Path) -> Iterator[Path]:
    """Every file that a page points to."""
    for _, _, target in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            yield (page.parent / target).resolve()


def shown(page: Path) -> dict[Path, str]:
    """Return the pictures of a page with their alternative texts."""
    found = _LINK.findall(page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve(): words for mark, words, target in found if mark}


def pictures(folder: Path = GUIDE) -> dict[str, Picture]:
    """Return the pictures that the script of a folder creates, by file stem."""
    return {picture.out.stem: picture for picture in read_script(folder / "pictures.toml")}


def all_pictures() -> dict[str, Picture]:
    """Both languages' pictures: “greedy”, “zh_CN/window”."""
    return pictures() | {f"{CHINESE.name}/{name}": picture for name, picture in pictures(CHINESE).items()}
