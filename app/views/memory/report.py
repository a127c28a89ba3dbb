"""The inspector's report on the cache at one position of the text. No Qt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decodescope.app.state.cache_history import CacheHistory, CachePart, CachePoint
from decodescope.app.state.run import Run
from decodescope.app.views.memory.cached_tokens import EVICTED, EXACT, PACKED, RECENT, SINK, token_bytes, token_states
from decodescope.app.views.node_reports import NodeReport, ReportRow
from decodescope.app.views.text.token_wording import format_token_count
from decodescope.app.widgets.plots import BYTES, PlotArea, PlotAxis, PlotBars, PlotLine, PlotSpec
from decodescope.core import sizes, words
from decodescope.core.events import CachePlan
from decodescope.resources.depth import pick
from decodescope.resources.language import mark, tr, trn


def cache_sentence(model: CacheHistory, point: CachePoint, length: int) -> str:
    """Return the sentence for the run's cache; `length` is the number of tokens read."""
    plan = model.plan
    if plan is None:
        return tr("The cache holds {size}; the size of this model's cache cannot be calculated in advance.").format(
            size=words.size(point.bytes)
        )
    if not model.forecast.per_token:
        return _recurrent_sentence(point)
    if any(part == "cross" for _, part in model.parts):
        return _encoder_sentence(model, point)
    if plan.window is not None:
        dynamic = round(model.forecast.dynamic(length) or 0)
        return _window_sentence(plan, length, dynamic, model.forecast.kept_per_token > 0)
    if plan.block is not None:
        return _quantized_sentence(plan, plan.block, length, round(model.forecast.dynamic(length) or 0))
    if plan.capacity is not None:
        return _static_sentence(plan.capacity, length)
    if any(place == "disk" for place, _ in model.parts):
        return _disk_sentence(sum(size for (place, _), size in point.parts if place == "disk"))
    if (texts := model.shared_rows(point)) > 1:
        return _shared_sentence(point, texts, model.forecast.per_token)
    if states := sum(size for (_, part), size in point.parts if part == "state"):
        return _hybrid_sentence(states, model.forecast.per_token, length)
    return _dynamic_sentence(model.forecast.per_token, length)


def _shared_sentence(point: CachePoint, texts: int, per_token: int) -> str:
    """Describe the cache of a prompt that several texts still share."""
    return pick(
        tr("{size} store the prompt once for all {texts} texts. From the next step on, each text has its own copy."),
        tr("{size} store the prompt once for all {texts} texts. From the next step on, each has its own copy, and "
           "every step adds {per_token:,} bytes."),
        tr("{bytes:,} bytes: one row for {texts} texts. From the next step on {texts} rows, {per_token:,} bytes per "
           "step."),
    ).format(size=words.size(point.bytes), bytes=point.bytes, texts=texts, per_token=per_token)  # fmt: skip


def _hybrid_sentence(states: int, per_token: int, length: int) -> str:
    """Describe a cache of which some layers keep a state of constant size."""
    return pick(
        tr("Every word piece adds {per_token:,} bytes; some layers fold everything read into {size} instead."),
        tr("Every token adds {per_token:,} bytes; some layers keep a state of {size} instead, which does not grow."),
        trn(
            "{per_token:,} bytes per token × {length:,} token + {bytes:,} bytes of states.",
            "{per_token:,} bytes per token × {length:,} tokens + {bytes:,} bytes of states.",
            length,
        ),
    ).format(per_token=per_token, length=length, size=words.size(states), bytes=states)


def _recurrent_sentence(point: CachePoint) -> str:
    return pick(
        tr("Everything read is folded into {size}; that size never changes."),
        tr("Everything read is folded into a state of {size}; it does not grow with the text."),
        tr("Recurrent state: {bytes:,} bytes, independent of the text length."),
    ).format(size=words.size(point.bytes), bytes=point.bytes)


def _encoder_sentence(model: CacheHistory, point: CachePoint) -> str:
    cross = sum(size for (_, part), size in point.parts if part == "cross")
    return pick(
        tr("{size} store the given text and do not change; every word piece written adds {per_token:,} bytes."),
        tr("{size} store the encoder's output and never change; the rest grows by {per_token:,} bytes per token."),
        tr("Cross-attention: {bytes:,} bytes, constant; self-attention: {per_token:,} bytes per token."),
    ).format(size=words.size(cross), bytes=cross, per_token=model.forecast.per_token)


