"""The static cache: room for the whole text, allocated once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.caches.base import (
    EDITS,
    CacheBackend,
    CacheEstimate,
    RunShape,
    draft_layers_reason,
    rejected_drafts_reason,
    states_reason,
)
from core.common.hf_generation import GenerateEquivalent
from core.models.config_validation import PACKED
from core.parameter import Parameter, Settings
from resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from core.caches.base import CacheOperation
    from core.models.loaded_model import LoadedModel

COMPILE = Parameter(
    "compile", mark("Compile"), "bool", False,
    mark("Translate the decoding step into machine code for this size. The first run waits for it, a minute or so; "
         "later ones are faster. Needs a C++ compiler."),
    option=True,
)  # fmt: skip
ROOM = Parameter(
    "max_cache_len", mark("Room for at least"), "int", 0,
    mark("Tokens to allocate for. 0: exactly the prompt and the new tokens."),
    minimum=0, maximum=10_000_000, soft_maximum=8192, step=64, option=True, advanced=True, unset=0,
)  # fmt: skip


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """An empty cache of fixed size. Raises CacheError when compiling is asked for and impossible here."""
    from core.caches.tensors.static_layers import build_static  # torch is loaded only when something runs

    return build_static(model, max(length, options.get("max_cache_len") or 0), bool(options.get("compile")))


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """All of it at once; it never grows."""
    from core.caches.tensors.cache_sizes import allocated_span, cache_size, counters_size, model_layer_shapes, sum_terms
    from core.caches.tensors.static_layers import allocated_length  # needs torch

    options, shapes = run.options, model_layer_shapes(model)
    room = allocated_length(max(run.capacity, options.get("max_cache_len") or 0), bool(options.get("compile")))
    size = sum_terms(cache_size(shapes, run, allocated_span(room)), counters_size(shapes))
    return CacheEstimate(size, window=min(shapes.windows, default=None), capacity=room)


def refuse(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """Needs attention layers, and a model that takes a cache longer than its text."""
    if reason := states_reason(model):
        return reason
    if not model.model._can_compile_fullgraph:
        return tr("{model} cannot read a cache with empty places at its end.").format(model=model.name)
    if options.get("compile") and model.weights in PACKED:
        return tr(
            "a compiled step is made for floats, and these weights are kept in {kind}; switch Compile off."
        ).format(kind=model.weights)
    if "drafts" in needs and options.get("compile"):
        return tr("a compiled step reads one token at a time, and drafts are read several at once; switch Compile off.")
    return rejected_drafts_reason(model, needs, tr("Static")) or draft_layers_reason(model, needs, tr("Static"))


def counterpart(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """`generate` has it, except for drafts."""
    if "drafts" in needs:
        return GenerateEquivalent(missing=tr("transformers checks drafts with a dynamic cache only."))
    room, compiles = options.get("max_cache_len") or 0, bool(options.get("compile"))
    more = ({"max_cache_len": room} if room else {}) | ({} if compiles else {"disable_compile": True})
    note = tr("Whether the step is compiled, transformers decides by the device.") if compiles else ""
    return GenerateEquivalent({"cache_implementation": "static", **more}, note=note)


BACKEND = CacheBackend(
    name="static",
    title=mark("Static"),
    summary=mark("room for the whole text, allocated once"),
    build=build,
    describe=describe,
    parameters=(COMPILE, ROOM),
    order=20,
    refuse=refuse,
    offers=EDITS | {"drafts"},
    counterpart=counterpart,
)
