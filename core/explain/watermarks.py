"""Whether a text carries a watermark: the statistic of what its tokens show, and one sentence on it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from core.explain.number_formats import format_full
from core.explain.sentence import Saying, Sentence, SentenceNumber
from core.explain.words import decimal, whole_percent
from resources import depth
from resources.language import mark

if TYPE_CHECKING:
    from core.events import WatermarkSign

THRESHOLD = 3.0
"""Standard deviations above chance from which on a text is said to carry it, as transformers' detector has it."""

_NOTHING = Saying(
    mark("There is too little text yet to look for the hidden mark."),
    mark("Too few tokens yet to look for the watermark."),
    mark("No token is counted yet: n = 0."),
)
_MARKED = Saying(
    mark("This text very probably carries the hidden mark: its sign reaches {mean}, where chance alone gives "
         "{expected}."),
    mark("The text very probably carries the watermark: over {count} tokens its sign reaches {mean}, where chance "
         "gives {expected}; z = {z}, p = {p}."),
    mark("n = {count}, mean {mean} (weighted {weighted}) against {expected}: z = {z} ≥ 3, p = {p}."),
)  # fmt: skip
_CHANCE = Saying(
    mark("Too little speaks for the hidden mark: its sign reaches {mean}, and chance alone gives {expected}."),
    mark("Too little speaks for the watermark: over {count} tokens its sign reaches {mean}, where chance gives "
         "{expected}; z = {z}, p = {p}."),
    mark("n = {count}, mean {mean} (weighted {weighted}) against {expected}: z = {z} < 3, p = {p}."),
)  # fmt: skip


class WatermarkFound(NamedTuple):
    """What is known of a text up to one of its tokens."""

    tokens: int
    """Tokens that are counted."""
    mean: float
    """Share of green ones; SynthID's mean score."""
    weighted: float
    """SynthID's weighted mean score."""
    expected: float
    z: float
    """Σ (share − expected) ÷ (deviation · √count): that of `transformers.WatermarkDetector` for green lists."""

    @property
    def p(self) -> float:
        """How often chance alone does as much."""
        return 0.5 * math.erfc(self.z / math.sqrt(2))


def watermark_found(signs: Iterable[WatermarkSign]) -> list[WatermarkFound]:
    """The statistic behind each token in turn."""
    count, total, weighted, told = 0, 0.0, 0.0, list[WatermarkFound]()
    for sign in signs:
        if sign.counts:
            count, total, weighted = count + 1, total + sign.share, weighted + sign.weighted
        z = (total - count * sign.expected) / (sign.deviation * math.sqrt(count)) if count else 0.0
        told.append(WatermarkFound(count, total / count if count else 0.0, weighted / count if count else 0.0,
                                   sign.expected, z))  # fmt: skip
    return told


def explain_watermark(found: WatermarkFound) -> Sentence:
    """Whether the text carries it so far, at the depth and in the language of now."""
    if not found.tokens:
        return _NOTHING.say()
    shown = format_full if depth.current_depth() == depth.EXACT else whole_percent
    saying = _MARKED if found.z >= THRESHOLD else _CHANCE
    return saying.say(
        count=f"{found.tokens:,}", mean=SentenceNumber(shown(found.mean)), expected=shown(found.expected),
        weighted=format_full(found.weighted), z=SentenceNumber(decimal(found.z, 2)), p=f"{found.p:.2g}".replace("-", "−"),
    )  # fmt: skip
