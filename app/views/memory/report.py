"""What the inspector says of the cache at one place in the text. No Qt."""

from __future__ import annotations

from app.state.cache_history import CacheHistory, Part, Point
from app.state.run import Run
from app.views.memory.tokens import EVICTED, EXACT, PACKED, RECENT, SINK, cost, states
from app.views.reports import NodeReport, ReportRow
from core import sizes, words

_PARTS = {"self": "self-attention", "cross": "cross-attention", "scales": "scales and offsets", "residual": "exact"}
_PLACES = {"host": "memory", "device": "GPU", "disk": "disk"}


def part_name(part: Part, parts: list[Part]) -> str:
    """`keys`, with its place where there are several."""
    name = _PARTS.get(part[1], part[1])
    several = len({place for place, _ in parts}) > 1
    return f"{name}, {_PLACES.get(part[0], part[0])}" if several else name


def _tokens(number: int) -> str:
    return words.count(number, "token")


def report_on(model: CacheHistory, run: Run, x: int) -> NodeReport | None:
    """The cache when `x` tokens were written; None before the first measurement."""
    point = model.at(x)
    if point is None:
        return None
    length = model.length_at(x)
    return NodeReport(
        heading=f"After token {x:,}" if x else "After the prompt",
        token=words.size(point.bytes),
        facts=_facts(model, run, point, x),
        sentence=sentence(model, point, length),
        table_title="What is held",
        columns=("part", "bytes"),
        rows=tuple(_rows(model, point, length)),
        formula=formula_lines(model, length),
        formula_title="Predicted",
    )


def _facts(model: CacheHistory, run: Run, point: Point, x: int) -> str:
    device = run.started.device.upper() if run.started is not None else ""
    places = {place for (place, _), size in point.parts if size}
    where = " and on disk" if "disk" in places else ""
    facts = [f"{point.bytes:,} bytes on the {device}{where}", f"peak {words.size(model.peak(x))}"]
    if point.error is not None:
        facts.append(f"error of the keys {point.error * 100:.1f} %")
    if not point.measured:
        facts.append("between two measurements")
    return " · ".join(facts)


def _rows(model: CacheHistory, point: Point, length: int) -> list[ReportRow]:
    names, sizes = model.parts, dict(point.parts)
    rows = [ReportRow((part_name(part, names), f"{sizes[part]:,}")) for part in names if sizes.get(part)]
    plan = model.plan
    if plan is None or not point.tokens:
        return rows
    marks = states(model, point, length)
    for state, word in ((SINK, "sinks"), (RECENT, "recent"), (PACKED, f"in {plan.bits} bits"), (EXACT, "exact")):
        if (count := marks.count(state)) and (plan.window or plan.block):
            rows.append(ReportRow((f"{word} ({_tokens(count)})", f"{count * cost(model, state):,}"), faint=True))
    if evicted := marks.count(EVICTED):
        rows.append(ReportRow(("evicted", _tokens(evicted)), faint=True))
    return rows


def tip(model: CacheHistory, x: int) -> str:
    """What hovering over the curve says: what was held after `x` tokens, or will be; empty where nobody knows."""
    length, point = model.length_at(x), model.at(min(x, model.written))
    if x > model.written or point is None:
        size = model.forecast.predicted(length)
        return f"after token {x:,}: {round(size):,} bytes predicted" if size is not None else ""
    lines = [f"after token {x:,}: {point.bytes:,} bytes ({words.size(point.bytes)})"]
    if point.tokens:
        lines.append(f"{length:,} tokens read")
    lines += [f"{part_name(part, model.parts)} {size:,}" for part, size in point.parts if size]
    return "\n".join(lines)


def reuse_line(run: Run) -> str:
    """What the run could start from; empty when it began from nothing."""
    reused = run.prefilled.reused if run.prefilled is not None else 0
    if not reused:
        return ""
    computed = len(run.before) - reused
    return f"Started from {_tokens(reused)} read before; {computed:,} computed."


def sentence(model: CacheHistory, point: Point, length: int) -> str:
    """One thing worth knowing, from the run's own figures."""
    plan = model.plan
    if plan is None:
        return f"The cache holds {words.size(point.bytes)}; this model's memory has no formula."
    dynamic = words.size(round(model.forecast.dynamic(length) or 0))
    if not model.forecast.per_token:
        return f"Whatever was read is folded into a state of {words.size(point.bytes)}; it does not grow with the text."
    if any(part == "cross" for _, part in model.parts):
        cross = sum(size for (_, part), size in point.parts if part == "cross")
        return (
            f"{words.size(cross)} hold what the encoder read and never change; the rest grows by "
            f"{model.forecast.per_token:,} bytes a token."
        )
    if plan.window is not None and plan.backend == "sink":
        if length < plan.window:
            return f"There is room for {_tokens(plan.window - 1)}; so far none had to go. Then the oldest will."
        latest = plan.window - 1 - plan.sinks
        return (
            f"The first {_tokens(plan.sinks)} stay as sinks; of the rest only the latest {latest:,}. Without it, the "
            f"cache would hold {dynamic} by now."
        )
    return _plain_sentence(model, point, length, dynamic)


def _plain_sentence(model: CacheHistory, point: Point, length: int, dynamic: str) -> str:
    plan = model.plan
    assert plan is not None
    if plan.window is not None:
        return f"Windowed layers hold the latest {plan.window - 1:,} tokens only; everything kept would be {dynamic}."
    if plan.block is not None:
        return (
            f"Every {plan.block} tokens are written in {plan.bits} bits a number, the latest {length % plan.block} "
            f"still wait as they are. Unharmed, all of them would take {dynamic}."
        )
    if plan.capacity is not None:
        used = min(1.0, length / plan.capacity)
        return f"Room for {plan.capacity:,} tokens was taken at once; {used * 100:.0f} % of it is in use."
    if any(place == "disk" for place, _ in model.parts):
        disk = sum(size for (place, _), size in point.parts if place == "disk")
        return f"{words.size(disk)} wait on disk; only one layer at a time is in memory between two steps."
    return f"Every token adds {model.forecast.per_token:,} bytes, and none is ever forgotten."


def formula_lines(model: CacheHistory, length: int) -> str:
    """The formula in words, then in numbers, then its result; empty where there is none."""
    plan, size = model.plan, model.forecast.predicted(length)
    if plan is None or size is None:
        return ""
    worked = [] if sizes.is_a_number(plan.size) else [f"= {sizes.in_numbers(plan.size, length)}"]
    return "\n".join([sizes.in_names(plan.size), *worked, f"= {round(size):,} bytes"])


def formula_line(model: CacheHistory, length: int) -> str:
    """The formula in numbers and its result, on one line."""
    lines = formula_lines(model, length).split("\n")[1:]
    return "predicted " + " ".join(lines) if lines else ""
