"""Figures of a token in words: percentages, ranks, bits, white space made visible."""

from __future__ import annotations

import math

from app.views.text.pieces import control_name, visible
from core.events import Alternative, TokenChosen

_SHOWN = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥", "\u00a0": "␣", "\u200b": "␍"})


def token_text(piece: str) -> str:
    """A token as a word to read: ␣ for spaces, ↵ for line breaks, ⟨end⟩ for a control token."""
    name = control_name(piece)
    return f"⟨{name}⟩" if name else visible(piece).translate(_SHOWN)


def percent(share: float) -> str:
    """`0.314` → `31 %`; more digits where few would say 0 or 100."""
    value = share * 100
    if value == 0 or value >= 99.995:
        return f"{value:.0f} %"
    if value < 0.001:
        return "< 0.001 %"
    if value < 0.1:
        return f"{value:.3f} %"
    if value < 1 or value > 99:
        return f"{value:.2f} %"
    return f"{value:.1f} %" if value < 10 else f"{value:.0f} %"


def brief_percent(share: float) -> str:
    """`0.314` → `31 %` in as little room as a table has."""
    value = share * 100
    if value >= 9.95:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.05 else "< 0.1 %"


WIDEST_PERCENT = "< 0.1 %"


def bits(log_probability: float) -> float:
    """Surprise in bits of a natural log-probability; infinite for what cannot happen."""
    return max(0.0, -log_probability / math.log(2)) if math.isfinite(log_probability) else math.inf


def log_probability(value: float) -> str:
    """With two decimals and a real minus sign; −∞ where the token was cut."""
    return f"{value:.2f}".replace("-", "−") if math.isfinite(value) else "−∞"


def mass_above(token: TokenChosen) -> float | None:
    """Share of the model's distribution on tokens likelier than the chosen one; None without tracing."""
    above = [a.raw_probability for a in token.alternatives if a.rank < token.rank]
    return sum(above) if token.alternatives and len(above) == token.rank - 1 else None


def chosen_alternative(token: TokenChosen) -> Alternative | None:
    """The chosen token's own entry in the list; None without tracing."""
    return next((a for a in token.alternatives if a.id == token.id), None)


def figures(token: TokenChosen, vocabulary: int = 0) -> list[tuple[str, str]]:
    """Rows of the card that hovers over a token."""
    rank = f"{token.rank:,} of {vocabulary:,}" if vocabulary else f"{token.rank:,}"
    rows = [
        ("id", f"{token.id:,}"),
        ("by the model alone", percent(token.raw_probability)),
        ("after the settings", percent(token.probability)),
        ("log-probability", f"{log_probability(token.raw_log_probability)} → {log_probability(token.log_probability)}"),
        ("rank", rank),
        ("surprise", f"{bits(token.raw_log_probability):.1f} bits"),
    ]
    above = mass_above(token)
    if above:
        rows.append(("mass above it", percent(above)))
    return rows


def spoken(token: TokenChosen, number: int, count: int) -> str:
    """One line for a screen reader."""
    name = control_name(token.piece) if token.special else visible(token.piece).strip() or token_text(token.piece)
    return f"Token {number} of {count}: “{name}”, probability {percent(token.raw_probability)}, rank {token.rank:,}"
