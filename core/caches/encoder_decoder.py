"""The encoder–decoder cache: a back end of its own for each half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.caches.base import EDITS, CacheBackend, CacheEstimate, RunShape, own_cache_reason
from core.common.hf_generation import SAME_SETTINGS, GenerateEquivalent
from core.parameter import Parameter, Settings
from resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from core.caches.base import CacheOperation
    from core.models.loaded_model import LoadedModel

SELF = Parameter(
    "self", mark("Self-attention"), "choice", "dynamic",
    mark("How the text written so far is kept. It grows with every token."),
    choices=("dynamic", "static", "quantized", "offloaded"), option=True,
)  # fmt: skip
CROSS = Parameter(
    "cross", mark("Cross-attention"), "choice", "dynamic",
    mark("How what the encoder read is kept. It is filled once and never grows."),
    choices=("dynamic", "offloaded"), option=True,
)  # fmt: skip


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """An EncoderDecoderCache of the two halves. Raises CacheError when a half cannot be built here."""
    from core.caches.tensors.dynamic_layers import pair_halves  # torch is loaded only when something runs

    return pair_halves(
        _half_backend(options, "self").build(model, length, {}),
        _half_backend(options, "cross").build(model, length, {}),
    )


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """The written half as its back end says; cross-attention takes the same bytes in every place."""
    return _half_backend(run.options, "self").describe(model, run._replace(options={}))


def refuse(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """There must be two halves, and the one that is written must do what is needed."""
    if not model.is_encoder_decoder:
        return tr("{model} has no encoder, so there is no second half to keep.").format(model=model.name)
    return own_cache_reason(model) or _half_backend(options, "self").unsupported_reason(model, needs)


def _half_backend(options: Settings, which: str) -> CacheBackend:
    from core import caches  # the registry lists this file, so it cannot be imported above

    return caches.registry[str(options.get(which) or "dynamic")]


def counterpart(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """`generate` keeps both halves in one way; by itself dynamically."""
    if all((options.get(half.name) or "dynamic") == "dynamic" for half in (SELF, CROSS)):
        return SAME_SETTINGS
    return GenerateEquivalent(missing=tr("transformers offers no choice of its own for each half of the cache."))


BACKEND = CacheBackend(
    name="encoder_decoder",
    title=mark("Encoder–decoder"),
    brief=mark("Enc.–dec."),
    summary=mark("both halves, each kept in its own way"),
    build=build,
    describe=describe,
    parameters=(SELF, CROSS),
    order=40,
    refuse=refuse,
    offers=EDITS | {"drafts"},
    counterpart=counterpart,
)
