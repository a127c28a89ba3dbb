"""The outcome of a run, as a short line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ErrorReport, Outcome
from decodescope.core import words
from decodescope.resources.language import tr
from decodescope.resources.retranslation import retranslate

if TYPE_CHECKING:
    from decodescope.core.events import SequenceFinished


def ending_text(finished: SequenceFinished | None, tokens: int) -> str:
    """Return why a sequence ended, e.g. `EOS after 50 tokens`, `time limit of 2 s after 50 tokens`; empty while it is
    running.
    """
    if finished is None:
        return ""
    if finished.reason == "given":
        return tr("{tokens} scored").format(tokens=words.count(tokens, "token"))
    is_timed = finished.reason == "time" and finished.limit is not None
    template = tr("{ending} of {limit:g} s after {tokens}") if is_timed else tr("{ending} after {tokens}")
    ending = tr(words.ENDINGS[finished.reason].line)
    text = template.format(ending=ending, limit=finished.limit, tokens=words.count(tokens, "token"))
    if finished.whole is False:
        text = tr("{ending}, with incomplete grammar").format(ending=text)
    return f"{text}: {finished.stop_string!r}" if finished.stop_string else text


def describe_end(run: Run) -> str:
    """Return the line for the shown sequence of a finished or stopped run."""
    shown = ending_text(run.sequence.finished, len(run.tokens))
    return shown or tr("ended after {tokens}").format(tokens=words.count(len(run.tokens), "token"))


def make_outcome(run: Run, was_stopped: bool, error: ErrorReport | None) -> Outcome:
    """Return the outcome of a run: from the error, from the run's own end, or from a stop before that."""
    if error is None and run.finished is not None:
        return completed_outcome(run)
    if error is None and was_stopped:
        return stopped_outcome(run)
    error = error or ErrorReport(
        tr("The run ended early"), tr("There is no result."), tr("Try again."), kind="IncompleteRun"
    )
    return Outcome("failed", error.title, error)


def outcome_line(run: Run) -> str:
    """Return the outcome line of a run shown again, in the current language; empty while it is running or withheld by
    the guessing game.
    """
    if run.outcome is None or run.is_withheld:
        return ""
    if run.outcome.error is not None:
        return retranslate(run.outcome.message)
    return stopped_outcome(run).message if run.finished is None else describe_end(run)


def completed_outcome(run: Run) -> Outcome:
    """Return the outcome of a run that reported its end (or a requested stop)."""
    stopped = run.finished is not None and run.finished.reason == "stopped"
    return Outcome("stopped" if stopped else "completed", describe_end(run))


def stopped_outcome(run: Run) -> Outcome:
    """Return the outcome of a run that was stopped before it reported its end."""
    return Outcome("stopped", tr("stopped after {tokens}").format(tokens=words.count(len(run.tokens), "token")))


class StatusNumbers(NamedTuple):
    """Speed and size of a run; None for values not yet known. Seconds, tokens per second, bytes."""

    first_token: float | None = None
    prefill: float | None = None
    decode: float | None = None
    cache: int | None = None
    acceptance: float | None = None


def compute_status_numbers(run: Run) -> StatusNumbers:
    """Return the run's metrics once it has finished, otherwise values computed from its events so far."""
    if run.finished is not None:
        metrics = run.finished.metrics
        return StatusNumbers(
            metrics.time_to_first_token,
            metrics.prefill_tokens_per_second,
            metrics.decode_tokens_per_second,
            None if run.started is not None and run.started.engine else metrics.cache_bytes,
            metrics.acceptance_rate,
        )
    return StatusNumbers(_first_token(run), _prefill(run), _decode(run), run.cache.bytes if run.cache else None)


def _first_token(run: Run) -> float | None:
    if run.prefilled is None or not run.sequences[0].tokens:
        return None
    return run.prefilled.seconds + run.sequences[0].tokens[0].seconds


def _prefill(run: Run) -> float | None:
    if run.prefilled is None or run.prefilled.seconds <= 0:
        return None
    return (run.prefilled.tokens - run.prefilled.reused) / run.prefilled.seconds


def _decode(run: Run) -> float | None:
    """Return tokens after the first of all sequences, divided by the longest sequence's time (they advance
    together).
    """
    new = sum(max(0, len(sequence.tokens) - 1) for sequence in run.sequences)
    seconds = max(sum(token.seconds for token in sequence.tokens[1:]) for sequence in run.sequences)
    return new / seconds if seconds > 0 else None
