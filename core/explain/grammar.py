"""What a grammar did over a whole run, in figures and in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from core.explain.number_formats import share
from core.explain.sentence import Saying, Sentence
from resources.language import mark

if TYPE_CHECKING:
    from core.events import BeamStep, TokenChosen

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
