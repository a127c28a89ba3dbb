"""Page data on the whole run: its settings and its metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from decodescope.core.events import (
    BeamStep,
    CacheMeasured,
    CachePlan,
    Event,
    Finished,
    Metrics,
    RunStarted,
    TokenChosen,
)
from decodescope.core.explain.call_facts import explain_call_facts, seed_text
from decodescope.core.explain.words import decimal, duration, rate, size, whole_percent
from decodescope.core.setting_titles import SCORED, cache_title, setting_title, strategy_title
from decodescope.core.trace.page.json_values import PageValues
from decodescope.resources.language import tr, trc

__all__ = ["SCORED", "FactRows", "metric_rows", "run_summary", "setting_rows", "strategy_title"]

FactRows = list[tuple[str, str]]


def setting_rows(started: RunStarted | None) -> FactRows:
    """Return the run's settings, with formatted values."""
    if started is None:
        return []
    second = [(tr("Comparison model"), started.second)] if started.second else []
    heads = [(tr("Model"), started.model), *second, (tr("Strategy"), strategy_title(started)),
             (tr("Device"), f"{started.device}, {started.engine or started.dtype}")]  # fmt: skip
    if started.strategy != SCORED:
        heads += [] if started.engine else [(tr("Cache"), cache_title(started))]
        heads += [(tr("Seed"), seed_text(started))]
    heads += [(tr("Adapter"), f"{one.name} × {one.strength:g}") for one in started.adapters]
    heads += [(tr("Captured call"), sentence) for sentence in explain_call_facts(started.call_facts)]
    return heads + [(setting_title(started, name), _format_value(value)) for name, value in started.settings]


def run_summary(started: RunStarted | None) -> list[str]:
    """Return a one-line summary: model, strategy, and the cache and seed unless a text was only scored."""
    if started is None:
        return []
    drawn = started.strategy != SCORED
    cache_or_engine = started.engine or tr("cache {cache}").format(cache=cache_title(started))
    more = [cache_or_engine, tr("seed {seed}").format(seed=seed_text(started))]
    return [started.model, strategy_title(started), *(more if drawn else ())]


def metric_rows(finished: Finished | None, scored: Sequence[TokenChosen] = ()) -> FactRows:
    """Return the run's metrics, without unknown ones. `scored` are the tokens of a text that was only scored."""
    if finished is None:
        return []
    values = finished.metrics
    rows: list[tuple[str, str | None]] = [
        (tr("Prompt tokens"), f"{values.prompt_tokens:,}" if values.prompt_tokens else None),
        (tr("Tokens scored") if scored else tr("Generated tokens"), f"{values.new_tokens:,}"),
        *_score_rows(scored),
        (tr("Time"), duration(values.seconds)),
        (tr("First token after"), _format_if_known(duration, values.time_to_first_token)),
        (trc("a rate", "Prefill"), _format_if_known(rate, values.prefill_tokens_per_second)),
        (trc("a rate", "Decoding"), _format_if_known(rate, values.decode_tokens_per_second)),
        (tr("Forward passes"), f"{values.target_passes:,}" if values.target_passes else None),
        *_draft_rows(values),
        (tr("Final cache size"), _format_if_known(size, values.cache_bytes or None)),
        (tr("Peak cache size"), _format_if_known(size, values.cache_peak_bytes or None)),
        (tr("Peak memory"), _format_if_known(size, values.peak_memory_bytes)),
    ]
    return [(name, value) for name, value in rows if value is not None]


def _score_rows(scored: Sequence[TokenChosen]) -> list[tuple[str, str | None]]:
    """Return how well the model predicts a text."""
    if not scored:
        return []
    mean = sum(token.raw_log_probability for token in scored) / len(scored)
    perplexity = math.exp(min(-mean, 700.0))
    return [
        (tr("Mean log-probability"), decimal(mean)),
        (tr("Perplexity"), f"{perplexity:,.{0 if perplexity >= 100 else 1}f}"),
    ]


def _draft_rows(metrics: Metrics) -> list[tuple[str, str | None]]:
    several = metrics.tokens_per_target_pass is not None and metrics.acceptance_rate is not None
    return [
        (tr("Tokens per pass"), f"{metrics.tokens_per_target_pass:.2f}" if several else None),
        (tr("Drafts accepted"), _format_if_known(whole_percent, metrics.acceptance_rate)),
    ]


