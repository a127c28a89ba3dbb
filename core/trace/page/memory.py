"""The cache of a run as the page has it: bytes measured as the text grew, and those foretold."""

from __future__ import annotations

from collections.abc import Iterable

from core.events import BeamStep, CacheMeasured, CachePlan, Event, TokenChosen
from core.trace.page.json_values import PageValues
from resources.language import trc


def memory_values(events: Iterable[Event]) -> PageValues | None:
    """Points [tokens written, bytes, parts] and, of the plan, [tokens written, bytes]; None where nothing was measured.

    A measurement counts as many as the cache had read, or, where it does not keep count, as were written before it.
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
    """Every (place, part) that was ever measured."""
    return list(dict.fromkeys((place, part) for point in points for place, part, _ in point.parts))


def _translated_parts(names: list[tuple[str, str]]) -> list[str]:
    """`keys`; `keys (host)` where not all lie in one place."""
    said, where = _part_and_place_names()
    parts, places = [said.get(part, part) for _, part in names], [where.get(place, place) for place, _ in names]
    if len(set(places)) < 2:
        return parts
    return [f"{part} ({place})" for part, place in zip(parts, places, strict=True)]


def _part_and_place_names() -> tuple[dict[str, str], dict[str, str]]:
    """What measurements call the parts of a cache and their places, in the language of now."""
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
    """Tokens read for none written; a draft that is being checked is read, and not yet written."""
    known = [point.tokens - x for x, point in points if x and _tokens_read(point)]
    return min(known, default=plan.start - 1 if plan else 0)


def _points_by_tokens(points: list[tuple[int, CacheMeasured]], lead: int) -> list[tuple[int, CacheMeasured]]:
    """By tokens written, of several at one place the last; the first token is written before more is read."""
    found = {max(x, _tokens_read(point) - lead): point for x, point in points}
    if min(found) == 1:
        found[0] = found[1]
    return sorted(found.items(), key=lambda item: item[0])


def _tokens_read(point: CacheMeasured) -> int:
    """Tokens it has read; 0 where it keeps no count of them, as what forgets does."""
    return 0 if point.held else point.tokens


def _predicted_points(plan: CachePlan | None, lead: int, written: int) -> list[list[int]]:
    """The plan by tokens written: the decoder reads a token one step after it was written."""
    if plan is None:
        return []
    foretold = [(length - lead, size) for length, size in zip(plan.lengths, plan.predicted, strict=True)]
    return [[max(0, x), size] for x, size in foretold if x <= written]
