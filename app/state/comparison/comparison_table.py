"""A comparison as a table for files: a line for each run, every value as exact as it is known, a head first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

from app.state.comparison.candidates import ComparisonCandidate
from app.state.comparison.results import Comparison, ComparisonEntry
from app.state.comparison.run_figures import RunMetrics

_METRICS = tuple(field.name for field in fields(RunMetrics))
HEADER = ("name", "strategy", "cache", "model", "seed", "state", *_METRICS, "first_different_token", "text")


def comparison_rows(comparison: Comparison, unavailable: Sequence[ComparisonCandidate] = ()) -> list[list[object]]:
    """Every entry, then what could not be compared with the reason as its state. In a sweep the swept setting is a
    column of its own, behind the name."""
    sweep = comparison.sweep
    head: list[object] = list(HEADER)
    if sweep is not None:
        head.insert(1, sweep.parameter.name)
    return [head, *(_entry_row(comparison, entry) for entry in comparison.entries),
            *(_unavailable_row(candidate, sweep is not None) for candidate in unavailable)]  # fmt: skip


def _entry_row(comparison: Comparison, entry: ComparisonEntry) -> list[object]:
    line, sweep = _row_start(entry.candidate, entry.cause or entry.state), comparison.sweep
    if sweep is not None:
        line.insert(1, sweep.values[entry.candidate.index])
    figures, run = entry.metrics, entry.result
    if figures is None or run is None:
        return line
    place = comparison.first_difference(entry)
    return [*line, *("" if value is None else value for value in astuple(figures)), "" if place is None else place + 1,
            run.sequences[0].text]  # fmt: skip


def _unavailable_row(candidate: ComparisonCandidate, in_sweep: bool) -> list[object]:
    line = _row_start(candidate, candidate.reason)
    if in_sweep:
        line.insert(1, "")
    return line


def _row_start(candidate: ComparisonCandidate, state: str) -> list[object]:
    request = candidate.request
    return [candidate.title, request.strategy, request.cache, request.model, request.seed, state]
