"""What a stage of the funnel left over, in a sentence or two: its tip, at the depth and in the language of now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.explain.number_formats import share
from core.explain.sentence import Saying, Sentence, capitalize
from core.explain.stages import stage_name
from core.processors.wording import stage_label
from resources import depth
from resources.language import mark

if TYPE_CHECKING:
    from core.events import Stage

_BEGIN = Saying(
    mark("Here the model has given each of its {left} words and word pieces a chance."),
    mark("The model's own distribution over {left} tokens."),
    mark("Raw p of {left} tokens: softmax of the model's own logits."),
)
_SHIFT = Saying(
    mark("{stage} changes the chances and takes nothing away."),
    mark("{stage}: changes the probabilities and cuts no token."),
    mark("{stage}: logits changed, 0 of {before} tokens cut; those left hold {raw} of raw p."),
)
_CUT = Saying(
    mark("{stage} takes away {cut} of {before}. What is left, {left}, held {mass} of the chances before that."),
    mark("{stage}: cuts {cut} of {before} tokens. The {left} left hold {mass} of what came in, {raw} of the model's "
         "own distribution."),
    mark("{stage}: {cut} of {before} tokens cut, {left} left; they hold {mass} of the p that entered, {raw} of raw p."),
)  # fmt: skip


def explain_cut(stage: Stage, before: Stage | None) -> Sentence:
    """How many tokens the stage cut of those that the one before had left, and what share the others hold; None: it is
    the first, the model's own distribution."""
    if before is None:
        return _BEGIN.words(left=f"{stage.survivors:,}")
    cut = before.survivors - stage.survivors
    sentence = (_CUT if cut > 0 else _SHIFT).words(
        stage=stage_label(stage) if depth.current_depth() == depth.USUAL else stage_name(stage),
        cut=f"{cut:,}",
        before=f"{before.survivors:,}",
        left=f"{stage.survivors:,}",
        mass=share(stage.mass),
        raw=share(stage.raw_mass),
    )
    return capitalize(sentence) if depth.current_depth() == depth.PLAIN else sentence  # a setting's own name is small
