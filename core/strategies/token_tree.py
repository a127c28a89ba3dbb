"""Token trees (SpecInfer): several continuations drafted at once, all checked in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from core.strategies.base import Parameter, Strategy
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
    from core.model import LoadedModel

WIDTHS = Parameter(
    "widths", "Widths", "text", None,
    "Children of every node at depth 1, 2, …, as in “1 1 3 1 1”. Unset, the widths follow from the drafter's doubts.",
    option=True,
)  # fmt: skip
CHILDREN = Parameter(
    "children", "Children", "choice", "auto",
    "likeliest takes the drafter's best tokens, drawn rolls its dice; auto takes what the verifier allows.",
    choices=("auto", "likeliest", "drawn"), option=True, advanced=True,
)  # fmt: skip


def decode(run: DecodingRun) -> Iterator[Event]:
    """A tree each round, from one drafter or merged from several, verified in one pass with a mask by topology."""
    from core.decoding.speculation.build import decode_tree  # torch is loaded only when something runs

    yield from decode_tree(run)


def takes_trees(model: LoadedModel, request: Any) -> str | None:
    """Nodes of one depth need one position."""
    if model.is_encoder_decoder:
        return (
            f"{model.name} places tokens by their order in its decoder, so two branches cannot stand at one place. "
            "Assisted decoding with chains works."
        )
    return None


STRATEGY = Strategy(
    name="token_tree",
    title="Token tree",
    summary="Drafts several continuations as a tree and checks all of them in one go. Misses less than a chain.",
    parameters=(LENGTH, SAMPLE, WIDTHS, SCHEDULE, DRAFT_TOKENS, THRESHOLD, VERIFIER, CHILDREN, *SETTINGS),
    decode=decode,
    flags=FLAGS,
    paper="Miao et al. 2024, SpecInfer: Accelerating LLM Serving with Tree-based Speculative Inference",
    aliases=("specinfer", "tree"),
    order=66,
    refuse=refusal(takes_trees, needs_draft),
)
