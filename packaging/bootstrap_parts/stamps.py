"""What an installed environment's stamp says, and what it is made of."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

LIBRARY = re.compile(r"\.(so(\.\d+)*|dll|dylib|pyd)$")


def read_stamp(path: Path) -> dict | None:
    """Read what was recorded when the last installation ended; None if it is missing or damaged."""
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(stamp, dict):
        return None
    stamp.setdefault("libraries", {})  # stamps were written without them at first
    if not isinstance(stamp.setdefault("torch", None), (str, type(None))):  # nor did they name PyTorch's build
        return None
    texts = all(isinstance(stamp.get(name), str) for name in ("project", "root", "python"))
    lists = all(is_texts(stamp.get(name)) for name in ("extras", "contents"))
    return stamp if texts and lists and is_sizes(stamp["libraries"]) else None


def is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def is_sizes(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(size, int) for size in value.values())


def contents(site_packages: Path) -> list[str]:
    """What must be there for the packages to import: each entry, and what lies directly in it.

    pip is left out, for it may be upgraded by hand.
    """
    return sorted(
        f"{entry.name}/{inner}" if inner else entry.name
        for entry in map(site_packages.joinpath, inside(site_packages))
        if not re.match(r"pip\b", entry.name)
        for inner in (inside(entry) or [""])
    )


def inside(entry: Path) -> list[str]:
    """The names in a folder; nothing for a file, or where there is nothing."""
    return [name for name in os.listdir(str(entry)) if name != "__pycache__"] if entry.is_dir() else []


def libraries(site_packages: Path) -> dict[str, int]:
    """Every compiled library, however deep, with its size: a damaged one is found without opening it."""
    found = {}
    for folder, _, names in os.walk(str(site_packages)):
        for name in filter(LIBRARY.search, names):
            path = Path(folder) / name
            found[path.relative_to(site_packages).as_posix()] = path.stat().st_size
    return found
