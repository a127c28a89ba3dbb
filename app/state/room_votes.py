"""Votes of a room for choices with letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LETTERS = "ABCD"
"""Letters of the choices, in order."""


class RoomAnswer(NamedTuple):
    """A question of the guessing game that a room has answered."""

    choices: tuple[str, ...]
    votes: tuple[int, ...]
    """Hands for each choice."""
    shares: tuple[str, ...]
    """The model's probability of each choice, as text."""
    answer: int
    """Index of the choice of the model."""
    before: str
    """The text before the word."""


def plurality(votes: Sequence[int]) -> int | None:
    """Return the choice with the most votes; None without votes or if several share the first place."""
    most = max(votes, default=0)
    leaders = [number for number, count in enumerate(votes) if count == most]
    return leaders[0] if most and len(leaders) == 1 else None
