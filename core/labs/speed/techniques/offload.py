"""Disk offloading: weights are read from disk for each pass; drafts yield several tokens per read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from decodescope.core.errors import StrategyError
from decodescope.core.generation.throughput_estimate import ThroughputEstimate, estimate_throughput
from decodescope.core.labs.speed.events import Row, RowMeasurement
from decodescope.core.labs.speed.measured_model import MeasuredModel
from decodescope.core.labs.speed.techniques.drafts import no_draft_error
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.strategies import registry

MEMORY, DISK, DRAFTED = "memory", "disk", "drafted"
ROWS = (MEMORY, DISK, DRAFTED)
_MIN_TOKENS, _MAX_TOKENS = 12, 48
"""Tokens of a repeat: enough to show the effect of drafts, few enough for a large model."""


def measure(subject: MeasuredModel, row: Row, measured_rows: Mapping[str, RowMeasurement]) -> RowMeasurement:
    """Measure the model in memory, offloaded to disk, or offloaded with drafts. Raises DecodescopeError,
    MeasurementCancelled.
    """
    if row.name == MEMORY:
        return subject.to_measured(row, subject.baseline, subject.base)
    model = subject.offloaded
    throughput = estimate_throughput(model)
    assert throughput is not None, "so little memory holds no model"
    if row.name == DISK:
        return _measure_disk(subject, row, measured_rows, model, throughput)
    return _measure_drafted(subject, row, measured_rows, model, throughput)


def _measure_disk(
    subject: MeasuredModel,
    row: Row,
    measured_rows: Mapping[str, RowMeasurement],
    model: LoadedModel,
    estimate: ThroughputEstimate,
) -> RowMeasurement:
    timed = subject.time_request(model, warmup_tokens=1, tokens=_tokens(subject, estimate))
    found = subject.to_measured(row, timed, model, _speed_of_row(measured_rows, MEMORY))
    subject.sequences_by_row[row] = tuple(timed.last.sequences[0])
    is_alike = MEMORY in measured_rows and subject.base.weights == model.weights
    same = _same_prefix(subject.sequences_by_row[row], tuple(subject.baseline.last.sequences[0])) if is_alike else None
    return replace(found, limit=estimate.limit, predicted=estimate.tokens_per_second, same=same)


def _measure_drafted(
    subject: MeasuredModel,
    row: Row,
    measured_rows: Mapping[str, RowMeasurement],
    model: LoadedModel,
    estimate: ThroughputEstimate,
) -> RowMeasurement:
    """Measure with drafts, relative to the disk without them; a short run predicts the tokens per pass."""
    draft = subject.find_draft(model)
    if draft is None:
        raise no_draft_error(model.name)
    request = replace(subject.build_request("assisted"), drafters=(draft,))
    if reason := registry["assisted"].unsupported_reason(model, request):
        raise StrategyError(reason)
    tokens = _tokens(subject, estimate)
    settled = subject.run_once(model, tokens // 2, request).metrics.tokens_per_target_pass or 1.0
    timed = subject.time_request(model, request, warmup_tokens=1, tokens=tokens)
    found = subject.to_measured(row, timed, model, _speed_of_row(measured_rows, DISK))
    plain = subject.sequences_by_row.get(Row("offload", DISK))
    same = _same_prefix(tuple(timed.last.sequences[0]), plain) if plain is not None else None
    return replace(
        found, limit=estimate.limit, predicted=estimate.tokens_per_second * settled, same=same,
        bytes=found.bytes + draft.weight_bytes,
    )  # fmt: skip


def _tokens(subject: MeasuredModel, estimate: ThroughputEstimate) -> int:
    return max(_MIN_TOKENS, min(_MAX_TOKENS, round(estimate.tokens_per_second * subject.settings.seconds)))


def _same_prefix(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Compare up to the shorter length."""
    both = min(len(one), len(other))
    return one[:both] == other[:both]


def _speed_of_row(measured_rows: Mapping[str, RowMeasurement], name: str) -> float:
    return measured_rows[name].speed if name in measured_rows else 0.0
