"""How what is set here is asked of transformers' own `generate`, or why that cannot be. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from resources.language import tr


class GenerateEquivalent(NamedTuple):
    """What `generate` is given for a strategy or a cache beside the settings that both know by the same name."""

    settings: Mapping[str, object] = MappingProxyType({})
    missing: str = ""
    """Why `generate` cannot do the same, as a sentence; empty where it can."""
    note: str = ""
    """What is not quite the same there, as sentences."""


SAME_SETTINGS = GenerateEquivalent()


def removed_from_transformers(title: str) -> GenerateEquivalent:
    """Of a strategy that transformers had up to its version 4."""
    return GenerateEquivalent(missing=tr("transformers 5 no longer contains {title}.").format(title=title))
