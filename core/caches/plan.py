"""What a run's cache will take, before it does: predicted bytes by length, and the formula with the model's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from core.events import CachePlan, Event, Prefilled

if TYPE_CHECKING:
    from core.caches.tensors.shapes import LayerShape
    from core.decoding.run import DecodingRun

_POINTS = 16
"""Lengths between the prompt and the limit that are predicted, besides those where a curve bends."""
_MOST_BLOCKS = 8
"""Blocks of a quantized cache whose two ends are predicted; longer runs show the trend."""
_FIXED = ("static", "offloaded_static")
_UNPREDICTABLE = (AttributeError, KeyError, TypeError, ValueError, IndexError)
Numbers = dict[str, int]


def with_plan(run: DecodingRun, events: Iterator[Event]) -> Iterator[Event]:
    """The strategy's events, and behind `Prefilled` a `CachePlan`, where the model's layers can be told."""
    with closing(events) as inner:  # type: ignore[type-var]  # strategies are generators
        for event in inner:
            yield event
            if isinstance(event, Prefilled) and (plan := plan_of(run)) is not None:
                yield plan


def plan_of(run: DecodingRun) -> CachePlan | None:
    """Predictions for a run that has read its prompt; None for a memory that only the model itself knows."""
    try:
        return _plan(run)
    except _UNPREDICTABLE:
        return None


def _plan(run: DecodingRun) -> CachePlan:
    from core.caches.tensors.shapes import layer_shapes

    shapes, numbers, options = layer_shapes(run.model), _numbers(run), dict(run.request.cache_options)
    start, top = len(run.start_ids), max(run.max_length, len(run.start_ids))
    options["source_length"] = numbers.get("source", top)
    kind = _kind(run.backend.name, options)
    window, block = _window(kind, options, shapes), _block(kind, options)
    capacity = _capacity(run, options) if kind in _FIXED else None
    lengths = _lengths(start, top, window, block)
    predicted, dynamic = _curves(run, options, lengths, capacity)
    return CachePlan(
        backend=run.backend.name,
        formula=_formula(kind, shapes, numbers, options, run),
        parameters=tuple(numbers.items()),
        start=start,
        lengths=lengths,
        predicted=predicted,
        dynamic=dynamic,
        capacity=capacity,
        sinks=_sinks(options) if kind == "sink" else 0,
        window=window,
        block=block,
        bits=numbers.get("bits"),
    )


def _curves(
    run: DecodingRun, options: Mapping[str, Any], lengths: tuple[int, ...], capacity: int | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bytes at each length: by the run's own back end, and by the dynamic one."""
    from core.caches import registry

    def at(length: int) -> int:
        return run.backend.predict(run.model, capacity or length, run.rows, {**options, "tokens": length})

    plain = registry["dynamic"].predict
    return tuple(map(at, lengths)), tuple(plain(run.model, length, run.rows, options) for length in lengths)


def _numbers(run: DecodingRun) -> Numbers:
    """What every formula speaks of."""
    from core.caches.tensors.shapes import element_size, layer_shapes

    shapes = layer_shapes(run.model)
    attending = [shape for shape in shapes if shape.attends]
    numbers = {"batch": run.rows, "bytes": element_size(run.model), "layers": len(attending)}
    if attending:
        first = attending[0]
        numbers["kv heads"] = first.heads
        if first.key_width == first.value_width:
            numbers["head width"] = first.key_width
        else:
            numbers |= {"key width": first.key_width, "value width": first.value_width}
    if run.model.is_encoder_decoder:
        numbers["source"] = len(run.prompt_ids)
    return numbers


def _kind(backend: str, options: Mapping[str, Any]) -> str:
    """How the decoder's own half is kept."""
    return str(options.get("self") or "dynamic") if backend == "encoder_decoder" else backend


def _window(kind: str, options: Mapping[str, Any], shapes: list[LayerShape]) -> int | None:
    if kind == "sink":
        from core.caches.sink import WINDOW

        return int(options.get("window_length") or WINDOW.default)
    windows = [shape.window for shape in shapes if shape.window is not None]
    return min(windows) if windows and kind in ("sliding_window", "model_specific", *_FIXED) else None


def _capacity(run: DecodingRun, options: Mapping[str, Any]) -> int:
    """Tokens a fixed cache is allocated for."""
    from core.caches.tensors.fixed import rounded

    return rounded(max(run.room, options.get("max_cache_len") or 0), bool(options.get("compile")))


