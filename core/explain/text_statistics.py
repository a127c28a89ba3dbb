"""What a grammar did over a whole run, in figures and in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from core.explain.sentence import Saying, Sentence, SentenceNumber
from core.explain.words import decimal, format_full, share, whole_percent
from resources import depth
from resources.language import mark

if TYPE_CHECKING:
    from core.events import BeamStep, TokenChosen, WatermarkSign

STAGE = "grammar"
_NEVER = Saying(
    mark("The grammar never forbade what the model wanted most; it took away {removed} of the chances on average."),
    mark("The grammar never forbade the model's first choice; it removed {removed} of the probability on average."),
    mark("Stage grammar: raw rank 1 forbidden at 0 of {steps} steps; mean mass removed {removed}."),
)
_ACTED = Saying(
    mark("At {acted} of {steps} places ({rate}) the grammar forbade what the model wanted most; it took away {removed} "
         "of the chances on average."),
    mark("The grammar forbade the model's first choice at {acted} of {steps} steps ({rate}), and removed {removed} of "
         "the probability on average."),
    mark("Stage grammar: raw rank 1 forbidden at {acted} of {steps} steps ({rate}); mean mass removed {removed}."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GrammarFigures:
    """What a grammar did to the tokens of a text."""

    steps: int
    overruled: int
    """Steps at which it forbade the model's first choice."""
    removed: float
    """Mean share of the distribution entering the stage that it took out; behind beams, of the model's own."""


def grammar_figures(tokens: Iterable[TokenChosen]) -> GrammarFigures | None:
    """Of a run's tokens with their funnels; None where no token passed a grammar (or nothing was traced)."""
    removed: list[float] = []
    overruled = 0
    for token in tokens:
        for before, stage in pairwise(token.funnel):
            if stage.name == STAGE:
                removed.append(1 - stage.mass)
                first = token.funnel[0].top[0][0]
                # A ban lets what it keeps move up only: what stood before it and not behind is forbidden.
                overruled += first in dict(before.top) and first not in dict(stage.top)
    return GrammarFigures(len(removed), overruled, sum(removed) / len(removed)) if removed else None


def beam_grammar_figures(steps: Sequence[BeamStep], node: int) -> GrammarFigures | None:
    """The same of the text that ends in a node of a beam search: what was forbidden behind each beam on its way."""
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
    """The figures as a sentence, at the depth and in the language of now; empty without a grammar."""
    if found is None:
        return Sentence()
    facts = {"steps": f"{found.steps:,}", "removed": share(found.removed)}
    if not found.overruled:
        return _NEVER.say(**facts)
    return _ACTED.say(**facts, acted=f"{found.overruled:,}", rate=share(found.overruled / found.steps))


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