def _window_sentence(plan: CachePlan, length: int, dynamic: int, has_full_layers: bool) -> str:
    window = plan.window or 0
    facts = {"dynamic": words.size(dynamic), "bytes": dynamic, "room": window - 1}
    if not plan.sinks:
        return pick(
            tr(
                "Some layers remember only the latest {room:,} word pieces; remembering everything in all layers would "
                "take {dynamic}."
            )
            if has_full_layers
            else tr(
                "Only the latest {room:,} word pieces are remembered; remembering everything would take {dynamic}."
            ),
            trn(
                "Windowed layers store only the latest token; a full cache would take {dynamic}.",
                "Windowed layers store only the latest {room:,} tokens; a full cache would take {dynamic}.",
                window - 1,
            ),
            trn(
                "Windowed layers store w − 1 = {room:,} position; a full cache would take {bytes:,} bytes.",
                "Windowed layers store w − 1 = {room:,} positions; a full cache would take {bytes:,} bytes.",
                window - 1,
            ),
        ).format(**facts)
    if length < window:
        return pick(
            tr("There is room for {room:,} word pieces; none is forgotten yet. When it is full, the oldest go first."),
            tr("There is room for {tokens}; none dropped yet. When it is full, the oldest go first."),
            tr("{length:,} of {room:,} positions are used; nothing is evicted yet."),
        ).format(**facts, tokens=format_token_count(window - 1), length=length)
    return pick(
        tr("The first {sinks} and the latest {latest:,} word pieces are remembered; those in between are "
            "forgotten. Remembering everything would take {dynamic}."),
        tr("The first {tokens} are kept as sinks, and of the rest only the latest {latest:,}. A full "
            "cache would take {dynamic} by now."),
        tr("{sinks} sinks + the latest {latest:,} of {length:,} positions; a dynamic cache would take "
            "{bytes:,} bytes."),
    ).format(**facts, tokens=format_token_count(plan.sinks), sinks=plan.sinks, latest=window - 1 - plan.sinks,
             length=length)  # fmt: skip


def _quantized_sentence(plan: CachePlan, block: int, length: int, dynamic: int) -> str:
    waiting = length % block
    return pick(
        _plain_quantized_template(waiting, length),
        _quantized_template(waiting),
        tr("{packed:,} positions in {bits} bits, {waiting} in full precision, blocks of {block}; a "
            "dynamic cache would take {bytes:,} bytes."),
    ).format(block=block, bits=plan.bits, waiting=waiting, packed=length - waiting, dynamic=words.size(dynamic),
             bytes=dynamic)  # fmt: skip


def _plain_quantized_template(waiting: int, length: int) -> str:
    if not waiting:
        return tr("All word pieces are stored roughly. Storing everything exactly would take {dynamic}.")
    if waiting == length:
        return tr("Nothing is stored roughly yet: the first {block} word pieces must be there first.")
    return trn(
        "Older word pieces are stored roughly, the latest one exactly. Storing everything exactly would take "
        "{dynamic}.",
        "Older word pieces are stored roughly, the latest {waiting} exactly. Storing everything exactly would take "
        "{dynamic}.",
        waiting,
    )


def _quantized_template(waiting: int) -> str:
    if not waiting:
        return tr("Every {block} tokens are quantized to {bits} bits, now all of them. Unquantized, all would take "
                  "{dynamic}.")  # fmt: skip
    return trn(
        "Every {block} tokens are quantized to {bits} bits; the latest one is not quantized yet. Unquantized, all "
        "would take {dynamic}.",
        "Every {block} tokens are quantized to {bits} bits; the latest {waiting} are not quantized yet. Unquantized, "
        "all would take {dynamic}.",
        waiting,
    )


def _static_sentence(capacity: int, length: int) -> str:
    return pick(
        tr("Room for {capacity:,} word pieces was reserved at once; {used} of it is used."),
        tr("Room for {capacity:,} tokens was reserved at once; {used} of it is used."),
        tr("{length:,} of {capacity:,} allocated positions are used, {used}."),
    ).format(capacity=capacity, length=length, used=words.percent(min(1.0, length / capacity), is_exact=True))


def _disk_sentence(size: int) -> str:
    return pick(
        tr("{size} are on the disk and are fetched piece by piece when needed."),
        tr("{size} are on disk; between two steps only one layer at a time is in memory."),
        tr("{bytes:,} bytes on disk; between two steps one layer at a time is in memory."),
    ).format(size=words.size(size), bytes=size)


def _dynamic_sentence(per_token: int, length: int) -> str:
    return pick(
        tr("Every word piece adds {per_token:,} bytes; nothing is ever forgotten."),
        tr("Every token adds {per_token:,} bytes; nothing is ever dropped."),
        trn(
            "{per_token:,} bytes per token × {length:,} token; nothing is evicted.",
            "{per_token:,} bytes per token × {length:,} tokens; nothing is evicted.",
            length,
        ),
    ).format(per_token=per_token, length=length)


