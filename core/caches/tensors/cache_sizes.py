"""Measure what each layer stores per text by a pass over one or a few tokens; the basis of size predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.cache_utils import (
    Cache,
    LinearAttentionAndSlidingWindowAttentionLayer,
    get_layer_types_and_kwargs,
)

from decodescope.core.caches.measurement import RunShape
from decodescope.core.caches.tensors.adapted_layer import CacheLayer
from decodescope.core.caches.tensors.cache_operations import cross_layers, self_attention_half
from decodescope.core.caches.tensors.continuation_probe import memory_kind
from decodescope.core.caches.tensors.dynamic_layers import (
    CompressorShape,
    compressor_shapes,
    config_cache,
    has_entries,
    is_compressed,
    trial_length,
    with_cross_attention,
)
from decodescope.core.caches.tensors.layer_adapters import IndexedLayerAdapter, StateLayerAdapter, adapt_layer
from decodescope.core.common.size_terms import (
    DifferenceOf,
    Length,
    MinimumOf,
    NamedNumber,
    ProductOf,
    QuotientOf,
    RemainderOf,
    SumOf,
    Term,
)
from decodescope.core.errors import UnpredictableError
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.text_decoder import dummy_encoder_outputs
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.resources.language import tr

_ATEN = torch.ops.aten


class MetaValueMode(TorchDispatchMode):
    """Return plausible results for operations that depend on values, or that PyTorch supports in bfloat16 only.

    Mixtures of experts use them to route tokens. The results have the right shapes, or those of an empty selection;
    what a layer caches depends on neither.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no annotation

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation."""
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if first is None or not first.is_meta:
            return func(*args, **(kwargs or {}))
        if func is _ATEN._grouped_mm.default:
            return first.new_empty(*first.shape[:-1], args[1].shape[-1])
        if func is _ATEN._local_scalar_dense.default:
            return torch.zeros((), dtype=first.dtype).item()
        if func is _ATEN.nonzero.default:
            return first.new_empty((0, first.dim()), dtype=torch.long)
        return func(*args, **(kwargs or {}))


_KEY = "layer_shapes"


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Shape of one layer: key and value heads (0: none), their widths, bytes per number, window (None: it sees
    everything), extra bytes per token and bytes of a state of constant size. All for one row.
    """

    heads: int = 0
    key_width: int = 0
    value_width: int = 0
    element_size: int = 0
    window: int | None = None
    extra_per_token: int = 0
    state: int = 0
    always_drops: bool = False
    """Whether it keeps only its window in every cache, also in caches that let other windowed layers keep all tokens.
    """
    compressors: tuple[CompressorShape, ...] = ()

    @property
    def has_keys(self) -> bool:
        """Whether it keeps keys and values."""
        return self.heads > 0


@dataclass(frozen=True, slots=True)
class LayerShapes:
    """The decoder's layers in order, and the layers that keep the encoder output."""

    own: tuple[LayerShape, ...]
    cross: tuple[LayerShape, ...] = ()

    @property
    def windows(self) -> list[int]:
        """Windows of all layers that have one."""
        return [shape.window for shape in self.own if shape.window is not None]


def model_layer_shapes(model: LoadedModel) -> LayerShapes:
    """Return the shapes of all layers, computed once. Raises UnpredictableError for models with their own cache
    class.
    """
    found: LayerShapes | UnpredictableError | None = model.strategy_data.get(_KEY)
    if found is None:
        found = model.strategy_data[_KEY] = _compute_shapes(model)
    if isinstance(found, UnpredictableError):
        raise found
    return found


def remember_shapes(model: LoadedModel, cache: Cache | None) -> None:
    """Read the shapes from a cache that a run has filled, which saves a trial pass."""
    if cache is None or not all(
        has_entries(layer) for layer in self_attention_half(cache).layers if is_compressed(layer)
    ):
        return
    if _KEY not in model.strategy_data:
        model.strategy_data[_KEY] = _shapes_from_cache(model, cache)


def _compute_shapes(model: LoadedModel) -> LayerShapes | UnpredictableError:
    """Compute the shapes. If a third-party module fails, fall back to the configuration, and finally to an error.

    Raises UnpredictableError, which is not cached, if memory runs out: the run itself will report that.
    """
    if not model.model._supports_default_dynamic_cache():
        return _unpredictable_error(model)
    try:
        return LayerShapes(()) if memory_kind(model) == "none" else _shapes_from_pass(model)
    except Exception as error:
        if is_out_of_memory(error):
            raise _unpredictable_error(model) from error
        return _shapes_from_config(model) or _unpredictable_error(model)


