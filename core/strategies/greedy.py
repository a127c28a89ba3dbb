"""Greedy decoding: the most likely token at every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.core.common.claim import GREEDY_CELL, SAMPLING_CELL, Claim
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


CLAIMS = (
    Claim(
        name="greedy-repeats",
        title=mark("Greedy decoding repeats itself"),
        plain=mark("Always taking the likeliest word makes a text repeat itself more than drawing words at random."),
        exact=mark("The share of repeated 4-grams is higher with greedy decoding than with "
            "sampling from the model’s own distribution."),
        source="Holtzman, Buys, Du, Forbes, Choi 2020, The Curious Case of Neural Text Degeneration",
        address="https://arxiv.org/abs/1904.09751",
        baseline=SAMPLING_CELL,
        tested=GREEDY_CELL,
        measure="repetition", expects="higher", margin=0.05, max_new_tokens=160, seeds=2,
    ),
)  # fmt: skip

STRATEGY = Strategy(
    name="greedy",
    title=mark("Greedy"),
    summary=mark("Always takes the most likely token. Predictable, but easily caught in a loop."),
    parameters=(NEW_TOKENS, *PENALTIES, *EVERYWHERE),
    decode=decode,
    flags={"do_sample": False, "num_beams": 1, "penalty_alpha": None, "dola_layers": None},
    claims=CLAIMS,
    aliases=("greedy_search",),
    order=10,
    is_starting_point=True,
    is_compared_by_default=True,
    selects=lambda flags: flags.plain and not flags.samples,
)
