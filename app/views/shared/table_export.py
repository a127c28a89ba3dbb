"""Tables for export of what views show: a header row first, values at full precision. No Qt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope.app.state.beam_tree import BeamTree
from decodescope.app.state.cache_history import CacheHistory
from decodescope.app.views.base import Table
from decodescope.app.views.text.token_wording import surprise_bits

if TYPE_CHECKING:
    from decodescope.app.state.sample_tree import SampleTree
    from decodescope.core.events import DraftRound, TokenChosen


def _nan_to_none(row: Sequence[object]) -> tuple[object, ...]:
    """Replace NaN, which marks figures that a remote engine does not report, by None."""
    return tuple(None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row)


def token_table(tokens: Sequence[TokenChosen], before: int = 0) -> Table:
    """Return one row per token of a text. `before`: number of tokens that a branch inherited."""
    head = ("token", "id", "text", "rank", "probability_by_the_model", "probability_after_the_settings",
            "surprise_bits", "entropy_bits", "seconds", "written_by")  # fmt: skip
    nat = math.log(2)
    return [
        head,
        *(
            _nan_to_none(
                (
                    before + token.step + 1,
                    token.id,
                    token.piece,
                    token.rank or None,
                    token.raw_probability,
                    token.probability,
                    -token.raw_log_probability / nat,
                    token.entropy / nat,
                    token.seconds,
                    token.origin,
                )
            )
            for token in tokens
        ),
    ]


def timeline_table(tokens: Sequence[TokenChosen], before: int = 0) -> Table:
    """Return one row per position of the timeline. For a beam search, use the best continuation of each step."""
    head = ("place", "text", "surprise_bits", "probability_by_the_model")
    return [
        head,
        *(
            _nan_to_none((position, token.piece, surprise_bits(token.raw_log_probability), token.raw_probability))
            for position, token in enumerate(tokens, before + 1)
        ),
    ]


def alternative_table(token: TokenChosen) -> Table:
    """Return one row per alternative of a step. `likeness` and `score` are filled in contrastive search only."""
    head = ("rank", "id", "text", "probability_by_the_model", "probability_after_the_settings",
            "log_probability_by_the_model", "log_probability_after_the_settings", "chosen", "likeness",
            "score")  # fmt: skip
    return [head, *(_nan_to_none((item.rank or None, item.id, item.text, item.raw_probability, item.probability,
                           item.raw_log_probability, item.log_probability, item.id == token.id,
                           item.degeneration_penalty, item.score))
                    for item in token.alternatives)]  # fmt: skip


def candidate_table(tree: BeamTree) -> Table:
    """Return one row per continuation that a beam search considered; parent 0 is the prompt."""
    head = ("step", "node", "parent", "id", "text", "probability", "log_probability", "score", "fate")
    return [head, *((number, c.node, c.parent, c.id, c.piece, c.probability, c.log_probability, c.score, c.fate)
                    for number, step in enumerate(tree.steps, 1) for c in step.candidates)]  # fmt: skip


def sample_tree_table(tree: SampleTree) -> Table:
    """Return one row per node of the tree of samples; parent 0 is the end of the prompt."""
    head = ("token", "node", "parent", "id", "text", "texts", "share", "probability_by_the_model",
            "probability_after_the_settings", "rank")  # fmt: skip
    return [head, *((n.depth, n.id, n.parent, n.token, n.piece, n.count, tree.fraction(n.id), n.probability,
                     n.sampling_probability, n.rank) for n in tree.nodes)]  # fmt: skip


def draft_round_table(rounds: Sequence[DraftRound]) -> Table:
    """Return one row per speculation round."""
    head = ("round", "tokens_before", "draft_length", "drafted", "accepted", "extra", "draft_seconds",
            "verify_seconds", "overhead_seconds")  # fmt: skip
    return [head, *((number, r.step, r.length, len(r.nodes), len(r.accepted), r.extra_kind, r.draft_seconds,
                     r.verify_seconds, r.overhead_seconds) for number, r in enumerate(rounds, 1))]  # fmt: skip


def cache_table(history: CacheHistory) -> Table:
    """Return one row per measurement of a run's cache: bytes, by part and by layer."""
    parts = history.parts
    head = ["tokens_written", "tokens_read", "bytes", "peak", *(f"{place}_{part}" for place, part in parts)]
    layers = max((len(point.layers) for point in history.points), default=0)
    lines: list[list[object]] = [[*head, *(f"layer_{n + 1}" for n in range(layers))]]
    for point in (point for point in history.points if point.measured):
        sizes = dict(point.parts)
        missing = [None] * (
            layers - len(point.layers)
        )  # the run may have continued with another cache that has fewer layers
        lines.append([point.x, point.tokens, point.bytes, point.peak, *(sizes.get(p, 0) for p in parts),
                      *point.layers, *missing])  # fmt: skip
    return lines
