"""What numbers a training, or a drawing of texts, can have. Imports no torch."""

from __future__ import annotations

from core.arguments import check_number, check_whole

MOST_STEPS = 1_000_000
MOST_TEXTS = 10_000
LONGEST = 100_000
"""Tokens of a text."""
LAST_SEED = 2**32 - 1
"""A step's own seed is made of it by a factor, and has to stay within 64 bits."""
HIGHEST_RATE = 1.0


def check_training(steps: int, seed: int, rate: float) -> None:
    """Raises ParameterError."""
    check_whole("steps", steps, 1, MOST_STEPS)
    check_seed(seed)
    check_number("rate", rate, 0, HIGHEST_RATE)


def check_seed(seed: int) -> None:
    """Raises ParameterError."""
    check_whole("seed", seed, 0, LAST_SEED)


def check_texts(name: str, count: int) -> None:
    """Raises ParameterError unless so many texts can be drawn."""
    check_whole(name, count, 1, MOST_TEXTS)


def check_longest(longest: int) -> None:
    """Raises ParameterError."""
    check_whole("longest", longest, 1, LONGEST)