def _unpredictable_error(model: LoadedModel) -> UnpredictableError:
    return UnpredictableError(
        tr("The cache size of {model} cannot be predicted.").format(model=model.name), tr("Run it to measure the size.")
    )


# -- shapes from a pass


@torch.inference_mode()
def _shapes_from_pass(model: LoadedModel) -> LayerShapes:
    """Read the shapes from a cache after a pass over one token, or over as many as fill every kind of layer."""
    device = next(model.model.parameters()).device
    cache = with_cross_attention(model, config_cache(model))
    ids = torch.ones(1, trial_length(self_attention_half(cache).layers), dtype=torch.long, device=device)
    inputs: dict[str, object] = {"use_cache": True, model.cache_name: cache}
    with MetaValueMode() if device.type == "meta" else nullcontext():
        if model.is_encoder_decoder:
            model.model(decoder_input_ids=ids, encoder_outputs=dummy_encoder_outputs(model.model, ids), **inputs)
        else:
            model.model(input_ids=ids, **inputs)
    return _shapes_from_cache(model, cache)


def _shapes_from_cache(model: LoadedModel, cache: Cache) -> LayerShapes:
    windows = [detail.get("sliding_window") for detail in get_layer_types_and_kwargs(model.config)[1]]
    windows += [windows[index] for index in model.repeated_cache_layers]
    own, cross = self_attention_half(cache).layers, cross_layers(cache)
    rows = max(
        (piece.tensor.shape[0] for layer in own for piece in adapt_layer(layer).stored_tensors() if piece.tensor.dim()),
        default=1,
    )
    return LayerShapes(
        tuple(_shape(layer, window, rows) for layer, window in zip(own, windows, strict=False)),
        tuple(_shape(layer, None, rows) for layer in cross),
    )


def _shape(layer: CacheLayer, window: int | None, rows: int) -> LayerShape:
    """Derive the shape from what a layer stores for `rows` rows."""
    if is_compressed(layer):
        return _compressed_shape(layer, rows)
    adapter = adapt_layer(layer)
    more = sum(piece.bytes for piece in adapter.stored_tensors() if piece.part not in ("keys", "values")) // rows
    state = more if isinstance(adapter, StateLayerAdapter) else 0
    tokens = adapter.tokens_read()
    if not tokens:
        return LayerShape(state=state)
    keys, values = adapter.states()
    index_bytes = more // tokens if isinstance(adapter, IndexedLayerAdapter) else 0
    forgets = isinstance(layer, LinearAttentionAndSlidingWindowAttentionLayer)
    return LayerShape(
        keys.shape[1], keys.shape[3], values.shape[3], keys.element_size(), window, index_bytes, state, forgets
    )


def _compressed_shape(layer: Any, rows: int) -> LayerShape:
    """Read the shape of a compressed-attention layer; its values are its keys, stored once."""
    keys, values = layer.keys, layer.values
    return LayerShape(
        keys.shape[1], keys.shape[3], 0 if values is keys else values.shape[3], keys.element_size(),
        int(layer.sliding_window), always_drops=True, compressors=tuple(compressor_shapes(layer, rows)),
    )  # fmt: skip


# -- shapes from the configuration


def _shapes_from_config(model: LoadedModel) -> LayerShapes | None:
    """Derive the shapes from the configuration, for a model without weights whose code needs numbers; states are
    ignored.
    """
    config = model.config
    kinds, details = get_layer_types_and_kwargs(config)
    size = torch.empty((), dtype=model.dtype).element_size()
    layers = list(zip(kinds, details, config.per_layer_config, strict=True))[: model.layers]
    shapes = [_layer_from_config(kind, detail, layer, size) for kind, detail, layer in layers]
    own = tuple(shape for shape in shapes if shape is not None)
    if len(own) < len(shapes):
        return None
    own += tuple(own[index] for index in model.repeated_cache_layers)
    return LayerShapes(own, own if model.is_encoder_decoder else ())


