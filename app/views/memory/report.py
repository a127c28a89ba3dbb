"""What the inspector says of the cache at one place in the text. No Qt."""

from __future__ import annotations

from app.state.cache_history import CacheHistory, CachePart, CachePoint
from app.state.run import Run
from app.views.memory.cache_sentences import cache_sentence
from app.views.memory.cached_tokens import EVICTED, EXACT, PACKED, RECENT, SINK, token_bytes, token_states
from app.views.node_reports import NodeReport, ReportRow
from app.views.text.token_wording import format_token_count
from core import sizes, words
from resources.language import mark, tr, trn

_PART_NAMES = {
    "keys": mark("keys"),
    "values": mark("values"),
    "state": mark("state"),
    "self": mark("self-attention"),
    "cross": mark("cross-attention"),
    "scales": mark("scales and offsets"),
    "residual": mark("exact"),
}
_DEVICE_NAMES = {"host": mark("memory"), "device": "GPU", "disk": mark("disk")}


def part_name(part: CachePart, parts: list[CachePart]) -> str:
    """`keys`, with its place where there are several."""
    name = tr(_PART_NAMES[part[1]]) if part[1] in _PART_NAMES else part[1]
    place = tr(_DEVICE_NAMES[part[0]]) if part[0] in _DEVICE_NAMES else part[0]
    several = len({place for place, _ in parts}) > 1
    return tr("{part}, {place}").format(part=name, place=place) if several else name


def cache_report(model: CacheHistory, run: Run, x: int) -> NodeReport | None:
    """The cache when `x` tokens were written; None before the first measurement."""
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
        table_title=tr("What is held"),
        columns=(tr("part"), tr("bytes")),
        rows=tuple(_report_rows(model, point, length)),
        formula=formula_lines(model, length),
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
    if point.error is not None:
        facts.append(tr("error of the keys {error}").format(error=words.percent(point.error)))
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
        (EXACT, tr("exact")),
    ):
        if (count := marks.count(state)) and (plan.window or plan.block):
            name = tr("{state} ({tokens})").format(state=word, tokens=format_token_count(count))
            rows.append(ReportRow((name, f"{count * token_bytes(model, state):,}"), faint=True))
    if evicted := marks.count(EVICTED):
        rows.append(ReportRow((tr("evicted"), format_token_count(evicted)), faint=True))
    return rows


def curve_tooltip(model: CacheHistory, x: int) -> str:
    """What hovering over the curve says: what was held after `x` tokens, or will be; empty where nobody knows."""
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
    """What the run could start from; empty when it began from nothing."""
    reused = run.prefilled.reused if run.prefilled is not None else 0
    if not reused:
        return ""
    computed = len(run.before) - reused
    return tr("Started from {tokens} read before; {computed:,} computed.").format(
        tokens=format_token_count(reused), computed=computed
    )


def formula_lines(model: CacheHistory, length: int) -> str:
    """The formula in words, then in numbers, then its result; empty where there is none."""
    worked = _evaluated_formula(model, length)
    return "\n".join([sizes.format_names(model.plan.size), *worked]) if model.plan is not None and worked else ""


def formula_line(model: CacheHistory, length: int) -> str:
    """The formula in numbers and its result, on one line."""
    worked = _evaluated_formula(model, length)
    return tr("predicted {formula}").format(formula=" ".join(worked)) if worked else ""


def _evaluated_formula(model: CacheHistory, length: int) -> list[str]:
    """In numbers, unless it is one, and the result; nothing where there is none."""
    plan, size = model.plan, model.forecast.predicted(length)
    if plan is None or size is None:
        return []
    numbers = [] if sizes.is_constant(plan.size) else [f"= {sizes.format_numbers(plan.size, length)}"]
    return [*numbers, tr("= {bytes:,} bytes").format(bytes=round(size))]
