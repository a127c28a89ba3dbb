"""A model of the hub, as plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_digest(digits: str) -> bool:
    """A commit, or a file's SHA-1 or SHA-256, in hexadecimal digits: fit to be the name of a file."""
    return _DIGEST.fullmatch(digits) is not None


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository."""

    path: str
    """Inside the repository, with slashes."""
    size: int
    """Bytes."""
    digest: str
    """Its SHA-256 where it is a large file, else git's SHA-1 of it: 64 or 40 hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """What the hub tells of a model, and what this machine makes of it."""

    name: str
    """owner/name."""
    commit: str
    """Of its main branch."""
    licence: str
    """As the hub names it; empty where it is not told."""
    size: int
    """Bytes of the files that a download takes."""
    architecture: str
    """Family and shape in a few words once it is judged, before that the family alone."""
    downloads: int
    """In the last month."""
    gated: bool
    """Its owner grants access on request."""
    private: bool
    files: tuple[HubFile, ...]
    """Those that a download takes, the small ones first."""
    left_out: tuple[str, ...]
    """Those that it leaves on the hub."""
    pickled: bool
    """Its weights are pickles, which have to be allowed."""
    family: str = ""
    """Its type as a name."""
    judged: bool = False
    """Whether the following are known."""
    parameters: int = 0
    fits: bool = False
    """It can be loaded here, and there is memory for it, in float32."""
    fits_as: str = ""
    """Where it does not: the weights (bfloat16, int8, int4) in which there is memory for it, the finest that do."""
    needed: int = 0
    """Bytes of memory, loaded in float32 or as `fits_as` says, with the keys and values of a text of 2,048 tokens."""
    free: int = 0
    """Bytes that were free then."""
    figures: str = ""
    """What it takes and what is free, in a sentence."""
    why_not: str = ""
    """Why it does not fit, or cannot be used at all; empty when it can."""
