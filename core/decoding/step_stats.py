"""Compute step statistics from tensors, for all sequences of the batch at once."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from decodescope.core.decoding.processor_pipeline import StageHeading
from decodescope.core.decoding.step_details import FIXED_COLUMNS, LazyStepDetails, StepDetails, row_length
from decodescope.core.decoding.tensor_utils import argmax
from decodescope.core.events.tokens import StepDetailSource
from decodescope.core.models.text import TokenSpellings
from decodescope.core.native.native_library import library
from decodescope.core.native.tensor_address import tensor_address
from decodescope.resources.language import tr

if TYPE_CHECKING:
    import torch

    from decodescope.core.processors.base import StageObserver

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
    tokens = picked.tolist()
    if min(tokens) < 0 or max(tokens) >= vocabulary:
        raise IndexError(tr("A chosen token is not in the vocabulary of {count:,} tokens.").format(count=vocabulary))
    count = rows * vocabulary
    addresses = [tensor_address(stage, torch.float32, count) for stage in contiguous]
    # One thread: on a busy machine, waiting for another one takes longer than the work.
    found.compute_stats(addresses, rows, vocabulary, tensor_address(picked, torch.int64, rows), top_n, place)
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


class DeviceStats(NamedTuple):
    """Statistics of a step computed on a GPU and transferred in one piece."""

    rows: list[array[float]]
    """A row of values per text (see `row_length`)."""
    maxima: list[float]
    """Greatest processed score of each text; NaN where one is NaN."""
    survivors: list[int]
    """Number of tokens that the model's own logits allow."""
    extra: list[float]
    """Further values that were transferred with them."""

    @property
    def tokens(self) -> list[int]:
        """The chosen token of each text."""
        return [int(row[FIXED_COLUMNS - 1]) for row in self.rows]

    def select(self, rows: Sequence[int]) -> DeviceStats:
        """Return the statistics of some of the rows."""
        return DeviceStats(
            [self.rows[row] for row in rows], [self.maxima[row] for row in rows],
            [self.survivors[row] for row in rows], self.extra,
        )  # fmt: skip

    def step_stats(self, names: Sequence[StageHeading], top_n: int, pieces: TokenSpellings) -> list[StepStats]:
        """Return the statistics of all texts."""
        return [
            _row_to_step_stats(row, top_n, names, pieces, survivors)
            for row, survivors in zip(self.rows, self.survivors, strict=True)
        ]


class TokenChoice(NamedTuple):
    """The tokens of a step, and what was transferred to the host with them."""

    tokens: torch.Tensor
    """Token ids [B] on the device."""
    stats: DeviceStats | None = None
    """Statistics of the step on a GPU. On the CPU they are computed later, for several steps at a time."""
    extra: Sequence[float] = ()
    """Further values."""

    @property
    def ids(self) -> list[int]:
        """The token ids on the host."""
        ids: list[int] = self.tokens.tolist() if self.stats is None else self.stats.tokens
        return ids


class PendingStats:
    """Statistics of a step that are on their way from a GPU, in one transfer.

    On CUDA it is asynchronous: the host can launch the next pass and wait afterwards, while the GPU computes.
    """

    def __init__(self, packed: torch.Tensor, extra: int, marked: int) -> None:
        """Start the transfer of `pack_stats`' result. `extra`: number of further values; `marked`: number of tokens
        of the last stage whose ranks are included, 0 for none.
        """
        self._extra, self._marked = extra, marked
        self._event: torch.cuda.Event | None = None
        self._values = packed
        if packed.device.type == "cuda":
            self._values = packed.to("cpu", non_blocking=True)  # pinned memory
            self._event = torch.cuda.Event()
            self._event.record(torch.cuda.current_stream(packed.device))

    def result(self) -> DeviceStats:
        """Wait for the transfer and return the statistics."""
        if self._event is not None:
            self._event.synchronize()
        values = self._values.tolist()
        width = len(values[0]) - self._extra
        rows = [array("d", row[2:width]) for row in values]
        if self._marked:
            for row in rows:
                _mark_known(row, self._marked)
        return DeviceStats(rows, [row[0] for row in values], [int(row[1]) for row in values], values[0][width:])


