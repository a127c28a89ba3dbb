"""A comparison as a table for files: a line for each run, every value as exact as it is known, a head first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

from app.state.comparison.candidates import Candidate
from app.state.comparison.results import Comparison, ComparisonEntry
from app.state.comparison.run_figures import RunFigures

_FIGURES = tuple(field.name for field in fields(RunFigures))
HEAD = ("name", "strategy", "cache", "model", "seed", "state", *_FIGURES, "first_different_token", "text")


def table(comparison: Comparison, refused: Sequence[Candidate] = ()) -> list[list[object]]:
    """Every entry, then what could not be compared with the reason as its state. In a sweep the swept setting is a
    column of its own, behind the name."""
    sweep = comparison.sweep
    head: list[object] = list(HEAD)
    if sweep is not None:
        head.insert(1, sweep.parameter.name)
    return [head, *(_line(comparison, entry) for entry in comparison.entries),
            *(_refused(candidate, sweep is not None) for candidate in refused)]  # fmt: skip


def _line(comparison: Comparison, entry: ComparisonEntry) -> list[object]:
    line, sweep = _named(entry.candidate, entry.cause or entry.state), comparison.sweep
    if sweep is not None:
        line.insert(1, sweep.values[entry.candidate.place])
    figures, run = entry.figures, entry.result
    if figures is None or run is None:
        return line
    place = comparison.difference(entry)
    return [*line, *("" if value is None else value for value in astuple(figures)), "" if place is None else place + 1,
            run.sequences[0].text]  # fmt: skip


def _refused(candidate: Candidate, in_sweep: bool) -> list[object]:
    line = _named(candidate, candidate.reason)
    if in_sweep:
        line.insert(1, "")
    return line


def _named(candidate: Candidate, state: str) -> list[object]:
    request = candidate.request
    return [candidate.title, request.strategy, request.cache, request.model, request.seed, state]
