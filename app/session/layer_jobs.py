"""Layer inspection by the core, done by the worker between runs. Imports torch with the core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.state.layer_queries import (
    AdapterFinding,
    LayerAttention,
    LayerFindings,
    LayerView,
    ModelQuery,
    PositionWeight,
    TokenChange,
)

if TYPE_CHECKING:
    import core

PartialResult = tuple[LayerFindings, int, int]
"""The results, the number of finished parts and the total number of parts."""


def inspect_layers(model: core.LoadedModel, request: ModelQuery) -> Iterator[PartialResult]:
    """Yield the results in parts, using all processors unless their number is set: full texts are worth sharing, single
    steps of a small model are not. Raises core.errors.DecodescopeError.
    """
    import torch

    import core

    before = torch.get_num_threads()
    torch.set_num_threads(request.load.threads or max(before, core.usable_processors()))
    try:
        yield from _KINDS[request.query.kind](model, request)
    finally:
        torch.set_num_threads(before)


def _source(model: core.LoadedModel, request: ModelQuery) -> int | None:
    return request.prompt_length if model.is_encoder_decoder else None


def _layers(model: core.LoadedModel, request: ModelQuery) -> Iterator[PartialResult]:
    import core

    rows = core.lens(model, request.ids, request.step, source=_source(model, request), media=request.media)
    yield (_layer_views(model, rows),), 1, 1


def _lens_text(model: core.LoadedModel, request: ModelQuery) -> Iterator[PartialResult]:
    import core

    total = len(request.ids) - request.step
    results = core.lens_text(
        model, request.ids, request.step, source=_source(model, request), media=request.media, cancel=request.cancel
    )  # fmt: skip
    for done, rows in enumerate(results, 1):
        yield (_layer_views(model, rows),), done, total


def _influence(model: core.LoadedModel, request: ModelQuery) -> Iterator[PartialResult]:
    import core

    query = request.query
    results = core.occlusion(
        model,
        request.ids,
        request.step,
        query.other_token,
        query.unit,
        source=_source(model, request),
        media=request.media,
        cancel=request.cancel,
        instead=None if query.replacement is None else core.neutral_token(model, query.replacement),
    )
    for part in results:
        yield tuple(PositionWeight(*effect) for effect in part.effects), part.done, part.total


def _attention(model: core.LoadedModel, request: ModelQuery) -> Iterator[PartialResult]:
    import core

    rows = core.attention(model, request.ids, request.step, source=_source(model, request), media=request.media)
    mean = tuple(sum(column) / len(rows) for column in zip(*(row.shares for row in rows), strict=True))
    layers = [LayerAttention(row.layer, row.shares) for row in rows]
    yield (LayerAttention(0, mean), *layers), 1, 1


def _adapters(model: core.LoadedModel, request: ModelQuery) -> Iterator[PartialResult]:
    import core

    source, special = _source(model, request), model.pieces.special
    found = core.adapter_effect(
        model, request.ids, request.step, adapters=request.adapters, source=source, media=request.media
    )
    changes = tuple(
        TokenChange(
            model.pieces[one.id], one.before, one.after, one.rank_before, one.rank_after, one.id == found.chosen.id,
            one.id in special,
        )
        for one in found.changes
    )  # fmt: skip
    yield (AdapterFinding(changes, found.divergence),), 1, 1


def _layer_views(model: core.LoadedModel, rows: tuple[core.LensRow, ...]) -> tuple[LayerView, ...]:
    return tuple(
        LayerView(
            row.layer,
            model.pieces[row.first],
            row.first_probability,
            row.probability,
            row.rank,
            row.first in model.pieces.special,
        )
        for row in rows
    )


_KINDS = {
    "layers": _layers,
    "page": _lens_text,
    "influence": _influence,
    "attention": _attention,
    "adapters": _adapters,
}
