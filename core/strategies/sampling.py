"""Multinomial sampling: a weighted die over the processed distribution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.strategies.base import Strategy
from core.strategies.parameters import (
    EVERYWHERE,
    NEW_TOKENS,
    PENALTIES,
    SAMPLING,
    SAMPLING_ADVANCED,
    SEQUENCES,
)

if TYPE_CHECKING:
    from core.decoding.run import DecodingRun
    from core.events import Event


def decode(run: DecodingRun) -> Iterator[Event]:
    """One draw from the processed distribution at every step, for all sequences as one batch."""
    from core.decoding.single import Multinomial, decode_single  # torch is loaded only when something runs

    yield from decode_single(run, Multinomial())


STRATEGY = Strategy(
    name="sampling",
    title="Sampling",
    summary="Rolls a die weighted by the probabilities, so every run can tell another story.",
    parameters=(NEW_TOKENS, *SAMPLING, *PENALTIES, SEQUENCES, *SAMPLING_ADVANCED, *EVERYWHERE),
    decode=decode,
    flags={"do_sample": True, "num_beams": 1, "penalty_alpha": None, "dola_layers": None},
    paper="Holtzman et al. 2020, The Curious Case of Neural Text Degeneration",
    aliases=("sample", "multinomial"),
    order=20,
    selects=lambda flags: flags.plain and flags.samples,
)
