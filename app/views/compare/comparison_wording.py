"""A comparison in words: how two texts compare, what state a run is in, how long the rest will take."""

from __future__ import annotations

from app.session.side_runs import MeasurementProgress
from app.state.comparison.results import Comparison, ComparisonEntry, ids
from app.state.run import Run
from app.views.text.token_wording import token_text
from resources.language import tr, trn

_FIXED = "\N{NO-BREAK SPACE}"
REFERENCE_MARK = "◆"
"""Stands before what the others are compared with: a cue beside its weight."""


def said(comparison: Comparison, entry: ComparisonEntry) -> str:
    """How its text compares with the reference's; of an entry without a result, its state."""
    run, reference = entry.result, comparison.reference
    if run is None:
        return state_words(entry)
    if reference is None or reference.result is None:
        return ""
    how = tr("the reference") if entry is reference else _how(comparison.difference(entry), run, reference.result)
    return tr("stopped; {how}").format(how=how) if entry.state == "stopped" else how


def _how(place: int | None, run: Run, reference: Run) -> str:
    """How a text compares with the reference, the first token that differs being at that place."""
    if place is None:
        count = len(ids(run))
        return trn("the same {count:,} token", "the same {count:,} tokens", count).format(count=count)
    return tr("differs at {place:,}: {own}, not {other}").format(
        place=place + 1, own=_piece(run, place), other=_piece(reference, place)
    )


def _piece(run: Run, place: int) -> str:
    tokens = run.sequences[0].tokens
    return f"“{token_text(tokens[place].piece, tokens[place].is_special)}”" if place < len(tokens) else tr("the end")


def state_words(entry: ComparisonEntry) -> str:
    """What is said of an entry without a result."""
    told = {"waiting": tr("waits"), "running": tr("runs…"), "stopped": tr("stopped"), "failed": entry.cause}
    return told.get(entry.state, "")


def progress_words(progress: MeasurementProgress) -> str:
    """`3 of 12 · about 20 s left`; without the time before it is known."""
    done = tr("{done:,} of {total:,}").format(done=progress.done, total=progress.total)
    if progress.seconds_left is None:
        return done
    return tr("{done} · about {time} left").format(done=done, time=about(progress.seconds_left))


def about(seconds: float) -> str:
    """A time that is only guessed: whole seconds, minutes from two of them on."""
    if seconds < 1.5:
        return f"1{_FIXED}s"
    return f"{seconds:.0f}{_FIXED}s" if seconds < 120 else f"{seconds / 60:.0f}{_FIXED}min"


def plan_words(runs: int, each: float | None) -> str:
    """`15 runs, about 40 s`, by what the shown run took; the time only where that is known."""
    count = trn("{count:,} run", "{count:,} runs", runs).format(count=runs).replace(" ", _FIXED)
    if each is None or not runs:
        return count
    return tr("{runs}, about {time}").format(runs=count, time=about(each * runs))
