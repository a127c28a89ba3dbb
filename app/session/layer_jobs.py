"""Looks inside a step, by the core: what the worker does when nothing runs. Imports torch with the core."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.state.layer_queries import Found, LayerAttention, LayerView, LookRequest, Weight

if TYPE_CHECKING:
    import core

Part = tuple[Found, int, int]
"""What was found, how many parts of the work are done, of how many."""


def usable() -> int:
    """Processors there are to compute with, up to eight."""
    found = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, min(8, found))


def look(model: core.LoadedModel, request: LookRequest) -> Iterator[Part]:
    """The answer in parts, as they are found, on all processors unless their number is set: whole texts are work enough
    to be shared, which single steps of a small model are not. Raises core.errors.DecodescopeError."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(request.load.threads or max(before, usable()))
    try:
        yield from _KINDS[request.wish.kind](model, request)
    finally:
        torch.set_num_threads(before)


def _source(model: core.LoadedModel, request: LookRequest) -> int | None:
    return request.asked if model.is_encoder_decoder else None


def _layers(model: core.LoadedModel, request: LookRequest) -> Iterator[Part]:
    import core

    rows = core.lens(model, request.ids, request.step, source=_source(model, request), media=request.media)
    yield (_views(model, rows),), 1, 1


def _page(model: core.LoadedModel, request: LookRequest) -> Iterator[Part]:
    import core

    total = len(request.ids) - request.step
    told = core.lens_text(
        model, request.ids, request.step, source=_source(model, request), media=request.media, cancel=request.cancel
    )  # fmt: skip
    for done, rows in enumerate(told, 1):
        yield (_views(model, rows),), done, total


def _influence(model: core.LoadedModel, request: LookRequest) -> Iterator[Part]:
    import core

    wish = request.wish
    told = core.occlusion(
        model, request.ids, request.step, wish.other, wish.unit, source=_source(model, request), media=request.media,
        cancel=request.cancel, instead=None if wish.instead is None else core.neutral_token(model, wish.instead),
    )  # fmt: skip
    for part in told:
        yield tuple(Weight(*effect) for effect in part.effects), part.done, part.total


def _attention(model: core.LoadedModel, request: LookRequest) -> Iterator[Part]:
    import core

    rows = core.attention(model, request.ids, request.step, source=_source(model, request), media=request.media)
    mean = tuple(sum(column) / len(rows) for column in zip(*(row.shares for row in rows), strict=True))
    layers = [LayerAttention(row.layer, row.shares) for row in rows]
    yield (LayerAttention(0, mean), *layers), 1, 1


def _views(model: core.LoadedModel, rows: tuple[core.LensRow, ...]) -> tuple[LayerView, ...]:
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


_KINDS = {"layers": _layers, "page": _page, "influence": _influence, "attention": _attention}