def _sinks(options: Mapping[str, Any]) -> int:
    from core.caches.sink import SINKS

    given = options.get("num_sink_tokens")
    return int(SINKS.default if given is None else given)


def _block(kind: str, options: Mapping[str, Any]) -> int | None:
    if kind != "quantized":
        return None
    from core.caches.quantized import recipe

    return recipe(options).residual


def _lengths(start: int, top: int, window: int | None, block: int | None) -> tuple[int, ...]:
    """Ascending, `start` and `top` among them: even steps, and both sides of every bend."""
    points = {start + round((top - start) * step / _POINTS) for step in range(_POINTS + 1)}
    if window is not None:
        points |= {window - 1, window}
    if block is not None:
        first = start // block + 1
        points |= {k * block + side for k in range(first, first + _MOST_BLOCKS) for side in (-1, 0)}
    return tuple(sorted(point for point in points if start <= point <= top))


def _formula(
    kind: str, shapes: list[LayerShape], numbers: Numbers, options: Mapping[str, Any], run: DecodingRun
) -> str:
    """Arithmetic on the names in `numbers` (which gains those of this kind) and `length`, tokens held or written."""
    terms = [_attention(kind, shapes, numbers, options, run)] if "kv heads" in numbers else []
    if kind in _FIXED and terms and not _is_on_disk(kind, options, run):
        numbers["counter"] = 8
        terms.append("counter · layers")
    if any(not shape.attends for shape in shapes) or run.model.is_recurrent:
        from core.caches.tensors.shapes import state_bytes

        numbers["states"] = state_bytes(run.model, run.rows)
        terms.append("states")
    return " + ".join(terms)


def _attention(
    kind: str, shapes: list[LayerShape], numbers: Numbers, options: Mapping[str, Any], run: DecodingRun
) -> str:
    width = "2 · head width" if "head width" in numbers else "(key width + value width)"
    if kind == "quantized":
        return _quantized(width, numbers, options)
    tokens = _tokens(kind, shapes, numbers, options, run)
    cross = " + source · layers" if run.model.is_encoder_decoder else ""
    whole = f"({tokens}{cross})" if " + " in tokens + cross else tokens
    return f"{width} · batch · kv heads · bytes · {whole}"


def _tokens(kind: str, shapes: list[LayerShape], numbers: Numbers, options: Mapping[str, Any], run: DecodingRun) -> str:
    """Tokens, over all layers."""
    if kind in _FIXED:
        numbers["room"] = _capacity(run, options)
        if not _is_on_disk(kind, options, run):
            return _windowed("room", kind, shapes, numbers, less="")
        return "room · layers + length + 1"
    if kind == "offloaded" and _is_on_disk(kind, options, run):
        return "length · layers + length + 1"
    if kind == "sink":
        numbers["window"] = _window(kind, options, shapes) or 0
        return "min(length, window − 1) · layers"
    return _windowed("length", kind, shapes, numbers, less=" − 1")


def _windowed(what: str, kind: str, shapes: list[LayerShape], numbers: Numbers, less: str) -> str:
    windows = [shape.window for shape in shapes if shape.attends and shape.window is not None]
    if not windows or kind in ("dynamic", "offloaded", "offloaded_static"):
        return f"{what} · layers"
    numbers |= {"window": windows[0], "windowed": len(windows)}
    full = f"{what} · (layers − windowed) + " if numbers["layers"] > len(windows) else ""
    return f"{full}min({what}, window{less}) · windowed"


def _quantized(width: str, numbers: Numbers, options: Mapping[str, Any]) -> str:
    """Codes with two 16-bit numbers a group, and the latest tokens as they are."""
    from core.caches.quantized import recipe

    chosen = recipe(options)
    channels = (numbers.get("head width") or numbers["key width"], numbers.get("head width") or numbers["value width"])
    numbers["bits"], numbers["block"] = chosen.width, chosen.residual
    numbers["key group"] = chosen.group_of(chosen.axis_key, channels[0])
    numbers["value group"] = chosen.group_of(chosen.axis_value, channels[1])
    cross = " + source · bytes" if "source" in numbers else ""
    share = "(length − exact) · (bits ÷ 8 + 2 ÷ key group + 2 ÷ value group)"
    return f"{width} · batch · kv heads · layers · ({share} + exact · bytes{cross})"


def _is_on_disk(kind: str, options: Mapping[str, Any], run: DecodingRun) -> bool:
    if not kind.startswith("offloaded"):
        return False
    from core.caches.tensors.places import place_for

    return place_for(run.model, options.get("place") or "auto") == "disk"
