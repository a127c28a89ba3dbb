"""The static cache: capacity for the full text, allocated once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.caches.base import EDITS, CacheBackend, draft_layers_reason, rejected_drafts_reason, states_reason
from decodescope.core.caches.measurement import CacheEstimate, RunShape
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.models.config_validation import PACKED
from decodescope.core.parameter import Parameter, Settings
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from decodescope.core.caches.base import CacheOperation
    from decodescope.core.models.loaded_model import LoadedModel

COMPILE = Parameter(
    "compile", mark("Compile"), "bool", False,
    mark("Compile the decoding step for this size. On a CPU, native code is faster and replaces it where it supports "
        "the model; otherwise the first run takes a minute or more longer and needs a C++ compiler."),
    option=True,
)  # fmt: skip
ROOM = Parameter(
    "max_cache_len", mark("Minimum capacity"), "int", 0,
    mark("Tokens to allocate for. 0: exactly the prompt and the new tokens."),
    minimum=0, maximum=10_000_000, soft_maximum=8192, step=64, option=True, advanced=True, unset=0,
)  # fmt: skip


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """Build an empty cache of fixed size. Raises CacheError if compilation is requested but impossible here."""
    from decodescope.core.caches.tensors.static_layers import build_static  # torch is loaded only when something runs

    return build_static(model, max(length, options.get("max_cache_len") or 0), bool(options.get("compile")))


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """Estimate the size, which is allocated at once and never grows."""
    from decodescope.core.caches.tensors.cache_sizes import (
        allocated_span,
        cache_size,
        counters_size,
        model_layer_shapes,
        sum_terms,
    )
    from decodescope.core.caches.tensors.static_layers import allocated_length  # needs torch

    options, shapes = run.options, model_layer_shapes(model)
    room = allocated_length(max(run.capacity, options.get("max_cache_len") or 0), bool(options.get("compile")))
    size = sum_terms(cache_size(shapes, run, allocated_span(room)), counters_size(shapes))
    return CacheEstimate(size, window=min(shapes.windows, default=None), capacity=room)


def rejection_reason(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """Return why a model is not supported; only attention layers that accept a cache longer than the text are."""
    if reason := states_reason(model):
        return reason
    if not model.model._can_compile_fullgraph:
        return tr("{model} cannot read a cache with empty positions at its end.").format(model=model.name)
    if options.get("compile") and model.weights in PACKED:
        return tr(
            "compiled steps support floating-point weights only, and these weights are in {kind}; turn Compile off."
        ).format(kind=model.weights)
    if "drafts" in needs and options.get("compile"):
        return tr("a compiled step reads one token at a time, but drafts are read several at a time; turn Compile off.")
    return rejected_drafts_reason(model, needs, tr("Static")) or draft_layers_reason(model, needs, tr("Static"))


def generate_equivalent(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """Return the `generate` equivalent, which exists without drafts."""
    if "drafts" in needs:
        return GenerateEquivalent(missing=tr("transformers verifies drafts with a dynamic cache only."))
    room, compiles = options.get("max_cache_len") or 0, bool(options.get("compile"))
    more = ({"max_cache_len": room} if room else {}) | ({} if compiles else {"disable_compile": True})
    note = tr("transformers decides by the device whether the step is compiled.") if compiles else ""
    return GenerateEquivalent({"cache_implementation": "static", **more}, note=note)


BACKEND = CacheBackend(
    name="static",
    title=mark("Static"),
    summary=mark("capacity for the full text, allocated once"),
    build=build,
    describe=describe,
    parameters=(COMPILE, ROOM),
    order=20,
    rejection_reason=rejection_reason,
    offers=EDITS | {"drafts"},
    generate_equivalent=generate_equivalent,
)
