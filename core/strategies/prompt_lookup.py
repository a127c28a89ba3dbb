"""Prompt lookup: the text itself is the draft."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.strategies.base import Parameter, Strategy
from core.strategies.speculative import FLAGS, LENGTH, SAMPLE, SCHEDULE, SETTINGS, VERIFIER, refusal

if TYPE_CHECKING:
    from core.decoding.run import DecodingRun
    from core.events import Event

TOKENS = Parameter(
    "prompt_lookup_num_tokens", "Copied tokens", "int", 10,
    "The most tokens to copy from an earlier place in a round.",
    minimum=1, maximum=256, soft_maximum=20, step=1,
)  # fmt: skip
NGRAM = Parameter(
    "max_matching_ngram_size", "Longest match", "int", 3,
    "How many of the latest tokens are looked up at most; shorter matches are tried when there is none.",
    minimum=1, maximum=64, soft_maximum=8, step=1,
)  # fmt: skip


def decode(run: DecodingRun) -> Iterator[Event]:
    """What followed the same few tokens earlier, verified in one pass."""
    from core.decoding.speculation.build import decode_lookup  # torch is loaded only when something runs

    yield from decode_lookup(run)


STRATEGY = Strategy(
    name="prompt_lookup",
    title="Prompt lookup",
    summary="Copies what followed the same words before and checks it in one go. Needs no second model.",
    parameters=(LENGTH, SAMPLE, TOKENS, NGRAM, SCHEDULE, VERIFIER, *SETTINGS),
    decode=decode,
    flags=FLAGS,
    defaults={"prompt_lookup_num_tokens": 10, "max_matching_ngram_size": 3},
    paper="Saxena 2023, Prompt Lookup Decoding",
    aliases=("prompt_lookup_decoding",),
    order=62,
    refuse=refusal(),
)
