"""A comparison in words: how two texts compare, what state a run is in, how long the rest will take."""

from __future__ import annotations

from app.session.measuring import Progress
from app.state.comparison.results import Comparison, Entry, ids
from app.state.run import Run
from app.views.text.wording import token_text
from core import words

_FIXED = "\N{NO-BREAK SPACE}"
REFERENCE_MARK = "◆"
"""Stands before what the others are compared with: a cue beside its weight."""


def said(comparison: Comparison, entry: Entry) -> str:
    """How its text compares with the reference's; of an entry without a result, its state."""
    run, reference = entry.result, comparison.reference
    if run is None:
        return state_words(entry)
    if reference is None or reference.result is None:
        return ""
    part = "stopped; " if entry.state == "stopped" else ""
    if entry is reference:
        return f"{part}the reference"
    place = comparison.difference(entry)
    if place is None:
        return f"{part}the same {len(ids(run)):,} tokens"
    return f"{part}differs at {place + 1:,}: {_piece(run, place)}, not {_piece(reference.result, place)}"


def _piece(run: Run, place: int) -> str:
    tokens = run.sequences[0].tokens
    return f"“{token_text(tokens[place].piece)}”" if place < len(tokens) else "the end"


def state_words(entry: Entry) -> str:
    """What is said of an entry without a result."""
    return {"waiting": "waits", "running": "runs…", "stopped": "stopped", "failed": entry.cause}.get(entry.state, "")


def progress_words(progress: Progress) -> str:
    """`3 of 12 · about 20 s left`; without the time before it is known."""
    done = f"{progress.done:,} of {progress.total:,}"
    return done if progress.seconds_left is None else f"{done} · about {about(progress.seconds_left)} left"


def about(seconds: float) -> str:
    """A time that is only guessed: whole seconds, minutes from two of them on."""
    if seconds < 1.5:
        return f"1{_FIXED}s"
    return f"{seconds:.0f}{_FIXED}s" if seconds < 120 else f"{seconds / 60:.0f}{_FIXED}min"


def plan_words(runs: int, each: float | None) -> str:
    """`15 runs, about 40 s`, by what the shown run took; the time only where that is known."""
    count = words.count(runs, "run").replace(" ", _FIXED)
    return count if each is None or not runs else f"{count}, about {about(each * runs)}"
