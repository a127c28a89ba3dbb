"""Statistics and a sentence on the effect of a grammar over a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.explain.sentence import Sentence, SentenceNumber, SentenceTemplate
from decodescope.core.explain.words import decimal, format_full, share, whole_percent
from decodescope.resources import depth
from decodescope.resources.language import mark

if TYPE_CHECKING:
    from decodescope.core.events import BeamStep, TokenChosen, WatermarkSign

STAGE = "grammar"
_NEVER = SentenceTemplate(
    mark("The grammar never forbade the model's favourite; it removed {removed} of the chances on average."),
    mark("The grammar never forbade the model's first choice; it removed {removed} of the probability on average."),
    mark("Stage grammar: raw rank 1 forbidden at 0 of {steps} steps; mean mass removed {removed}."),
)
_ACTED = SentenceTemplate(
    mark("The grammar forbade the model's favourite at {acted} of {steps} positions ({rate}), and removed "
        "{removed} of the chances on average."),
    mark("The grammar forbade the model's first choice at {acted} of {steps} steps ({rate}), and removed {removed} of "
         "the probability on average."),
    mark("Stage grammar: raw rank 1 forbidden at {acted} of {steps} steps ({rate}); mean mass removed {removed}."),
)  # fmt: skip


_NEVER_AT_ONE = SentenceTemplate(
    *_NEVER[:2], mark("Stage grammar: raw rank 1 not forbidden at the only step; mass removed {removed}.")
)
_ACTED_AT_ONE = SentenceTemplate(
    mark("The grammar forbade the model's favourite at the only position, and removed {removed} of the chances."),
    mark("The grammar forbade the model's first choice at the only step, and removed {removed} of the probability."),
    mark("Stage grammar: raw rank 1 forbidden at the only step; mass removed {removed}."),
)


@plain(frozen=True)
class GrammarFigures:
    """The effect of a grammar on the tokens of a text."""

    steps: int
    overruled: int
    """Number of steps at which it forbade the model's first choice."""
    removed: float
    """Mean probability mass it removed from the distribution entering the stage; for beams, from the raw distribution.
    """


def grammar_figures(tokens: Iterable[TokenChosen]) -> GrammarFigures | None:
    """Compute the statistics of a run's tokens with their funnels; None if no token passed a grammar (or tracing was
    off).
    """
    removed: list[float] = []
    overruled = 0
    for token in tokens:
        for before, stage in pairwise(token.funnel):
            if stage.name == STAGE:
                removed.append(1 - stage.mass)
                first = token.funnel[0].top[0][0]
                # A ban only moves the remaining tokens up: a token listed before it and not after it was forbidden.
                overruled += first in dict(before.top) and first not in dict(stage.top)
    return GrammarFigures(len(removed), overruled, sum(removed) / len(removed)) if removed else None


def beam_grammar_figures(steps: Sequence[BeamStep], node: int) -> GrammarFigures | None:
    """Compute the statistics of the text that ends in a node of a beam search, over the beams on its path."""
    parents = {one.node: one.parent for step in steps for one in step.candidates}
    removed = {beam: share for step in steps for beam, share in step.forbidden}
    overruled = {wish.parent for step in steps for wish in step.overruled}
    way = []
    while node in parents:
        node = parents[node]
        way.append(node)
    passed = [removed[beam] for beam in way if beam in removed]
    return GrammarFigures(len(passed), len(overruled & set(way)), sum(passed) / len(passed)) if passed else None


def explain_grammar(found: GrammarFigures | None) -> Sentence:
    """Explain the statistics in a sentence at the current level of detail and language; empty without a grammar."""
    if found is None:
        return Sentence()
    facts = {"steps": f"{found.steps:,}", "removed": share(found.removed)}
    is_single = found.steps == 1
    if not found.overruled:
        return (_NEVER_AT_ONE if is_single else _NEVER).say(**facts)
    return (_ACTED_AT_ONE if is_single else _ACTED).say(
        **facts, acted=f"{found.overruled:,}", rate=share(found.overruled / found.steps, is_exact=True)
    )


THRESHOLD = 3.0
"""z-score from which a text is considered watermarked, as in transformers' detector."""

_NOTHING = SentenceTemplate(
    mark("There is too little text yet to detect the hidden watermark."),
    mark("Too few tokens yet to detect the watermark."),
    mark("No token is counted yet: n = 0."),
)
_MARKED = SentenceTemplate(
    mark("This text very probably contains the hidden watermark: its score is {mean}, where {expected} is "
        "expected by chance."),
    mark("The text very probably contains the watermark: the mean score of {count} tokens is {mean}, where "
        "{expected} is expected by chance; z = {z}, p = {p}."),
    mark("n = {count}, mean {mean} (weighted {weighted}) against {expected}: z = {z} ≥ 3, p = {p}."),
)  # fmt: skip
_CHANCE = SentenceTemplate(
    mark("There is too little evidence of the hidden watermark: the score is {mean}, where {expected} is "
        "expected by chance."),
    mark("There is too little evidence of the watermark: the mean score of {count} tokens is {mean}, where "
        "{expected} is expected by chance; z = {z}, p = {p}."),
    mark("n = {count}, mean {mean} (weighted {weighted}) against {expected}: z = {z} < 3, p = {p}."),
)  # fmt: skip

_CHANCE_AT_ONE = SentenceTemplate(
    _CHANCE.plain,
    mark("There is too little evidence of the watermark: the score of the only token is {mean}, where {expected} is "
         "expected by chance; z = {z}, p = {p}."),
    _CHANCE.exact,
)  # fmt: skip


class WatermarkFound(NamedTuple):
    """The watermark statistic of a text up to one of its tokens."""

    tokens: int
    """Number of counted tokens."""
    mean: float
    """Fraction of green tokens; SynthID's mean score."""
    weighted: float
    """SynthID's weighted mean score."""
    expected: float
    z: float
    """Σ (share − expected) ÷ (deviation · √count): as in `transformers.WatermarkDetector` for green lists."""

    @property
    def p(self) -> float:
        """p-value: the probability of at least this statistic by chance."""
        return 0.5 * math.erfc(self.z / math.sqrt(2))


def watermark_found(signs: Iterable[WatermarkSign]) -> list[WatermarkFound]:
    """Compute the statistic after each token."""
    count, total, weighted, results = 0, 0.0, 0.0, list[WatermarkFound]()
    for sign in signs:
        if sign.counts:
            count, total, weighted = count + 1, total + sign.share, weighted + sign.weighted
        z = (total - count * sign.expected) / (sign.deviation * math.sqrt(count)) if count else 0.0
        results.append(WatermarkFound(count, total / count if count else 0.0, weighted / count if count else 0.0,
                                   sign.expected, z))  # fmt: skip
    return results


def explain_watermark(found: WatermarkFound) -> Sentence:
    """Explain whether the text so far contains the watermark, at the current level of detail and language."""
    if not found.tokens:
        return _NOTHING.say()
    shown = format_full if depth.current_depth() == depth.EXACT else whole_percent
    unlikely = _CHANCE if found.tokens > 1 else _CHANCE_AT_ONE
    saying = _MARKED if found.z >= THRESHOLD else unlikely
    return saying.say(
        count=f"{found.tokens:,}",
        mean=SentenceNumber(shown(found.mean)),
        expected=shown(found.expected),
        weighted=format_full(found.weighted),
        z=SentenceNumber(decimal(found.z, 2)),
        p=f"{found.p:.2g}".replace("-", "−"),
    )
