"""Wording of token values: percentages, ranks, bits and visible white space."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from decodescope.core import share, words
from decodescope.resources import depth
from decodescope.resources.language import tr, trn

if TYPE_CHECKING:
    from decodescope.core.events import TokenChosen


def token_text(piece: str, special: bool | None = None) -> str:
    """Return a token in readable form: ␣ for spaces, ↵ for line breaks, ⟨end⟩ for a control token."""
    return words.label(piece, special)


def surprise_bits(log_probability: float) -> float:
    """Convert a natural log-probability to surprise in bits: infinite for impossible tokens, NaN for unknown values."""
    if math.isnan(log_probability):
        return math.nan
    return max(0.0, -log_probability / math.log(2)) if math.isfinite(log_probability) else math.inf


def format_bits(value: float) -> str:
    """Return, for example, `1.7 bits`."""
    if math.isnan(value):
        return words.UNKNOWN
    return tr("{value:.1f} bits").format(value=value)


def format_token_count(number: int) -> str:
    """Return, for example, `1 token` or `1,024 tokens`."""
    return trn("{number:,} token", "{number:,} tokens", number).format(number=number)


def format_text_count(number: int) -> str:
    """Return, for example, `1 text` or `1,024 texts`."""
    return trn("{number:,} text", "{number:,} texts", number).format(number=number)


def probability_above(token: TokenChosen) -> float | None:
    """Return the model's probability of all tokens likelier than the chosen one; None if they were not recorded."""
    above = [a.raw_probability for a in token.alternatives if a.rank < token.rank]
    return sum(above) if token.alternatives and len(above) == token.rank - 1 else None


def popover_rows(token: TokenChosen, vocabulary: int = 0) -> list[tuple[str, str]]:
    """Return the rows of the popover over a token, at the current level of detail."""
    if is_remote_token(token):
        return _remote_token_rows(token)
    return depth.pick(_plain_rows, _usual_rows, _exact_rows)(token, vocabulary)


def is_remote_token(token: TokenChosen) -> bool:
    """Return whether a remote engine wrote the token; such tokens have fewer values."""
    return math.isnan(token.entropy)


def _remote_token_rows(token: TokenChosen) -> list[tuple[str, str]]:
    """Return rows for the values that the engine reported."""
    raw, final = token.raw_probability, token.probability
    rows = [
        (tr("id"), f"{token.id:,}" if token.id >= 0 else ""),
        (tr("by the model alone"), "" if math.isnan(raw) else words.percent(raw)),
        (tr("after the settings"), "" if math.isnan(final) else words.percent(final)),
        (tr("log-probability"), "" if math.isnan(raw) else words.decimal(token.raw_log_probability)),
        (tr("rank"), words.rank(token.rank) if token.rank else ""),
        (tr("surprise"), "" if math.isnan(raw) else format_bits(surprise_bits(token.raw_log_probability))),
    ]
    return [row for row in rows if row[1]] or [(tr("probability"), tr("not reported by the engine"))]


def _plain_rows(token: TokenChosen, vocabulary: int) -> list[tuple[str, str]]:
    return [
        (tr("model probability"), share(token.raw_probability)),
        (tr("after the settings"), words.final_share(token)),
        (tr("rank in its list"), _format_rank(token, vocabulary)),
    ]


def _exact_rows(token: TokenChosen, vocabulary: int) -> list[tuple[str, str]]:
    return [
        (tr("id"), f"{token.id:,}"),
        (tr("raw p"), share(token.raw_probability)),
        (tr("final p"), words.final_share(token)),
        (tr("raw ln p"), words.decimal(token.raw_log_probability, 4)),
        (tr("final ln p"), words.decimal(token.log_probability, 4)),
        (tr("raw rank"), _format_rank(token, vocabulary)),
        (tr("final rank"), f"{token.final_rank or token.rank:,}"),
        (tr("−log₂ p"), tr("{value:.4f} bits").format(value=surprise_bits(token.raw_log_probability))),
    ]


def _format_rank(token: TokenChosen, vocabulary: int) -> str:
    if not vocabulary:
        return f"{token.rank:,}"
    return tr("{rank:,} of {vocabulary:,}").format(rank=token.rank, vocabulary=vocabulary)


def _usual_rows(token: TokenChosen, vocabulary: int) -> list[tuple[str, str]]:
    rows = [
        (tr("id"), f"{token.id:,}"),
        (tr("by the model alone"), words.percent(token.raw_probability)),
        (tr("after the settings"), words.final_percent(token)),
        (tr("log-probability"), f"{words.decimal(token.raw_log_probability)} → {words.decimal(token.log_probability)}"),
        (tr("rank"), _format_rank(token, vocabulary)),
        (tr("surprise"), format_bits(surprise_bits(token.raw_log_probability))),
    ]
    above = probability_above(token)
    if above:
        rows.append((tr("likelier tokens"), words.percent(above)))
    return rows


def describe_token(token: TokenChosen, number: int, count: int) -> str:
    """Describe a token in one line for a screen reader."""
    name = words.control_name(token.piece, token.is_special) if token.special else words.visible(token.piece).strip()
    probability = words.percent(token.raw_probability)
    if is_remote_token(token):
        return tr("Token {number} of {count}: “{name}”, probability {share}").format(
            number=number, count=count, name=name or token_text(token.piece, token.is_special), share=probability
        )
    return tr("Token {number} of {count}: “{name}”, probability {share}, rank {rank:,}").format(
        number=number,
        count=count,
        name=name or token_text(token.piece, token.is_special),
        share=probability,
        rank=token.rank,
    )