def pack_stats(
    scores: Sequence[torch.Tensor], chosen: torch.Tensor, top_n: int, extra: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the statistics of a step as one tensor [B, n] where its scores are, without waiting.

    `scores`: [B, V], raw and after every stage; `chosen`: [B]; `extra`: further values [m] to transfer.
    """
    top_n = min(top_n, scores[0].shape[-1])
    raw = torch.log_softmax(scores[0], -1)
    alive = scores[0] > -math.inf
    columns = [
        scores[-1].amax(-1, keepdim=True), alive.sum(-1, keepdim=True).to(raw.dtype),
        *_stat_columns(scores, chosen, top_n, raw, raw.clamp(min=_MIN_LOG_PROBABILITY)),
    ]  # fmt: skip
    if top_n and len(scores) > 1:
        columns.append(_count_more_likely_on_device(raw, columns[-1]))  # the last column: of the last stage's tokens
    if extra is not None:
        columns.append(extra.to(raw.dtype).expand(len(raw), -1))
    return torch.cat(columns, dim=1)


def start_device_stats(
    scores: Sequence[torch.Tensor], chosen: torch.Tensor, top_n: int, extra: torch.Tensor | None = None
) -> PendingStats:
    """Compute the statistics of a step where its scores are, and start their transfer; arguments as `pack_stats`."""
    marked = min(top_n, scores[0].shape[-1]) if len(scores) > 1 else 0
    return PendingStats(pack_stats(scores, chosen, top_n, extra), 0 if extra is None else len(extra), marked)


def compute_device_stats(
    scores: Sequence[torch.Tensor], chosen: torch.Tensor, top_n: int, extra: torch.Tensor | None = None
) -> DeviceStats:
    """Compute the statistics of a step where its scores are, with the only wait for the device; arguments as
    `pack_stats`.
    """
    return start_device_stats(scores, chosen, top_n, extra).result()


@dataclass(frozen=True, slots=True)
class GreedyEpilogue:
    """Chooses the best token and packs its statistics, as part of a CUDA graph."""

    top_n: int

    def __call__(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return tokens [B] and `pack_stats` of logits [B, 1, V]."""
        last = logits[:, -1]
        chosen = argmax(last)
        return chosen, pack_stats([last], chosen, self.top_n)


_MIN_LOG_PROBABILITY = -1e18
"""Stands for −∞ in sums: its product with a probability of 0, and that of its square, is 0 and not NaN."""
_MAX_COMPARED = 2**26
"""Maximum number of comparisons in one operation, each of which needs a byte."""


def _count_more_likely_on_device(raw: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return how many log-probabilities [B, V] are greater than each of the values [B, n], as floats [B, n]."""
    if raw.numel() * values.shape[1] <= _MAX_COMPARED:
        return (raw[:, None] > values[:, :, None]).sum(-1).to(raw.dtype)
    return torch.stack([(raw > column[:, None]).sum(-1) for column in values.unbind(1)], 1).to(raw.dtype)


def _mark_known(row: array[float], top_n: int) -> None:
    """Replace the last n values, numbers of more likely tokens, by -1 for the model's own most likely tokens."""
    known = set(row[FIXED_COLUMNS : FIXED_COLUMNS + top_n])
    tokens, counts = len(row) - 4 * top_n, len(row) - top_n
    for place in range(top_n):
        if row[tokens + place] in known:
            row[counts + place] = -1.0


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
    columns = _stat_columns(scores, chosen, top_n, raw, raw)
    counts_there = bool(top_n) and len(scores) > 1 and raw.device.type != "cpu"
    if counts_there:  # each count read on its own would be a transfer
        columns.append(_count_more_likely_on_device(raw, columns[-1]))
    # Ids are exact in float32 up to 16,777,216, more than any vocabulary.
    rows = [array("d", row) for row in torch.cat(columns, dim=1).tolist()]
    if counts_there:
        for row in rows:
            _mark_known(row, top_n)
    elif top_n and len(scores) > 1:
        for row, own in zip(rows, raw, strict=True):
            row.extend(_count_more_likely(own, row, top_n))
    return rows


def _stat_columns(
    scores: Sequence[torch.Tensor], chosen: torch.Tensor, top_n: int, raw: torch.Tensor, summands: torch.Tensor
) -> list[torch.Tensor]:
    """Return the columns of the rows without the last n values. `raw`: log-probabilities [B, V] of the model;
    `summands`: the same for sums, in which a device replaces −∞.
    """
    final = torch.log_softmax(scores[-1], -1) if len(scores) > 1 else raw
    probabilities = raw.exp()
    columns = _fixed_columns(raw, final, probabilities, chosen, summands)
    if top_n:
        top = raw.topk(top_n, dim=1)
        columns += [top.indices.to(raw.dtype), top.values]
        if len(scores) > 1:
            stages = _stage_columns(scores, probabilities, top_n)
            last = stages[:, -2 * top_n : -top_n].long()
            columns += [final.gather(1, top.indices), stages, raw.gather(1, last)]
    return columns


def _count_more_likely(raw: torch.Tensor, row: array[float], top_n: int) -> Iterator[float]:
    """Yield, for each of the last stage's most likely tokens, how many of the raw log-probabilities [V] are greater; -1
    for those among the model's most likely tokens, which are nearly all.
    """
    known = set(row[FIXED_COLUMNS : FIXED_COLUMNS + top_n])
    for token, value in zip(row[-3 * top_n : -2 * top_n], row[-top_n:], strict=True):
        yield -1.0 if token in known else float((raw > value).sum())


def _fixed_columns(
    raw: torch.Tensor, final: torch.Tensor, probabilities: torch.Tensor, chosen: torch.Tensor, summands: torch.Tensor
) -> list[torch.Tensor]:
    """Return seven columns [B, 1], in the order of `FIXED_COLUMNS`."""
    index = chosen[:, None]
    picked = raw.gather(1, index)
    above = (raw > picked).sum(1, keepdim=True)
    # Negative; NaN where a summand is -inf (handled later).
    entropy = torch.linalg.vecdot(probabilities, summands)[:, None]
    varentropy = torch.linalg.vecdot(probabilities, (summands - entropy).square_())[:, None]
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
    survivors = len(logits)
    if math.isnan(row[4]):
        entropy, varentropy, survivors = _stats_with_banned(logits)
        row[4], row[5] = -entropy, varentropy
    return _row_to_step_stats(row, top_n, names, pieces, survivors)


def _row_to_step_stats(
    row: array[float], top_n: int, names: Sequence[StageHeading], pieces: TokenSpellings, survivors: int
) -> StepStats:
    raw, final, above, ahead, entropy, varentropy, token = row[:FIXED_COLUMNS]
    rank, entropy = int(above) + 1, max(-entropy, 0.0)
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
