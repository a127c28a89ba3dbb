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
Span = Callable[["int | None"], Term]
"""Window of a layer, or None → tokens that it keeps."""


def everything(window: int | None) -> Term:
    """All tokens, whatever the window."""
    return Length()


def within_windows(window: int | None) -> Term:
    """One token less than the window: the next one fills it."""
    return (
        Length() if window is None else MinimumOf(Length(), DifferenceOf(NamedNumber(window, "window"), NamedNumber(1)))
    )


def allocated(room: int) -> Span:
    """Room for so many tokens, or for the window."""
    taken = NamedNumber(room, "room")
    return lambda window: taken if window is None else MinimumOf(taken, NamedNumber(window, "window"))


def whatever_the_window(room: int) -> Span:
    """Room for so many tokens in every layer."""
    return lambda window: NamedNumber(room, "room")


def ready() -> tuple[Term, ...]:
    """A layer that is in memory ready for one more token."""
    return Length(), NamedNumber(1)


def at_hand(shapes: LayerShapes, situation: RunShape) -> Term:
    """Of layers that wait elsewhere: the one in use, and the next on its way."""
    layers = max(1, sum(shape.attends for shape in shapes.own))
    return ProductOf((NamedNumber(2), QuotientOf(kept(shapes, situation, everything), NamedNumber(layers, "layers"))))


def total(*parts: Term) -> Term:
    """Their sum, without those that are nothing."""
    flat = [part for part in parts if part != SumOf(())]
    return flat[0] if len(flat) == 1 else SumOf(tuple(flat))


def kept(shapes: LayerShapes, situation: RunShape, span: Span, extra: Sequence[Term] = ()) -> Term:
    """Keys and values, cross-attention's too, and states. `extra`: tokens of the first layer that are there twice."""
    groups, cross = _alike(shapes.own), _alike(shapes.cross)
    parts: list[Term] = []
    for number, (key, layers) in enumerate(groups.items(), 1):
        tokens = [*_tokens(layers, span), *(extra if number == 1 else ()), *_source(cross.pop(key, []), situation)]
        parts.append(ProductOf((*each_token(layers[0], situation, _mark(number)), total(*tokens))))
    rest = _read(cross.values(), situation, first=len(groups) + 1)
    return total(*parts, rest, *_beside(shapes, situation), *compressed(shapes, situation), states(shapes, situation))


def read_by_cross_attention(shapes: LayerShapes, situation: RunShape) -> Term:
    """What the decoder keeps of an encoder's source."""
    return _read(_alike(shapes.cross).values(), situation, first=1)


def _read(groups: Iterable[Sequence[LayerShape]], situation: RunShape, first: int) -> Term:
    """The same for groups of alike layers, numbered from `first`."""
    return total(*(
        ProductOf((*each_token(layers[0], situation, _mark(number)), *_source(layers, situation)))
        for number, layers in enumerate(groups, first)
    ))  # fmt: skip


def each_token(shape: LayerShape, situation: RunShape, mark: str = "") -> tuple[Term, ...]:
    """Factors of the bytes that a token takes in one layer."""
    return (
        *widths(shape, mark),
        NamedNumber(situation.rows, "batch"),
        NamedNumber(shape.heads, f"kv heads{mark}"),
        _bytes(shape),
    )


def widths(shape: LayerShape, mark: str = "") -> tuple[Term, ...]:
    """Numbers of keys and values together."""
    if shape.key_width == shape.value_width:
        return NamedNumber(2), NamedNumber(shape.key_width, f"head width{mark}")
    return (
        SumOf((NamedNumber(shape.key_width, f"key width{mark}"), NamedNumber(shape.value_width, f"value width{mark}"))),
    )


def counters(shapes: LayerShapes) -> Term:
    """Of layers of fixed size."""
    layers = sum(shape.attends for shape in shapes.own)
    return ProductOf((NamedNumber(COUNTER_BYTES, "counter"), NamedNumber(layers, "layers"))) if layers else SumOf(())


def compressed(shapes: LayerShapes, situation: RunShape) -> list[Term]:
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


def states(shapes: LayerShapes, situation: RunShape) -> Term:
    """Recurrent states."""
    each = sum(shape.state for shape in shapes.own)
    return NamedNumber(each * situation.rows, "states") if each else SumOf(())


def _bytes(shape: LayerShape) -> Term:
    return NamedNumber(shape.size, "bytes")


def _alike(shapes: Sequence[LayerShape]) -> dict[tuple[int, int, int, int], list[LayerShape]]:
    """Layers that attend by what a token takes in them, in the order they are met."""
    groups: dict[tuple[int, int, int, int], list[LayerShape]] = {}
    for shape in filter(lambda shape: shape.attends, shapes):
        groups.setdefault((shape.heads, shape.key_width, shape.value_width, shape.size), []).append(shape)
    return groups


def _tokens(layers: Sequence[LayerShape], span: Span) -> list[Term]:
    """Tokens over all layers, those with windows apart where that makes a difference."""
    spans: dict[Term, int] = {}
    for layer in layers:
        tokens = within_windows(layer.window) if layer.forgets else span(layer.window)
        spans[tokens] = spans.get(tokens, 0) + 1
    if len(spans) == 1:
        return [ProductOf((*spans, NamedNumber(len(layers), "layers")))]
    return [
        ProductOf((tokens, NamedNumber(number, "windowed layers" if isinstance(tokens, MinimumOf) else "full layers")))
        for tokens, number in sorted(spans.items(), key=lambda item: isinstance(item[0], MinimumOf))
    ]


def _source(layers: Sequence[LayerShape], situation: RunShape) -> list[Term]:
    if not layers or situation.source is None:
        return []
    return [ProductOf((NamedNumber(situation.source, "source"), NamedNumber(len(layers), "layers")))]


def _beside(shapes: LayerShapes, situation: RunShape) -> list[Term]:
    """What grows with the text and is neither key nor value."""
    each = sum(shape.beside for shape in shapes.own)
    return [ProductOf((NamedNumber(each, "index"), NamedNumber(situation.rows, "batch"), Length()))] if each else []


def _mark(number: int) -> str:
    """Behind the names of the second and later kinds of layers."""
    return "" if number == 1 else f" {number}"
