"""Compute step statistics from tensors, for all sequences of the batch at once."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from core.decoding.processor_pipeline import StageHeading
from core.decoding.step_details import FIXED_COLUMNS, LazyStepDetails, StepDetails, row_length
from core.events.tokens import StepDetailSource
from core.models.text import TokenSpellings
from core.native.native_library import library

if TYPE_CHECKING:
    import torch

    from core.processors.base import StageObserver

_FLOAT32_BYTES = 4
"""Bytes per float32."""


def has_native_stats(scores: Sequence[torch.Tensor]) -> bool:
    """Return whether the native library supports these scores."""
    return library() is not None and all(
        stage.dtype is torch.float32 and stage.device.type == "cpu" for stage in scores
    )


def compute_native_stats(scores: Sequence[torch.Tensor], chosen: torch.Tensor, top_n: int) -> list[array[float]] | None:
    """Compute a row of statistics per text (see `row_length`).

    `scores`: [B, V], raw and after every stage; `chosen`: [B]. Return None where the library is not built or the scores
    are not float32 on the CPU.
    """
    found = library()
    if found is None or not has_native_stats(scores):
        return None
    rows, vocabulary = scores[0].shape
    if top_n > vocabulary:
        return None
    contiguous = [stage.contiguous() for stage in scores]
    width, picked = row_length(len(scores) - 1, top_n), chosen.to(torch.int64).contiguous()
    read = array("f", bytes(_FLOAT32_BYTES * rows * width))
    place, _ = read.buffer_info()
    addresses = [stage.data_ptr() for stage in contiguous]
    # One thread: on a busy machine, waiting for another one takes longer than the work.
    found.compute_stats(addresses, rows, vocabulary, picked.data_ptr(), top_n, place, 1)
    return [read] if rows == 1 else [read[row * width : (row + 1) * width] for row in range(rows)]


_NO_DETAILS = StepDetails()


class StepStats(NamedTuple):
    """Statistics of one sequence at one step: natural log-probabilities, entropy in nats, rank from 1. A tuple, because
    one is created per token.
    """

    token: int
    raw_log_probability: float
    log_probability: float
    rank: int
    entropy: float
    final_rank: int | None = None
    """Rank after processing; None without processing."""
    varentropy: float = 0.0
    """Variance of the surprisal in nats²."""
    details: StepDetailSource = _NO_DETAILS
    """Source of alternatives and stages."""


def compute_step_stats(
    scores: Sequence[torch.Tensor],
    chosen: torch.Tensor,
    top_n: int,
    names: Sequence[StageHeading],
    pieces: TokenSpellings,
) -> list[StepStats]:
    """Compute the statistics of a step.

    `scores`: the raw logits and the scores after every stage, each [B, V]; `names`: the stages' headings; `chosen`:
    token ids [B]. All values are transferred to the host at once. With `top_n` 0 only the chosen token is read.
    """
    top_n = min(top_n, scores[0].shape[-1])
    rows = compute_native_stats(scores, chosen, top_n) or _compute_with_torch(scores, chosen, top_n)
    return [_to_step_stats(row, top_n, names, pieces, scores[0][number]) for number, row in enumerate(rows)]


def compute_steps_stats(
    steps: Sequence[Sequence[torch.Tensor]],
    chosen: Sequence[torch.Tensor],
    top_n: int,
    names: Sequence[StageHeading],
    pieces: TokenSpellings,
) -> list[StepStats]:
    """Compute the statistics of consecutive steps of the same texts; `steps` and `chosen` as in `compute_step_stats`
    for each. torch processes all of them in one batch.
    """
    if len(steps) > 1 and not has_native_stats(steps[0]):
        scores = [torch.cat(parts) for parts in zip(*steps, strict=True)]
        return compute_step_stats(scores, torch.cat(list(chosen)), top_n, names, pieces)
    return [
        reading
        for scores, tokens in zip(steps, chosen, strict=True)
        for reading in compute_step_stats(scores, tokens, top_n, names, pieces)
    ]


def _compute_with_torch(scores: Sequence[torch.Tensor], chosen: torch.Tensor, top_n: int) -> list[array[float]]:
    """Return a row of values per text (see `row_length`)."""
    raw = torch.log_softmax(scores[0], -1)
    final = torch.log_softmax(scores[-1], -1) if len(scores) > 1 else raw
    probabilities = raw.exp()
    columns = _fixed_columns(raw, final, probabilities, chosen)
    if top_n:
        top = raw.topk(top_n, dim=1)
        columns += [top.indices.to(raw.dtype), top.values]
        if len(scores) > 1:
            stages = _stage_columns(scores, probabilities, top_n)
            last = stages[:, -2 * top_n : -top_n].long()
            columns += [final.gather(1, top.indices), stages, raw.gather(1, last)]
    # Ids are exact in float32 up to 16,777,216, more than any vocabulary.
    rows = [array("d", row) for row in torch.cat(columns, dim=1).tolist()]
    if top_n and len(scores) > 1:
        for row, own in zip(rows, raw, strict=True):
            row.extend(_count_more_likely(own, row, top_n))
    return rows


def _count_more_likely(raw: torch.Tensor, row: array[float], top_n: int) -> Iterator[float]:
    """Yield, for each of the last stage's most likely tokens, how many of the raw log-probabilities [V] are greater; -1
    for those among the model's most likely tokens, which are nearly all.
    """
    known = set(row[FIXED_COLUMNS : FIXED_COLUMNS + top_n])
    for token, value in zip(row[-3 * top_n : -2 * top_n], row[-top_n:], strict=True):
        yield -1.0 if token in known else float((raw > value).sum())


def _fixed_columns(
    raw: torch.Tensor, final: torch.Tensor, probabilities: torch.Tensor, chosen: torch.Tensor
) -> list[torch.Tensor]:
    """Return seven columns [B, 1], in the order of `FIXED_COLUMNS`."""
    index = chosen[:, None]
    picked = raw.gather(1, index)
    above = (raw > picked).sum(1, keepdim=True)
    entropy = torch.linalg.vecdot(probabilities, raw)[:, None]  # negative; NaN where a logit is -inf (handled later)
    varentropy = torch.linalg.vecdot(probabilities, (raw - entropy).square_())[:, None]
    # One dtype throughout: concatenating several dtypes takes five times as long.
    ahead, token = above.to(raw.dtype), index.to(raw.dtype)
    if final is raw:
        return [picked, picked, ahead, ahead, entropy, varentropy, token]
    chosen_scores = final.gather(1, index)
    return [
        picked,
        chosen_scores,
        ahead,
        (final > chosen_scores).sum(1, keepdim=True).to(raw.dtype),
        entropy,
        varentropy,
        token,
    ]


def _stage_columns(scores: Sequence[torch.Tensor], probabilities: torch.Tensor, top_n: int) -> torch.Tensor:
    """Return [B, S · (3 + 2n)]: for every stage survivors, mass, raw mass, top ids, top probabilities."""
    stages = torch.stack(list(scores[1:]))  # all stages in each operation: many small operations would cost more
    shares = torch.softmax(stages, -1)
    alive = torch.isneginf(stages).logical_not_().to(shares.dtype)  # a comparison would take twice as long
    raw_mass = mass = torch.linalg.vecdot(alive, probabilities)
    if len(stages) > 1:
        mass = torch.linalg.vecdot(alive, torch.cat([probabilities[None], shares[:-1]]))
    top = shares.topk(top_n, dim=-1)
    sums = torch.stack([alive.sum(-1), mass, raw_mass], dim=-1)
    return torch.cat([sums, top.indices.to(sums.dtype), top.values], dim=-1).transpose(0, 1).flatten(1)


def _to_step_stats(
    row: array[float], top_n: int, names: Sequence[StageHeading], pieces: TokenSpellings, logits: torch.Tensor
) -> StepStats:
    raw, final, above, ahead, entropy, varentropy, token = row[:FIXED_COLUMNS]
    rank, entropy, survivors = int(above) + 1, max(-entropy, 0.0), len(logits)
    if math.isnan(entropy):
        entropy, varentropy, survivors = _stats_with_banned(logits)
    look = LazyStepDetails(row, top_n, names, pieces, survivors) if top_n else _NO_DETAILS
    return StepStats(int(token), raw, final, rank, entropy, int(ahead) + 1 if names else None, varentropy, look)


def _stats_with_banned(logits: torch.Tensor) -> tuple[float, float, int]:
    """Return entropy in nats, varentropy and survivors of raw logits [V] with some -inf: p ln p is 0 at p = 0."""
    shares = torch.softmax(logits, -1)
    entropy = torch.special.entr(shares).sum()
    spread = shares * (shares.log() + entropy).square()
    return float(entropy), float(spread[shares > 0].sum()), int((logits > -math.inf).sum())


def add_stage_details(
    stats: StepStats, scores: Sequence[torch.Tensor], row: int, observers: Sequence[StageObserver | None]
) -> StepStats:
    """Return the statistics with the details of the last stages; modifies `stats`, which must not be shared yet.

    `scores`: before the first stage and after each, [B, V]; `row`: index of the sequence; `observers`: one observer for
    each of the last stages.
    """
    look = stats.details
    if not isinstance(look, LazyStepDetails):
        return stats
    if any(observers):
        look.detail_factories = tuple(
            (place, witness(row, scores[place - 1][row], scores[place][row], stats.token))
            for place, witness in enumerate(observers, len(scores) - len(observers))
            if witness is not None
        )
    return stats