_PART_NAMES = {
    "keys": mark("keys"),
    "values": mark("values"),
    "state": mark("state"),
    "self": mark("self-attention"),
    "cross": mark("cross-attention"),
    "scales": mark("scales and offsets"),
    "residual": mark("unquantized"),
}
_DEVICE_NAMES = {"host": mark("memory"), "device": "GPU", "disk": mark("disk")}


def part_name(part: CachePart, parts: list[CachePart]) -> str:
    """Return the part's name, with its device if there are several."""
    name = tr(_PART_NAMES[part[1]]) if part[1] in _PART_NAMES else part[1]
    place = tr(_DEVICE_NAMES[part[0]]) if part[0] in _DEVICE_NAMES else part[0]
    several = len({place for place, _ in parts}) > 1
    return tr("{part}, {place}").format(part=name, place=place) if several else name


def cache_report(model: CacheHistory, run: Run, x: int) -> NodeReport | None:
    """Return the report on the cache after `x` generated tokens; None before the first measurement."""
    point = model.at(x)
    if point is None:
        return None
    length = model.length_at(x)
    return NodeReport(
        heading=tr("After token {number:,}").format(number=x) if x else tr("After the prompt"),
        term="kv_cache",
        token=words.size(point.bytes),
        facts=_facts(model, run, point, x),
        sentence=cache_sentence(model, point, length),
        table_title=tr("Contents"),
        columns=(tr("part"), tr("bytes")),
        rows=tuple(_report_rows(model, point, length)),
        formula=formula_lines(model, length) if model.shared_rows(point) == 1 else "",
        formula_title=tr("Predicted"),
    )


def _facts(model: CacheHistory, run: Run, point: CachePoint, x: int) -> str:
    device = run.started.device.upper() if run.started is not None else ""
    places = {place for (place, _), size in point.parts if size}
    held = (
        tr("{bytes:,} bytes on the {device} and on disk") if "disk" in places else tr("{bytes:,} bytes on the {device}")
    )
    facts = [
        held.format(bytes=point.bytes, device=device),
        tr("peak {size}").format(size=words.size(model.peak(x))),
    ]
    if point.spare and point.measured:
        facts.append(tr("{size} of room for later tokens").format(size=words.size(point.spare)))
    if run.started is not None and run.started.placement:
        parts = (
            tr("{size} on {device}").format(size=words.size(size), device=tr("the host") if place == "cpu" else place)
            for place, size in run.started.placement
        )
        facts.append(tr("weights: {parts}").format(parts=tr(", ").join(parts)))
    if point.device_memory[0]:
        used, reserved, free = map(words.size, point.device_memory)
        sentence = tr("{device} memory: {used} in tensors, {reserved} reserved, {free} free")
        facts.append(sentence.format(device=device, used=used, reserved=reserved, free=free))
    if point.error is not None:
        facts.append(tr("key error {error}").format(error=words.percent(point.error, is_exact=True)))
    if not point.measured:
        facts.append(tr("between two measurements"))
    return " · ".join(facts)


def _report_rows(model: CacheHistory, point: CachePoint, length: int) -> list[ReportRow]:
    names, sizes = model.parts, dict(point.parts)
    rows = [ReportRow((part_name(part, names), f"{sizes[part]:,}")) for part in names if sizes.get(part)]
    plan = model.plan
    if plan is None or not point.tokens:
        return rows
    marks = token_states(model, point, length)
    for state, word in (
        (SINK, tr("sinks")),
        (RECENT, tr("recent")),
        (PACKED, tr("in {bits} bits").format(bits=plan.bits)),
        (EXACT, tr("unquantized")),
    ):
        if (count := marks.count(state)) and (plan.window or plan.block):
            name = tr("{state} ({tokens})").format(state=word, tokens=format_token_count(count))
            size = count * token_bytes(model, state) // model.shared_rows(point)
            rows.append(ReportRow((name, f"{size:,}"), faint=True))
    if evicted := marks.count(EVICTED):
        kept = evicted * token_bytes(model, EVICTED)
        name = (
            tr("in full layers only ({tokens})").format(tokens=format_token_count(evicted)) if kept else tr("evicted")
        )
        rows.append(ReportRow((name, f"{kept:,}" if kept else format_token_count(evicted)), faint=True))
    return rows


def curve_tooltip(model: CacheHistory, x: int) -> str:
    """Return the curve's tooltip: the measured or predicted size after `x` tokens; empty if unknown."""
    length, point = model.length_at(x), model.at(min(x, model.written))
    if x > model.written or point is None:
        size = model.forecast.predicted(length)
        template = tr("after token {number:,}: {bytes:,} bytes predicted")
        return template.format(number=x, bytes=round(size)) if size is not None else ""
    measured = tr("after token {number:,}: {bytes:,} bytes ({size})")
    lines = [measured.format(number=x, bytes=point.bytes, size=words.size(point.bytes))]
    if point.tokens:
        lines.append(trn("{count:,} token read", "{count:,} tokens read", length).format(count=length))
    lines += [f"{part_name(part, model.parts)} {size:,}" for part, size in point.parts if size]
    return "\n".join(lines)


