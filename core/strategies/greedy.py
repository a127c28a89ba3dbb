"""Greedy decoding: the most likely token at every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.core.strategies.base import Strategy
from decodescope.core.strategies.parameters import EVERYWHERE, NEW_TOKENS, PENALTIES
from decodescope.resources.language import mark

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.events import Event


def decode(run: DecodingRun) -> Iterator[Event]:
    """Choose the argmax of the processed logits at every step."""
    from decodescope.core.decoding.token_loop import (  # torch is loaded only when something runs
        GreedyPicker,
        decode_single,
    )

    yield from decode_single(run, GreedyPicker())


STRATEGY = Strategy(
    name="greedy",
    title=mark("Greedy"),
    summary=mark("Always takes the most likely token. Predictable, but easily caught in a loop."),
    parameters=(NEW_TOKENS, *PENALTIES, *EVERYWHERE),
    decode=decode,
    flags={"do_sample": False, "num_beams": 1, "penalty_alpha": None, "dola_layers": None},
    aliases=("greedy_search",),
    order=10,
    is_starting_point=True,
    is_compared_by_default=True,
    selects=lambda flags: flags.plain and not flags.samples,
)
