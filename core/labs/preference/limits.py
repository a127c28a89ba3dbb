"""What numbers a training, or a drawing of texts, can have. Imports no torch."""

from __future__ import annotations

from core.arguments import check_integer, check_number

MAX_STEPS = 1_000_000
MAX_TEXTS = 10_000
MAX_TOKENS = 100_000
"""Tokens of a text."""
MAX_SEED = 2**32 - 1
"""A step's own seed is made of it by a factor, and has to stay within 64 bits."""
MAX_LEARNING_RATE = 1.0


def check_training(steps: int, seed: int, rate: float) -> None:
    """Raises ParameterError."""
    check_integer("steps", steps, 1, MAX_STEPS)
    check_seed(seed)
    check_number("rate", rate, 0, MAX_LEARNING_RATE)


def check_seed(seed: int) -> None:
    """Raises ParameterError."""
    check_integer("seed", seed, 0, MAX_SEED)


def check_text_count(name: str, count: int) -> None:
    """Raises ParameterError unless so many texts can be drawn."""
    check_integer(name, count, 1, MAX_TEXTS)


def check_max_tokens(max_tokens: int) -> None:
    """Raises ParameterError."""
    check_integer("longest", max_tokens, 1, MAX_TOKENS)