def _layer_from_config(kind: str, detail: Mapping[str, int], config: object, size: int) -> LayerShape | None:
    if kind in ("linear_attention", "conv", "dummy"):
        return LayerShape()
    if "config" in detail:  # compressed attention: only its own code determines what it keeps
        return None
    window = detail.get("sliding_window")
    rank, rope = (getattr(config, name, None) for name in ("kv_lora_rank", "qk_rope_head_dim"))
    if rank and rope:  # latent attention stores the latents of keys and values
        return LayerShape(1, int(rank), int(rope), size, window)
    heads = next(_numbers(config, "num_key_value_heads", "num_kv_heads", "num_attention_heads"), None)
    width = next(_numbers(config, "head_dim", "d_kv"), None) or _default_head_width(config)
    return LayerShape(heads, width, width, size, window) if heads and width else None


def _default_head_width(config: object) -> int | None:
    """Return the width of a head that is a fraction of the hidden state."""
    hidden, heads = next(_numbers(config, "hidden_size"), None), next(_numbers(config, "num_attention_heads"), None)
    return hidden // heads if hidden and heads else None


def _numbers(config: object, *names: str) -> Iterator[int]:
    values = (getattr(config, name, None) for name in names)
    return (value for value in values if isinstance(value, int) and value)


COUNTER_BYTES = 8
"""Every fixed layer counts its tokens in a separate tensor."""
TokensKept = Callable[["int | None"], Term]
"""Window of a layer, or None → number of tokens that it keeps."""


def all_tokens(window: int | None) -> Term:
    """Return all tokens, whatever the window."""
    return Length()


def within_windows(window: int | None) -> Term:
    """Return at most one token less than the window: the next token fills it."""
    return (
        Length() if window is None else MinimumOf(Length(), DifferenceOf(NamedNumber(window, "window"), NamedNumber(1)))
    )


def allocated_span(capacity: int) -> TokensKept:
    """Return a span of at most `capacity` tokens, or of the window."""
    taken = NamedNumber(capacity, "room")
    return lambda window: taken if window is None else MinimumOf(taken, NamedNumber(window, "window"))


def full_span(capacity: int) -> TokensKept:
    """Return a span of `capacity` tokens in every layer."""
    return lambda window: NamedNumber(capacity, "room")


def prepared_tokens() -> tuple[Term, ...]:
    """Return the extra tokens of a layer prepared in memory for one more token."""
    return Length(), NamedNumber(1)


def resident_size(shapes: LayerShapes, run: RunShape) -> Term:
    """Return the device memory of offloaded layers: the layer in use and the one being prefetched."""
    layers = max(1, sum(shape.has_keys for shape in shapes.own))
    return ProductOf((NamedNumber(2), QuotientOf(cache_size(shapes, run, all_tokens), NamedNumber(layers, "layers"))))


def sum_terms(*parts: Term) -> Term:
    """Return the sum of `parts`, without empty sums."""
    flat = [part for part in parts if part != SumOf(())]
    return flat[0] if len(flat) == 1 else SumOf(tuple(flat))


def cache_size(shapes: LayerShapes, run: RunShape, tokens_kept: TokensKept, extra: Sequence[Term] = ()) -> Term:
    """Return the size of keys and values, cross-attention and states. `extra`: tokens of the first layer that are
    stored twice.
    """
    groups, cross = _group_layers(shapes.own), _group_layers(shapes.cross)
    parts: list[Term] = []
    for number, (key, layers) in enumerate(groups.items(), 1):
        tokens = [
            *_tokens(layers, tokens_kept),
            *(extra if number == 1 else ()),
            *_source_tokens(cross.pop(key, []), run),
        ]
        parts.append(ProductOf((*bytes_per_token(layers[0], run, _group_suffix(number)), sum_terms(*tokens))))
    rest = _cross_size(cross.values(), run, first=len(groups) + 1)
    return sum_terms(*parts, rest, *_extra_sizes(shapes, run), *compressed_sizes(shapes, run), states_size(shapes, run))


def cross_attention_size(shapes: LayerShapes, run: RunShape) -> Term:
    """Return the size of what the decoder keeps of the encoder's source."""
    return _cross_size(_group_layers(shapes.cross).values(), run, first=1)


def _cross_size(groups: Iterable[Sequence[LayerShape]], run_shape: RunShape, first: int) -> Term:
    """Return the cross-attention size of groups of equal layers, numbered from `first`."""
    return sum_terms(*(
        ProductOf((*bytes_per_token(layers[0], run_shape, _group_suffix(number)), *_source_tokens(layers, run_shape)))
        for number, layers in enumerate(groups, first)
    ))  # fmt: skip


