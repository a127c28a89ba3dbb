"""Figures of a token in words: percentages, ranks, bits, white space made visible."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from core import words

if TYPE_CHECKING:
    from core.events import TokenChosen


def token_text(piece: str) -> str:
    """A token as a word to read: ␣ for spaces, ↵ for line breaks, ⟨end⟩ for a control token."""
    return words.label(piece)


def bits(log_probability: float) -> float:
    """Surprise in bits of a natural log-probability; infinite for what cannot happen."""
    return max(0.0, -log_probability / math.log(2)) if math.isfinite(log_probability) else math.inf


def mass_above(token: TokenChosen) -> float | None:
    """Share of the model's distribution on tokens likelier than the chosen one; None without tracing."""
    above = [a.raw_probability for a in token.alternatives if a.rank < token.rank]
    return sum(above) if token.alternatives and len(above) == token.rank - 1 else None


def figures(token: TokenChosen, vocabulary: int = 0) -> list[tuple[str, str]]:
    """Rows of the card that hovers over a token."""
    rank = f"{token.rank:,} of {vocabulary:,}" if vocabulary else f"{token.rank:,}"
    rows = [
        ("id", f"{token.id:,}"),
        ("by the model alone", words.percent(token.raw_probability)),
        ("after the settings", words.percent(token.probability)),
        ("log-probability", f"{words.decimal(token.raw_log_probability)} → {words.decimal(token.log_probability)}"),
        ("rank", rank),
        ("surprise", f"{bits(token.raw_log_probability):.1f} bits"),
    ]
    above = mass_above(token)
    if above:
        rows.append(("mass above it", words.percent(above)))
    return rows


def spoken(token: TokenChosen, number: int, count: int) -> str:
    """One line for a screen reader."""
    name = words.control_name(token.piece) if token.special else words.visible(token.piece).strip()
    share = words.percent(token.raw_probability)
    return f"Token {number} of {count}: “{name or token_text(token.piece)}”, probability {share}, rank {token.rank:,}"
