"""Beam sampling: beams with sampled continuations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.strategies.base import Strategy, beam_rows
from core.strategies.beam_search import rejection_reason
from core.strategies.parameters import (
    BEAM_SETTINGS,
    EVERYWHERE,
    NEW_TOKENS,
    PENALTIES,
    SAMPLING,
    SAMPLING_ADVANCED,
)
from resources.language import mark

if TYPE_CHECKING:
    from core.decoding.run import DecodingRun
    from core.events import Event


def decode(run: DecodingRun) -> Iterator[Event]:
    """Sample continuations without replacement from softmax of the accumulated, processed scores of all beams."""
    from core.decoding.beams.beam_search import BeamPlan, decode_beams  # torch is loaded only when something runs
    from core.decoding.beams.candidates import SamplingSelector

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