def bytes_per_token(shape: LayerShape, run_shape: RunShape, suffix: str = "") -> tuple[Term, ...]:
    """Return the factors of the bytes that a token takes in one layer."""
    return (
        *key_value_widths(shape, suffix),
        NamedNumber(run_shape.rows, "batch"),
        NamedNumber(shape.heads, f"kv heads{suffix}"),
        _bytes(shape),
    )


def key_value_widths(shape: LayerShape, mark: str = "") -> tuple[Term, ...]:
    """Return the widths of keys and values together."""
    if shape.key_width == shape.value_width:
        return NamedNumber(2), NamedNumber(shape.key_width, f"head width{mark}")
    return (
        SumOf((NamedNumber(shape.key_width, f"key width{mark}"), NamedNumber(shape.value_width, f"value width{mark}"))),
    )


def counters_size(shapes: LayerShapes) -> Term:
    """Return the size of the token counters of fixed-size layers."""
    layers = sum(shape.has_keys for shape in shapes.own)
    return ProductOf((NamedNumber(COUNTER_BYTES, "counter"), NamedNumber(layers, "layers"))) if layers else SumOf(())


def compressed_sizes(shapes: LayerShapes, run_shape: RunShape) -> list[Term]:
    """Return the sizes of compressor entries, of buffered tokens, and of what the next entry needs of the last one."""
    terms: list[Term] = []
    rows = NamedNumber(run_shape.rows, "batch")
    rates: dict[int, list[CompressorShape]] = {}
    for compressor in (compressor for shape in shapes.own for compressor in shape.compressors):
        rates.setdefault(compressor.rate, []).append(compressor)
    for rate, alike in sorted(rates.items()):
        waiting = RemainderOf(rate, "buffered")
        entries = QuotientOf(DifferenceOf(Length(), waiting), NamedNumber(rate, "compression"))
        terms.append(ProductOf((NamedNumber(sum(one.entry for one in alike), "entry"), rows, entries)))
        terms.append(ProductOf((NamedNumber(sum(one.buffered for one in alike), "buffer"), rows, waiting)))
        if overlap := sum(one.overlap for one in alike):
            terms.append(ProductOf((NamedNumber(overlap, "overlap"), rows, MinimumOf(NamedNumber(1), entries))))
    return terms


def states_size(shapes: LayerShapes, run_shape: RunShape) -> Term:
    """Return the size of recurrent states."""
    each = sum(shape.state for shape in shapes.own)
    return NamedNumber(each * run_shape.rows, "states") if each else SumOf(())


def _bytes(shape: LayerShape) -> Term:
    return NamedNumber(shape.element_size, "bytes")


def _group_layers(shapes: Sequence[LayerShape]) -> dict[tuple[int, int, int, int], list[LayerShape]]:
    """Group the layers with keys by their bytes per token, in order of first appearance."""
    groups: dict[tuple[int, int, int, int], list[LayerShape]] = {}
    for shape in filter(lambda shape: shape.has_keys, shapes):
        groups.setdefault((shape.heads, shape.key_width, shape.value_width, shape.element_size), []).append(shape)
    return groups


def _tokens(layers: Sequence[LayerShape], span: TokensKept) -> list[Term]:
    """Return the tokens over all layers, with windowed layers listed separately if that makes a difference."""
    spans: dict[Term, int] = {}
    for layer in layers:
        tokens = within_windows(layer.window) if layer.always_drops else span(layer.window)
        spans[tokens] = spans.get(tokens, 0) + 1
    if len(spans) == 1:
        return [ProductOf((*spans, NamedNumber(len(layers), "layers")))]
    return [
        ProductOf((tokens, NamedNumber(number, "windowed layers" if isinstance(tokens, MinimumOf) else "full layers")))
        for tokens, number in sorted(spans.items(), key=lambda item: isinstance(item[0], MinimumOf))
    ]


def _source_tokens(layers: Sequence[LayerShape], run_shape: RunShape) -> list[Term]:
    if not layers or run_shape.source_length is None:
        return []
    return [ProductOf((NamedNumber(run_shape.source_length, "source"), NamedNumber(len(layers), "layers")))]


def _extra_sizes(shapes: LayerShapes, run_shape: RunShape) -> list[Term]:
    """Return the size of what grows with the text but is neither key nor value."""
    each = sum(shape.extra_per_token for shape in shapes.own)
    return [ProductOf((NamedNumber(each, "index"), NamedNumber(run_shape.rows, "batch"), Length()))] if each else []


def _group_suffix(number: int) -> str:
    """Return the suffix for the names of the second and later groups of layers."""
    return "" if number == 1 else f" {number}"
