"""DoLa: contrast the last layer with an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.core.common.claim import GREEDY_CELL, Claim, ClaimCell
from decodescope.core.common.hf_generation import removed_from_transformers
from decodescope.core.parameter import RANDOMNESS, Parameter
from decodescope.core.strategies.base import CONTRAST, Strategy
from decodescope.core.strategies.parameters import (
    EVERYWHERE,
    NEW_TOKENS,
    PENALTIES,
    SAMPLING,
    SAMPLING_ADVANCED,
)
from decodescope.resources.language import mark, tr, trn

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.decoding.step_replayer import StepReplayer
    from decodescope.core.events import Event
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request

LAYERS = Parameter(
    "dola_layers", mark("Premature layers"), "choice", "low",
    mark("Which layers may be contrasted with the last one: the lower half, the upper half, or a list."),
    choices=("low", "high"), form="ids",
)  # fmt: skip
SAMPLE = Parameter(
    "do_sample",
    mark("Sample"),
    "bool",
    False,
    mark("Sample from the contrasted distribution instead of taking its best token."),
    group=RANDOMNESS,
)


def decode(run: DecodingRun) -> Iterator[Event]:
    """Contrast the final distribution with the candidate layer that differs most from it."""
    from decodescope.core.decoding.dola import decode_dola  # torch is loaded only when something runs

    yield from decode_dola(run)


def make_replayer(run: DecodingRun) -> StepReplayer:
    """Return the replayer, which applies the contrast before the pipeline."""
    from decodescope.core.decoding.dola import DolaReplay  # torch is loaded only when something runs

    return DolaReplay(run)


def rejection_reason(model: LoadedModel, request: Request | None) -> str | None:
    """Return why DoLa is not supported: it needs hidden states of every layer of a decoder-only model that the output
    head can read.
    """
    if model.is_encoder_decoder:
        return tr("{model} is an encoder–decoder; DoLa is defined for decoder-only models.").format(model=model.name)
    if model.is_recurrent:
        return tr("{model} is a recurrent model; DoLa contrasts the layers of a transformer.").format(model=model.name)
    if model.layers < 4:
        return trn(
            "{model} has {layers} layer; DoLa needs at least 4, so that there are earlier layers to contrast with.",
            "{model} has {layers} layers; DoLa needs at least 4, so that there are earlier layers to contrast with.",
            model.layers,
        ).format(model=model.name, layers=model.layers)
    return None


CLAIMS = (
    Claim(
        name="layers-answer-better",
        title=mark("Contrasting layers favors facts"),
        plain=mark("Subtracting what the lower layers predict makes the model answer "
            "questions of fact right more often."),
        exact=mark("The share of right answers is higher with DoLa (low layers) than with greedy decoding."),
        source="Chuang, Xie, Luo, Kim, Glass, He 2023, DoLa: Decoding by Contrasting Layers Improves Factuality",
        address="https://arxiv.org/abs/2309.03883",
        baseline=GREEDY_CELL,
        tested=ClaimCell("DoLa", {"dola_layers": "low"}, "dola"),
        measure="right_answer", expects="higher", margin=0.05,
        max_new_tokens=12, prompts="facts", baseline_at_least=0.1,
    ),
)  # fmt: skip

STRATEGY = Strategy(
    name="dola",
    title=mark("DoLa"),
    summary=mark("Subtracts an early layer's predictions from those of the last layer, to favour facts."),
    parameters=(
        NEW_TOKENS, LAYERS, SAMPLE, *PENALTIES, *SAMPLING, *SAMPLING_ADVANCED,
        *EVERYWHERE,
    ),
    decode=decode,
    make_replayer=make_replayer,
    replayable_settings=(LAYERS.name,),
    flags={"num_beams": 1, "penalty_alpha": None},
    defaults={"dola_layers": "low"},
    claims=CLAIMS,
    paper="Chuang et al. 2023, DoLa: Decoding by Contrasting Layers Improves Factuality",
    aliases=("dola_generation",),
    order=40,
    group=CONTRAST,
    selects=lambda flags: (
        flags.single and flags.layers and not (flags.drafters or flags.lookup or flags.early_exit or flags.heads)
    ),
    rejection_reason=rejection_reason,
    generate_equivalent=lambda request: removed_from_transformers("DoLa"),
)  # fmt: skip
