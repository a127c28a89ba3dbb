"""Sizes of caches as arithmetic on what a model's layers keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from core.caches.cache_estimate import RunShape
from core.caches.tensors.compressed import CompressorShape
from core.caches.tensors.layer_shapes import LayerShape, LayerShapes
from core.size_terms import (
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

COUNTER_BYTES = 8
"""Every fixed layer counts its tokens in a tensor of its own."""
TokensKept = Callable[["int | None"], Term]
"""Window of a layer, or None → tokens that it keeps."""


def all_tokens(window: int | None) -> Term:
    """All tokens, whatever the window."""
    return Length()


def within_windows(window: int | None) -> Term:
    """One token less than the window: the next one fills it."""
    return (
        Length() if window is None else MinimumOf(Length(), DifferenceOf(NamedNumber(window, "window"), NamedNumber(1)))
    )


def allocated_span(capacity: int) -> TokensKept:
    """Room for so many tokens, or for the window."""
    taken = NamedNumber(capacity, "room")
    return lambda window: taken if window is None else MinimumOf(taken, NamedNumber(window, "window"))


def full_span(capacity: int) -> TokensKept:
    """Room for so many tokens in every layer."""
    return lambda window: NamedNumber(capacity, "room")


def prepared_tokens() -> tuple[Term, ...]:
    """A layer that is in memory ready for one more token."""
    return Length(), NamedNumber(1)


def resident_size(shapes: LayerShapes, run: RunShape) -> Term:
    """Of layers that wait elsewhere: the one in use, and the next on its way."""
    layers = max(1, sum(shape.has_keys for shape in shapes.own))
    return ProductOf((NamedNumber(2), QuotientOf(cache_size(shapes, run, all_tokens), NamedNumber(layers, "layers"))))


def sum_terms(*parts: Term) -> Term:
    """Their sum, without those that are nothing."""
    flat = [part for part in parts if part != SumOf(())]
    return flat[0] if len(flat) == 1 else SumOf(tuple(flat))


def cache_size(shapes: LayerShapes, run: RunShape, tokens_kept: TokensKept, extra: Sequence[Term] = ()) -> Term:
    """Keys and values, cross-attention's too, and states. `extra`: tokens of the first layer that are there twice."""
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
    """What the decoder keeps of an encoder's source."""
    return _cross_size(_group_layers(shapes.cross).values(), run, first=1)


def _cross_size(groups: Iterable[Sequence[LayerShape]], situation: RunShape, first: int) -> Term:
    """The same for groups of alike layers, numbered from `first`."""
    return sum_terms(*(
        ProductOf((*bytes_per_token(layers[0], situation, _group_suffix(number)), *_source_tokens(layers, situation)))
        for number, layers in enumerate(groups, first)
    ))  # fmt: skip


def bytes_per_token(shape: LayerShape, situation: RunShape, suffix: str = "") -> tuple[Term, ...]:
    """Factors of the bytes that a token takes in one layer."""
    return (
        *key_value_widths(shape, suffix),
        NamedNumber(situation.rows, "batch"),
        NamedNumber(shape.heads, f"kv heads{suffix}"),
        _bytes(shape),
    )


def key_value_widths(shape: LayerShape, mark: str = "") -> tuple[Term, ...]:
    """Numbers of keys and values together."""
    if shape.key_width == shape.value_width:
        return NamedNumber(2), NamedNumber(shape.key_width, f"head width{mark}")
    return (
        SumOf((NamedNumber(shape.key_width, f"key width{mark}"), NamedNumber(shape.value_width, f"value width{mark}"))),
    )


def counters_size(shapes: LayerShapes) -> Term:
    """Of layers of fixed size."""
    layers = sum(shape.has_keys for shape in shapes.own)
    return ProductOf((NamedNumber(COUNTER_BYTES, "counter"), NamedNumber(layers, "layers"))) if layers else SumOf(())


def compressed_sizes(shapes: LayerShapes, situation: RunShape) -> list[Term]:
    """Entries of compressors, the tokens that wait in their buffers, and what the next entry needs of the last."""
    terms: list[Term] = []
    rows = NamedNumber(situation.rows, "batch")
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


def states_size(shapes: LayerShapes, situation: RunShape) -> Term:
    """Recurrent states."""
    each = sum(shape.state for shape in shapes.own)
    return NamedNumber(each * situation.rows, "states") if each else SumOf(())


def _bytes(shape: LayerShape) -> Term:
    return NamedNumber(shape.element_size, "bytes")


def _group_layers(shapes: Sequence[LayerShape]) -> dict[tuple[int, int, int, int], list[LayerShape]]:
    """Layers that attend by what a token takes in them, in the order they are met."""
    groups: dict[tuple[int, int, int, int], list[LayerShape]] = {}
    for shape in filter(lambda shape: shape.has_keys, shapes):
        groups.setdefault((shape.heads, shape.key_width, shape.value_width, shape.element_size), []).append(shape)
    return groups


def _tokens(layers: Sequence[LayerShape], span: TokensKept) -> list[Term]:
    """Tokens over all layers, those with windows apart where that makes a difference."""
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


def _source_tokens(layers: Sequence[LayerShape], situation: RunShape) -> list[Term]:
    if not layers or situation.source_length is None:
        return []
    return [ProductOf((NamedNumber(situation.source_length, "source"), NamedNumber(len(layers), "layers")))]


def _extra_sizes(shapes: LayerShapes, situation: RunShape) -> list[Term]:
    """What grows with the text and is neither key nor value."""
    each = sum(shape.extra_per_token for shape in shapes.own)
    return [ProductOf((NamedNumber(each, "index"), NamedNumber(situation.rows, "batch"), Length()))] if each else []


def _group_suffix(number: int) -> str:
    """Behind the names of the second and later kinds of layers."""
    return "" if number == 1 else f" {number}"
