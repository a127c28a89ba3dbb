"""How much memory a model's weights may take, in words and read from words. No Qt."""

from __future__ import annotations

import re

from app.state.worker_messages import ALL_IN_MEMORY, AS_FITS
from core import words
from resources.language import tr

ALL, FIT = "all", "fit"
"""On the command line."""
_UNITS = {"": 1024, "g": 1024, "gb": 1024, "gib": 1024, "m": 1, "mb": 1, "mib": 1}
"""MiB each; a bare number is gigabytes."""


def memory_text(memory: int) -> str:
    """`all`, `as much as fits`, `4.0 GiB`."""
    if memory == ALL_IN_MEMORY:
        return tr("all of them")
    return tr("as much as fits") if memory == AS_FITS else words.size(memory * 2**20)


def parse_memory(text: str) -> int:
    """What `all`, `fit`, `6`, `6GB` or `800MB` mean, in MiB. Raises ValueError."""
    if text in (ALL, FIT):
        return ALL_IN_MEMORY if text == ALL else AS_FITS
    match = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,3})?) ?([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS or not (found := round(float(match[1]) * _UNITS[match[2]])):
        raise ValueError
    return found