def reuse_line(run: Run) -> str:
    """Return how many tokens were reused from a prefix; empty if none."""
    reused = run.prefilled.reused if run.prefilled is not None else 0
    if not reused:
        return ""
    computed = len(run.before) - reused
    return tr("{tokens} reused from the cache; {computed:,} computed.").format(
        tokens=format_token_count(reused), computed=computed
    )


def formula_lines(model: CacheHistory, length: int) -> str:
    """Return the formula in words, in numbers, and its result; empty if there is none."""
    worked = _evaluated_formula(model, length)
    return "\n".join([sizes.format_names(model.plan.size), *worked]) if model.plan is not None and worked else ""


def formula_line(model: CacheHistory, length: int) -> str:
    """Return the formula in numbers and its result on one line."""
    worked = _evaluated_formula(model, length)
    return tr("predicted {formula}").format(formula=" ".join(worked)) if worked else ""


def _evaluated_formula(model: CacheHistory, length: int) -> list[str]:
    """Return the formula in numbers (unless it is a number itself) and the result; empty if there is none."""
    plan, size = model.plan, model.forecast.predicted(length)
    if plan is None or size is None:
        return []
    numbers = [] if sizes.is_constant(plan.size) else [f"= {sizes.format_numbers(plan.size, length)}"]
    return [*numbers, tr("= {bytes:,} bytes").format(bytes=round(size))]


PART_COLOURS = {"keys": "kept", "values": "finished", "scales": "best", "residual": "refused", "self": "kept",
                "cross": "finished", "state": "best"}  # fmt: skip


def bytes_over_run(history: CacheHistory, cursor: int, right: int) -> PlotSpec:
    """Return the measured bytes up to `cursor` as stacked areas, below the prediction up to `right`."""
    curve = history.curve(cursor)
    return PlotSpec(
        x=PlotAxis(tr("generated tokens"), integers_only=True),
        y=PlotAxis(tr("bytes in the cache"), words.size, BYTES),
        xs=tuple(float(point.x) for point in curve),
        areas=tuple(_area(part, history.parts, curve) for part in history.parts),
        lines=tuple(_forecast_lines(history, max(right, cursor))),
        right=float(max(right, cursor)),
    )


def part_colour(part: CachePart) -> str:
    """Return the theme colour of a part."""
    return PART_COLOURS.get(part[1], "accent")


def _area(part: CachePart, parts: list[CachePart], curve: Sequence[CachePoint]) -> PlotArea:
    values = tuple(float(dict(point.parts).get(part, 0)) for point in curve)
    return PlotArea(part_name(part, parts), part_colour(part), values, hatched=part[0] == "disk")


def _forecast_lines(history: CacheHistory, right: int) -> Iterator[PlotLine]:
    predicted, dynamic = history.lines(right)
    if dynamic and not history.forecast.is_plain:
        yield PlotLine(tr("dynamic cache"), "muted", tuple(dynamic), (5.0, 4.0))
    if predicted:
        yield PlotLine(tr("predicted"), "warning", tuple(predicted), (1.5, 3.0))


def bytes_by_layer(history: CacheHistory, point: CachePoint) -> PlotSpec:
    """Return a bar for each layer with data."""
    halves = any(part in ("self", "cross") for _, part in history.parts)
    half = len(point.layers) // 2
    labels, sizes, tips = [], [], []
    for number, size in enumerate(point.layers):
        if not size:  # an encoder–decoder's cache has slots for layers that its decoder lacks
            continue
        place = number % half + 1 if halves and half else number + 1
        template = (tr("self {place}") if number < half else tr("cross {place}")) if halves else tr("layer {place}")
        name = template.format(place=place)
        labels.append(name if halves else str(place))
        sizes.append(float(size))
        tip = tr("{layer}: {bytes:,} bytes ({size})").format(layer=name, bytes=size, size=words.size(size))
        tips.append(tip)
    return PlotSpec(
        x=PlotAxis(tr("layer"), labels=tuple(labels)),
        y=PlotAxis(tr("bytes"), words.size, BYTES, is_visible=False),
        bars=(PlotBars("", "accent", tuple(sizes), tooltips=tuple(tips)),) if sizes else (),
    )


def layers_title(point: CachePoint) -> str:
    """Return `Per layer`, and the size of each if all are equal."""
    sizes = {size for size in point.layers if size}
    return tr("Per layer, {size} each").format(size=words.size(min(sizes))) if len(sizes) == 1 else tr("Per layer")
