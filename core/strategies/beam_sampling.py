"""Beam sampling: beams with sampled continuations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.core.strategies.base import Strategy, beam_rows
from decodescope.core.strategies.beam_search import rejection_reason
from decodescope.core.strategies.parameters import (
    BEAM_SETTINGS,
    EVERYWHERE,
    NEW_TOKENS,
    PENALTIES,
    SAMPLING,
    SAMPLING_ADVANCED,
)
from decodescope.resources.language import mark

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.events import Event


def decode(run: DecodingRun) -> Iterator[Event]:
    """Sample continuations without replacement from softmax of the accumulated, processed scores of all beams."""
    from decodescope.core.decoding.beams.beam_search import (  # torch is loaded only when something runs
        BeamPlan,
        decode_beams,
    )
    from decodescope.core.decoding.beams.candidates import SamplingSelector

    yield from decode_beams(run, BeamPlan(selector=SamplingSelector(run.generator)))


STRATEGY = Strategy(
    name="beam_sampling",
    title=mark("Beam sampling"),
    summary=mark("Beam search with randomness: likely texts, but different ones every time."),
    parameters=(NEW_TOKENS, *BEAM_SETTINGS, *SAMPLING, *PENALTIES, *SAMPLING_ADVANCED, *EVERYWHERE),
    decode=decode,
    flags={
        "do_sample": True, "num_beam_groups": 1, "penalty_alpha": None, "dola_layers": None, "force_words_ids": None,
        "constraints": None,
    },
    defaults={"num_beams": 4},
    paper="Kool, van Hoof and Welling 2019, Stochastic Beams and Where to Find Them (sampling without replacement)",
    aliases=("beam_sample",),
    order=60,
    selects=lambda flags: flags.searches and not flags.groups and flags.samples,
    needs=frozenset({"reorder"}),
    rows=beam_rows,
    rejection_reason=rejection_reason,
)  # fmt: skip