def _format_if_known(format_value: Callable[[float], str], value: float | None) -> str | None:
    return None if value is None else format_value(value)


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    if isinstance(value, (list, tuple)):
        return ", ".join(_format_value(item) for item in value)
    return f"{value:g}".replace("-", "−") if isinstance(value, float) else str(value)


def memory_values(events: Iterable[Event]) -> PageValues | None:
    """Return points [tokens written, bytes, parts] and, for the plan, [tokens written, bytes]; None without
    measurements.

    A measurement is placed at the number of tokens read by the cache or, if it does not count them, written before it.
    """
    points: list[tuple[int, CacheMeasured]] = []
    plan, written = None, 0
    for event in events:
        match event:
            case TokenChosen() | BeamStep():
                written = max(written, event.step + 1)
            case CacheMeasured():
                points.append((written, event))
            case CachePlan():
                plan = event
    if not points:
        return None
    names, lead = _part_names(point for _, point in points), _unwritten_tokens(plan, points)
    return {
        "parts": _translated_parts(names),
        "points": [[x, point.bytes, _sizes(point, names)] for x, point in _points_by_tokens(points, lead)],
        "predicted": _predicted_points(plan, lead, written),
        "backend": plan.backend if plan else "",
    }


def _part_names(points: Iterable[CacheMeasured]) -> list[tuple[str, str]]:
    """Return every (place, part) that was measured."""
    return list(dict.fromkeys((place, part) for point in points for place, part, _ in point.parts))


def _translated_parts(names: list[tuple[str, str]]) -> list[str]:
    """Return translated names: `keys`, or `keys (host)` if the parts are in several places."""
    part_names, where = _part_and_place_names()
    parts, places = [part_names.get(part, part) for _, part in names], [where.get(place, place) for place, _ in names]
    if len(set(places)) < 2:
        return parts
    return [f"{part} ({place})" for part, place in zip(parts, places, strict=True)]


def _part_and_place_names() -> tuple[dict[str, str], dict[str, str]]:
    """Return the translated names of cache parts and places, by their names in measurements."""
    parts = {
        "keys": trc("part of a cache", "keys"), "values": trc("part of a cache", "values"),
        "scales": trc("part of a cache", "scales"), "residual": trc("part of a cache", "residual"),
        "self": trc("part of a cache", "self"), "cross": trc("part of a cache", "cross"),
        "state": trc("part of a cache", "state"),
    }  # fmt: skip
    places = {
        "device": trc("place of a cache", "device"), "host": trc("place of a cache", "host"),
        "disk": trc("place of a cache", "disk"),
    }  # fmt: skip
    return parts, places


def _sizes(point: CacheMeasured, names: list[tuple[str, str]]) -> list[int]:
    sizes = {(place, part): size for place, part, size in point.parts}
    return [sizes.get(name, 0) for name in names]


def _unwritten_tokens(plan: CachePlan | None, points: list[tuple[int, CacheMeasured]]) -> int:
    """Return the number of tokens read but not written; drafts under verification are read and not yet written."""
    known = [point.tokens - x for x, point in points if x and _tokens_read(point)]
    return min(known, default=plan.start - 1 if plan else 0)


def _points_by_tokens(points: list[tuple[int, CacheMeasured]], lead: int) -> list[tuple[int, CacheMeasured]]:
    """Sort measurements by tokens written, the last one for each position; the first token is written before more is
    read.
    """
    found = {max(x, _tokens_read(point) - lead): point for x, point in points}
    if min(found) == 1:
        found[0] = found[1]
    return sorted(found.items(), key=lambda item: item[0])


def _tokens_read(point: CacheMeasured) -> int:
    """Return the number of tokens read; 0 if the cache does not count them because it drops tokens."""
    return 0 if point.held else point.tokens


def _predicted_points(plan: CachePlan | None, lead: int, written_count: int) -> list[list[int]]:
    """Return the plan by tokens written: the decoder reads a token one step after it was written."""
    if plan is None:
        return []
    points = [(length - lead, size) for length, size in zip(plan.lengths, plan.predicted, strict=True)]
    return [[max(0, x), size] for x, size in points if x <= written_count]
