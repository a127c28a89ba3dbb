"""How what is set here is asked of transformers' own `generate`, or why that cannot be. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from resources.language import tr


@dataclass(frozen=True, slots=True)
class Counterpart:
    """What `generate` is given for a strategy or a cache beside the settings that both know by the same name."""

    settings: Mapping[str, object] = field(default_factory=dict)
    missing: str = ""
    """Why `generate` cannot do the same, as a sentence; empty where it can."""
    note: str = ""
    """What is not quite the same there, as sentences."""


SAME = Counterpart()


def gone(title: str) -> Counterpart:
    """Of a strategy that transformers had up to its version 4."""
    return Counterpart(missing=tr("transformers 5 no longer contains {title}.").format(title=title))
