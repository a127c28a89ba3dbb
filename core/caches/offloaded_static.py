"""The offloaded static cache: allocated in full at the start, with layers kept in another memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.caches.base import (
    EDITS,
    CacheBackend,
    extra_tensors_reason,
    rejected_drafts_reason,
    repeated_layers_reason,
    windows_required_reason,
)
from decodescope.core.caches.measurement import CacheEstimate, RunShape
from decodescope.core.caches.offloaded import FOLDER, PLACE, offloading_generate_equivalent
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.parameter import Settings
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from decodescope.core.caches.base import CacheOperation
    from decodescope.core.models.loaded_model import LoadedModel


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """Build an empty cache with capacity for `length` tokens in host memory or on disk. Raises CacheError if it does
    not fit.
    """
    from decodescope.core.caches.tensors.disk_cache import (
        build_offloaded_static,  # torch is loaded only when something runs
    )

    return build_offloaded_static(model, length, options.get("place") or "auto", options.get("folder") or "")


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """Estimate the size, which is allocated at once. On disk every layer has full capacity, and the first layer is also
    in memory with the tokens read so far and one more.
    """
    from decodescope.core.caches.tensors.cache_sizes import (
        allocated_span,
        cache_size,
        counters_size,
        full_span,
        model_layer_shapes,
        prepared_tokens,
        resident_size,
        sum_terms,
    )
    from decodescope.core.caches.tensors.disk_cache import is_on_disk  # needs torch

    shapes, room = model_layer_shapes(model), run.capacity
    resident = resident_size(shapes, run)
    if is_on_disk(model, run.options.get("place")):
        size = cache_size(shapes, run, full_span(room), prepared_tokens())
        return CacheEstimate(size, capacity=room, resident=resident)
    size = sum_terms(cache_size(shapes, run, allocated_span(room)), counters_size(shapes))
    return CacheEstimate(size, window=min(shapes.windows, default=None), capacity=room, resident=resident)


def rejection_reason(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """Return why a model is not supported: the reasons of the static cache, and on disk also reliance on windows."""
    if reason := extra_tensors_reason(model) or repeated_layers_reason(model):
        return reason
    if model.device.type != "cuda":  # on disk every layer keeps all tokens
        return windows_required_reason(model)
    if not model.model._can_compile_fullgraph:
        return tr("{model} cannot read a cache with empty positions at its end.").format(model=model.name)
    return rejected_drafts_reason(model, needs, tr("Offloaded, static"))


def generate_equivalent(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """Return the `generate` equivalent, which exists for GPUs and without drafts."""
    if "drafts" in needs:
        return GenerateEquivalent(missing=tr("transformers verifies drafts with a dynamic cache only."))
    return offloading_generate_equivalent("offloaded_static", options, device)


BACKEND = CacheBackend(
    name="offloaded_static",
    title=mark("Offloaded, static"),
    brief=mark("Off. static"),
    summary=mark("fully allocated at the start, layers offloaded"),
    build=build,
    describe=describe,
    parameters=(PLACE, FOLDER),
    order=80,
    rejection_reason=rejection_reason,
    offers=EDITS | {"drafts"},
    generate_equivalent=generate_equivalent,
)
