"""The encoder–decoder cache: a separate backend for each half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.caches.base import EDITS, CacheBackend, own_cache_reason
from decodescope.core.caches.measurement import CacheEstimate, RunShape
from decodescope.core.common.hf_generation import SAME_SETTINGS, GenerateEquivalent
from decodescope.core.parameter import Parameter, Settings
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from decodescope.core.caches.base import CacheOperation
    from decodescope.core.models.loaded_model import LoadedModel

SELF = Parameter(
    "self", mark("Self-attention"), "choice", "dynamic",
    mark("How the generated text is kept. It grows with every token."),
    choices=("dynamic", "static", "quantized", "offloaded"), option=True,
)  # fmt: skip
CROSS = Parameter(
    "cross", mark("Cross-attention"), "choice", "dynamic",
    mark("How the encoder output is kept. It is filled once and never grows."),
    choices=("dynamic", "offloaded"), option=True,
)  # fmt: skip


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """Build an EncoderDecoderCache of two halves. Raises CacheError if one half cannot be built."""
    from decodescope.core.caches.tensors.dynamic_layers import pair_halves  # torch is loaded only when something runs

    return pair_halves(
        _half_backend(options, "self").build(model, length, {}),
        _half_backend(options, "cross").build(model, length, {}),
    )


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """Describe the self-attention half with its backend; the cross-attention half has the same size on every device."""
    return _half_backend(run.options, "self").describe(model, run._replace(options={}))


def rejection_reason(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """Require an encoder–decoder model whose self-attention backend supports `needs`."""
    if not model.is_encoder_decoder:
        return tr("{model} has no encoder, so it has no cross-attention to keep.").format(model=model.name)
    return own_cache_reason(model) or _half_backend(options, "self").unsupported_reason(model, needs)


def _half_backend(options: Settings, which: str) -> CacheBackend:
    from decodescope.core import caches  # the registry imports this file, so import it on demand

    return caches.registry[str(options.get(which) or "dynamic")]


def generate_equivalent(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """Return the `generate` equivalent: it keeps both halves the same way, dynamically by default."""
    if all((options.get(half.name) or "dynamic") == "dynamic" for half in (SELF, CROSS)):
        return SAME_SETTINGS
    return GenerateEquivalent(missing=tr("transformers cannot choose a separate cache for each half."))


BACKEND = CacheBackend(
    name="encoder_decoder",
    title=mark("Encoder–decoder"),
    brief=mark("Enc.–dec."),
    summary=mark("both halves, each in its own cache"),
    build=build,
    describe=describe,
    parameters=(SELF, CROSS),
    order=40,
    rejection_reason=rejection_reason,
    offers=EDITS | {"drafts"},
    generate_equivalent=generate_equivalent,
)
