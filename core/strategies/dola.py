"""DoLa: what the last layer knows and an earlier one did not yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.common.hf_generation import removed_from_transformers
from core.parameter import Parameter
from core.strategies.base import Strategy
from core.strategies.parameters import (
    EVERYWHERE,
    NEW_TOKENS,
    PENALTIES,
    SAMPLING,
    SAMPLING_ADVANCED,
)
from resources.language import mark, tr

if TYPE_CHECKING:
    from core.decoding.run import DecodingRun
    from core.decoding.step_replayer import StepReplayer
    from core.events import Event
    from core.models.loaded_model import LoadedModel
    from core.request import Request

LAYERS = Parameter(
    "dola_layers", mark("Premature layers"), "choice", "low",
    mark("Which layers are candidates to be contrasted with the last: the lower half, the upper half, or a list."),
    choices=("low", "high"), form="ids",
)  # fmt: skip
SAMPLE = Parameter(
    "do_sample", mark("Sample"), "bool", False, mark("Draw from the contrasted distribution instead of its best.")
)


def decode(run: DecodingRun) -> Iterator[Event]:
    """Contrast the final distribution with the candidate layer that differs most from it."""
    from core.decoding.dola import decode_dola  # torch is loaded only when something runs

    yield from decode_dola(run)


def again(run: DecodingRun) -> StepReplayer:
    """With the contrast in front of the funnel."""
    from core.decoding.dola import DolaReplay  # torch is loaded only when something runs

    return DolaReplay(run)


def refuse(model: LoadedModel, request: Request | None) -> str | None:
    """Needs the hidden state of every layer of a decoder-only stack, readable by the output head."""
    if model.is_encoder_decoder:
        return tr("{model} is an encoder–decoder; DoLa is defined for decoder-only models.").format(model=model.name)
    if model.is_recurrent:
        return tr("{model} is a recurrent model; DoLa contrasts the layers of a transformer.").format(model=model.name)
    if model.layers < 4:
        return tr("{model} has {layers} layers; DoLa needs at least 4 to have earlier ones to contrast with.").format(
            model=model.name, layers=model.layers
        )
    return None


STRATEGY = Strategy(
    name="dola",
    title=mark("DoLa"),
    summary=mark("Subtracts what an early layer already believed from what the last layer knows, to favour facts."),
    parameters=(
        NEW_TOKENS, LAYERS, SAMPLE, *PENALTIES, *SAMPLING, *SAMPLING_ADVANCED,
        *EVERYWHERE,
    ),
    decode=decode,
    again=again,
    judging=(LAYERS.name,),
    flags={"num_beams": 1, "penalty_alpha": None},
    defaults={"dola_layers": "low"},
    paper="Chuang et al. 2023, DoLa: Decoding by Contrasting Layers Improves Factuality",
    aliases=("dola_generation",),
    order=40,
    selects=lambda flags: (
        flags.single and flags.layers and not (flags.drafters or flags.lookup or flags.early_exit or flags.heads)
    ),
    refuse=refuse,
    counterpart=lambda request: removed_from_transformers("DoLa"),
)  # fmt: skip
