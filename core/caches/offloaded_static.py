"""The offloaded static cache: all room taken at once, layers waiting elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.caches.base import EDITS, CacheBackend
from core.caches.cache_estimate import CacheEstimate, RunShape
from core.caches.offloaded import FOLDER, PLACE, offloaded_by
from core.caches.unsupported_reasons import keeps_refused_drafts, keys_and_values_only, relies_on_windows
from core.hf_generate import Counterpart
from core.parameter import Settings
from resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from core.caches.requirements import Need
    from core.models.loaded_model import LoadedModel


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """An empty cache with room for `length` tokens in host memory or on disk. Raises CacheError without room there."""
    from core.caches.tensors.offload_devices import offloaded_fixed  # torch is loaded only when something runs

    return offloaded_fixed(model, length, options.get("place") or "auto", options.get("folder") or "")


def describe(model: LoadedModel, situation: RunShape) -> CacheEstimate:
    """All of it at once. On disk every layer has full room, and the first waits in memory besides: the tokens read so
    far, and one more."""
    from core.caches.tensors.layer_shapes import shapes_of
    from core.caches.tensors.offload_devices import is_on_disk  # needs torch
    from core.caches.tensors.size_formulas import allocated, at_hand, counters, kept, ready, total, whatever_the_window

    shapes, room = shapes_of(model), situation.room
    resident = at_hand(shapes, situation)
    if is_on_disk(model, situation.options.get("place")):
        size = kept(shapes, situation, whatever_the_window(room), ready())
        return CacheEstimate(size, capacity=room, resident=resident)
    size = total(kept(shapes, situation, allocated(room)), counters(shapes))
    return CacheEstimate(size, window=min(shapes.windows, default=None), capacity=room, resident=resident)


def refuse(model: LoadedModel, needs: frozenset[Need], options: Settings) -> str | None:
    """As static, which it is in another place."""
    if reason := keys_and_values_only(model):
        return reason
    if model.device.type != "cuda":  # on disk every layer keeps everything
        return relies_on_windows(model)
    if not model.model._can_compile_fullgraph:
        return tr("{model} cannot read a cache with empty places at its end.").format(model=model.name)
    return keeps_refused_drafts(model, needs, tr("Offloaded, static"))


def counterpart(options: Settings, needs: frozenset[Need], device: str) -> Counterpart:
    """`generate` has it for graphics cards, except for drafts."""
    if "drafts" in needs:
        return Counterpart(missing=tr("transformers checks drafts with a dynamic cache only."))
    return offloaded_by("offloaded_static", options, device)


BACKEND = CacheBackend(
    name="offloaded_static",
    title=mark("Offloaded, static"),
    brief=mark("Off. static"),
    summary=mark("all room taken at once, layers wait elsewhere"),
    build=build,
    describe=describe,
    parameters=(PLACE, FOLDER),
    order=80,
    refuse=refuse,
    offers=EDITS | {"drafts"},
    counterpart=counterpart,
)
