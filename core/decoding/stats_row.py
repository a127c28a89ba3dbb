"""What a step's row of figures holds, and where."""

from __future__ import annotations

FIXED_COLUMNS = 7
"""Figures every row begins with: raw and processed log-probability of the chosen token, how many tokens are likelier by
the model alone and after processing, negative entropy, varentropy, chosen token."""
STAGE_COLUMNS = 3
"""Survivors, mass and raw mass."""


def row_length(stages: int, top_n: int) -> int:
    """Figures of a row. Behind the fixed ones: ids, raw and, where there are stages, processed log-probabilities of the
    n likeliest; for each stage its three, ids and probabilities of its n likeliest; for the last one's likeliest the
    raw log-probability and how many tokens are likelier (-1 where it is among the n likeliest by the model alone)."""
    if not top_n:
        return FIXED_COLUMNS
    return FIXED_COLUMNS + 2 * top_n + (3 * top_n + stages * (STAGE_COLUMNS + 2 * top_n) if stages else 0)
