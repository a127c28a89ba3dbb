"""The sink cache: endless text in a window of constant size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.caches.base import CacheBackend, plain_attention_reason
from decodescope.core.caches.measurement import CacheEstimate, RunShape
from decodescope.core.common.claim import Claim, ClaimCell
from decodescope.core.common.hf_generation import GenerateEquivalent, removed_from_transformers
from decodescope.core.parameter import Parameter, Settings
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from decodescope.core.caches.base import CacheOperation
    from decodescope.core.models.loaded_model import LoadedModel

WINDOW = Parameter(
    "window_length", mark("Window"), "int", 256,
    mark("Tokens the model sees at a time, including the sinks. Memory stays within this size."),
    minimum=3, maximum=1_000_000, soft_maximum=2048, step=16, option=True,
)  # fmt: skip
SINKS = Parameter(
    "num_sink_tokens", mark("Sink tokens"), "int", 4,
    mark("First tokens of the text that are never dropped. Models park excess attention on them; without "
        "them the text falls apart as soon as the first tokens are dropped."),
    minimum=0, maximum=100_000, soft_maximum=16, step=1, option=True,
)  # fmt: skip


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """Build an empty sink cache. Raises CacheError if the window is too small for the sinks or too large for the
    context.
    """
    from decodescope.core.caches.tensors.sink import build_sink  # torch is loaded only when something runs

    return build_sink(model, *_sizes(options))


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """Estimate the size as that of a dynamic cache with min(length, window − 1) tokens: the next token fills the
    window.
    """
    from decodescope.core.caches.tensors.cache_sizes import (
        cache_size,
        model_layer_shapes,  # needs torch
        within_windows,
    )

    window, sinks = _sizes(run.options)
    size = cache_size(model_layer_shapes(model), run, lambda _: within_windows(window))
    return CacheEstimate(size, window=window, sinks=sinks)


def rejection_reason(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """Return why a model is not supported; only those whose keys can be rotated to another position are."""
    if model.is_encoder_decoder:
        return tr("{model} is an encoder–decoder model without rotary positions, which a sink cache needs.").format(
            model=model.name
        )
    if reason := plain_attention_reason(model, tr("Sink")):
        return reason
    from decodescope.core.caches.tensors.sink import rotary_functions  # a model is loaded, so torch is too

    if rotary_functions(model) is None:
        return tr(
            "{model} does not encode positions by rotating whole keys (RoPE), so tokens cannot move up "
            "when older ones are dropped."
        ).format(model=model.name)
    return None


def _sizes(options: Settings) -> tuple[int, int]:
    """Return (window, sinks) with defaults filled in."""
    window, sinks = options.get("window_length"), options.get("num_sink_tokens")
    return int(WINDOW.default if window is None else window), int(SINKS.default if sinks is None else sinks)


def generate_equivalent(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """Return an equivalent that only says that newer versions of `generate` have no sink cache."""
    return removed_from_transformers(tr("the sink cache"))


CLAIMS = (
    Claim(
        name="sinks-keep-the-text",
        title=mark("Sinks keep a long text stable"),
        plain=mark("If a model only sees the latest words, its text falls apart; keeping the "
            "very first words as well prevents that."),
        exact=mark("With a window of 64 tokens, the mean log-probability of a longer text is "
            "higher with 4 sink tokens than with none."),
        source="Xiao, Tian, Chen, Han, Lewis 2024, Efficient Streaming Language Models with Attention Sinks",
        address="https://arxiv.org/abs/2309.17453",
        baseline=ClaimCell(
            mark("Window"), cache="sink", cache_settings={"window_length": 64, "num_sink_tokens": 0}
        ),
        tested=ClaimCell(
            mark("4 sinks"), cache="sink", cache_settings={"window_length": 64, "num_sink_tokens": 4}
        ),
        measure="read_log_probability", expects="higher", margin=0.1, max_new_tokens=160, target=64.0,
    ),
)  # fmt: skip

BACKEND = CacheBackend(
    name="sink",
    title=mark("Sink"),
    summary=mark("the first tokens and the latest: endless text"),
    build=build,
    describe=describe,
    parameters=(WINDOW, SINKS),
    exact=False,
    claims=CLAIMS,
    paper="Xiao et al. 2024, Efficient Streaming Language Models with Attention Sinks",
    aliases=("streaming_llm",),
    order=50,
    rejection_reason=rejection_reason,
    offers=frozenset({"reorder", "copy"}),
    unbounded=True,
    generate_equivalent=generate_equivalent,
)
