"""A comparison in words: how two texts compare, what state a run is in, how long the rest will take."""

from __future__ import annotations

from app.session.side_runs import MeasurementProgress
from app.state.comparison.results import Comparison, ComparisonEntry, token_ids
from app.state.run import Run
from app.views.text.token_wording import token_text
from resources.language import tr, trn

_NBSP = "\N{NO-BREAK SPACE}"
REFERENCE_MARK = "◆"
"""Stands before what the others are compared with: a cue beside its weight."""


def entry_summary(comparison: Comparison, entry: ComparisonEntry) -> str:
    """How its text compares with the reference's; of an entry without a result, its state."""
    run, reference = entry.result, comparison.reference
    if run is None:
        return state_text(entry)
    if reference is None or reference.result is None:
        return ""
    difference = (
        tr("the reference")
        if entry is reference
        else _difference_text(comparison.first_difference(entry), run, reference.result)
    )
    return tr("stopped; {how}").format(how=difference) if entry.state == "stopped" else difference


def _difference_text(index: int | None, run: Run, reference: Run) -> str:
    """How a text compares with the reference, the first token that differs being at that place."""
    if index is None:
        count = len(token_ids(run))
        return trn("the same {count:,} token", "the same {count:,} tokens", count).format(count=count)
    return tr("differs at {place:,}: {own}, not {other}").format(
        place=index + 1, own=_quoted_token(run, index), other=_quoted_token(reference, index)
    )


def _quoted_token(run: Run, index: int) -> str:
    tokens = run.sequences[0].tokens
    return f"“{token_text(tokens[index].piece, tokens[index].is_special)}”" if index < len(tokens) else tr("the end")


def state_text(entry: ComparisonEntry) -> str:
    """What is said of an entry without a result."""
    texts = {"waiting": tr("waits"), "running": tr("runs…"), "stopped": tr("stopped"), "failed": entry.cause}
    return texts.get(entry.state, "")


def progress_text(progress: MeasurementProgress) -> str:
    """`3 of 12 · about 20 s left`; without the time before it is known."""
    done = tr("{done:,} of {total:,}").format(done=progress.done, total=progress.total)
    if progress.seconds_left is None:
        return done
    return tr("{done} · about {time} left").format(done=done, time=approximate_time(progress.seconds_left))


def approximate_time(seconds: float) -> str:
    """A time that is only guessed: whole seconds, minutes from two of them on."""
    if seconds < 1.5:
        return f"1{_NBSP}s"
    return f"{seconds:.0f}{_NBSP}s" if seconds < 120 else f"{seconds / 60:.0f}{_NBSP}min"


def plan_text(runs: int, seconds_per_run: float | None) -> str:
    """`15 runs, about 40 s`, by what the shown run took; the time only where that is known."""
    count = trn("{count:,} run", "{count:,} runs", runs).format(count=runs).replace(" ", _NBSP)
    if seconds_per_run is None or not runs:
        return count
    return tr("{runs}, about {time}").format(runs=count, time=approximate_time(seconds_per_run * runs))
