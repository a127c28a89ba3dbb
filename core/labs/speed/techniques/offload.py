"""Weights that stay on the disk, and are read for each pass: drafts settle several tokens with one reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.errors import StrategyError
from core.labs.speed.events import Measured, Row
from core.labs.speed.measured_model import MeasuredModel
from core.labs.speed.techniques.drafts import no_draft
from core.models.loaded_model import LoadedModel
from core.strategies import registry
from core.throughput_estimate import Foretold, foretell

MEMORY, DISK, DRAFTED = "memory", "disk", "drafted"
ROWS = (MEMORY, DISK, DRAFTED)
_FEWEST, _MOST = 12, 48
"""Tokens of a repeat: enough for drafts to show what they save, few enough for a large model."""


def measure(subject: MeasuredModel, row: Row, done: Mapping[str, Measured]) -> Measured:
    """All in memory; as much on the disk as it goes; the same with drafts. Raises DecodescopeError, Stopped."""
    if row.name == MEMORY:
        return subject.measured(row, subject.plain, subject.base)
    model = subject.shelved
    foretold = foretell(model)
    assert foretold is not None, "so little memory holds no model"
    if row.name == DISK:
        return _plain(subject, row, done, model, foretold)
    return _drafted(subject, row, done, model, foretold)


def _plain(
    subject: MeasuredModel, row: Row, done: Mapping[str, Measured], model: LoadedModel, foretold: Foretold
) -> Measured:
    timed = subject.timed(model, warm=1, tokens=_tokens(subject, foretold))
    found = subject.measured(row, timed, model, _speed(done, MEMORY))
    subject.wrote[row] = tuple(timed.last.sequences[0])
    is_alike = MEMORY in done and subject.base.weights == model.weights
    same = _same(subject.wrote[row], tuple(subject.plain.last.sequences[0])) if is_alike else None
    return replace(found, limit=foretold.limit, foretold=foretold.tokens_per_second, same=same)


def _drafted(
    subject: MeasuredModel, row: Row, done: Mapping[str, Measured], model: LoadedModel, foretold: Foretold
) -> Measured:
    """What it is held against is the disk without drafts; what drafts settle in a pass, a short run foretells."""
    draft = subject.draft_of(model)
    if draft is None:
        raise no_draft(model.name)
    request = replace(subject.request("assisted"), drafters=(draft,))
    if reason := registry["assisted"].why_not(model, request):
        raise StrategyError(reason)
    tokens = _tokens(subject, foretold)
    settled = subject.once(model, tokens // 2, request).metrics.tokens_per_target_pass or 1.0
    timed = subject.timed(model, request, warm=1, tokens=tokens)
    found = subject.measured(row, timed, model, _speed(done, DISK))
    plain = subject.wrote.get(Row("offload", DISK))
    same = _same(tuple(timed.last.sequences[0]), plain) if plain is not None else None
    return replace(
        found, limit=foretold.limit, foretold=foretold.tokens_per_second * settled, same=same,
        bytes=found.bytes + draft.weight_bytes,
    )  # fmt: skip


def _tokens(subject: MeasuredModel, foretold: Foretold) -> int:
    return max(_FEWEST, min(_MOST, round(foretold.tokens_per_second * subject.asked.seconds)))


def _same(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """As far as both go: they need not be of the same length."""
    both = min(len(one), len(other))
    return one[:both] == other[:both]


def _speed(done: Mapping[str, Measured], name: str) -> float:
    return done[name].speed if name in done else 0.0
