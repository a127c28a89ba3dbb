"""Votes of a room for choices with letters."""

from __future__ import annotations

from collections.abc import Sequence

LETTERS = "ABCD"
"""Letters of the choices, in order."""


def plurality(votes: Sequence[int]) -> int | None:
    """Return the choice with the most votes; None without votes or if several share the first place."""
    most = max(votes, default=0)
    leaders = [number for number, count in enumerate(votes) if count == most]
    return leaders[0] if most and len(leaders) == 1 else None
