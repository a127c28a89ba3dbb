"""The offloaded static cache: all room taken at once, layers waiting elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.caches.base import EDITS, CacheBackend
from core.caches.dynamic import measure
from core.caches.offloaded import FOLDER, PLACE
from core.caches.reasons import keeps_refused_drafts, keys_and_values_only

if TYPE_CHECKING:
    from core.caches.needs import Need
    from core.models.model import LoadedModel


def build(model: LoadedModel, length: int, options: Mapping[str, Any]) -> Any:
    """An empty cache with room for `length` tokens in host memory or on disk. Raises CacheError without room there."""
    from core.caches.tensors.places import offloaded_fixed  # torch is loaded only when something runs

    return offloaded_fixed(model, length, options.get("place") or "auto", options.get("folder") or "")


def predict(model: LoadedModel, length: int, batch: int, options: Mapping[str, Any]) -> int:
    """The whole allocation, when `length` is the greatest length of the run. On disk one layer waits in memory
    besides: as many tokens as were read so far, `options["tokens"]` (missing: all)."""
    from core.caches.tensors.places import predict_offloaded_fixed  # needs torch
    from core.caches.tensors.shapes import predict_cross

    place, tokens = options.get("place") or "auto", int(options.get("tokens") or length)
    own = predict_offloaded_fixed(model, length, batch, place, tokens)
    return own + predict_cross(model, length, batch, options)


def refuse(model: LoadedModel, needs: frozenset[Need], options: Mapping[str, Any]) -> str | None:
    """As static, which it is in another place."""
    if reason := keys_and_values_only(model):
        return reason
    if model.device.type != "cuda":  # on disk every layer keeps everything
        return None
    if not model.model._can_compile_fullgraph:
        return f"{model.name} cannot read a cache with empty places at its end."
    return keeps_refused_drafts(model, needs, "Offloaded, static")


BACKEND = CacheBackend(
    name="offloaded_static",
    title="Offloaded, static",
    summary="all room taken at once, layers wait elsewhere",
    build=build,
    measure=measure,
    predict=predict,
    parameters=(PLACE, FOLDER),
    order=80,
    refuse=refuse,
    offers=EDITS | {"drafts"},
)
