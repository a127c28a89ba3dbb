"""Assisted decoding: a small model drafts, the large one checks many tokens in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.strategies.base import Strategy
from core.strategies.speculative import (
    DRAFT_TOKENS,
    FLAGS,
    LENGTH,
    SAMPLE,
    SCHEDULE,
    SETTINGS,
    THRESHOLD,
    VERIFIER,
    needs_draft,
    refusal,
)

if TYPE_CHECKING:
    from core.decoding.run import DecodingRun
    from core.events import Event


def decode(run: DecodingRun) -> Iterator[Event]:
    """A chain of drafted tokens each round, verified in one pass of the target."""
    from core.decoding.speculation.build import decode_assisted  # torch is loaded only when something runs

    yield from decode_assisted(run)


STRATEGY = Strategy(
    name="assisted",
    title="Assisted decoding",
    summary="A small draft model runs ahead and the model checks its words in one go. The same text, sooner.",
    parameters=(LENGTH, SAMPLE, SCHEDULE, DRAFT_TOKENS, THRESHOLD, VERIFIER, *SETTINGS),
    decode=decode,
    flags=FLAGS,
    paper="Leviathan et al. 2023, Fast Inference from Transformers via Speculative Decoding",
    aliases=("assisted_generation", "speculative"),
    order=60,
    refuse=refusal(needs_draft),
)
