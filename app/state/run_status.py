"""How a run ended, in one short line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from app.state.run import Run
from app.state.worker_messages import ErrorReport, Outcome
from core import words
from resources.language import tr
from resources.retranslation import retranslate

if TYPE_CHECKING:
    from core.events import SequenceFinished


def ending_text(finished: SequenceFinished | None, tokens: int) -> str:
    """Why one text ended, e.g. `EOS after 50 tokens`, `time limit of 2 s after 50 tokens`; empty while it has not."""
    if finished is None:
        return ""
    if finished.reason == "given":
        return tr("{tokens} scored").format(tokens=words.count(tokens, "token"))
    is_timed = finished.reason == "time" and finished.limit is not None
    told = tr("{ending} of {limit:g} s after {tokens}") if is_timed else tr("{ending} after {tokens}")
    ending = tr(words.ENDINGS[finished.reason].line)
    text = told.format(ending=ending, limit=finished.limit, tokens=words.count(tokens, "token"))
    if finished.whole is False:
        text = tr("{ending}, before the grammar was complete").format(ending=text)
    return f"{text}: {finished.stop_string!r}" if finished.stop_string else text


def describe_end(run: Run) -> str:
    """The line for the shown text of a run that ended by itself or was stopped."""
    shown = ending_text(run.sequence.finished, len(run.tokens))
    return shown or tr("ended after {tokens}").format(tokens=words.count(len(run.tokens), "token"))


def make_outcome(run: Run, was_stopped: bool, error: ErrorReport | None) -> Outcome:
    """The one end of a run: of what was raised, of what the run says itself, or of a stop that came before that."""
    if error is None and run.finished is not None:
        return completed_outcome(run)
    if error is None and was_stopped:
        return stopped_outcome(run)
    error = error or ErrorReport(
        tr("The run ended early"), tr("It gave no result."), tr("Try again."), kind="IncompleteRun"
    )
    return Outcome("failed", error.title, error)


def outcome_line(run: Run) -> str:
    """The same line for a run that is shown again, in the language of now; empty while it has not ended, and while
    its end is held back by the guessing game."""
    if run.outcome is None or run.is_withheld:
        return ""
    if run.outcome.error is not None:
        return retranslate(run.outcome.message)
    return stopped_outcome(run).message if run.finished is None else describe_end(run)


def completed_outcome(run: Run) -> Outcome:
    """The run said it was done (or that it had obeyed a stop)."""
    stopped = run.finished is not None and run.finished.reason == "stopped"
    return Outcome("stopped" if stopped else "completed", describe_end(run))


def stopped_outcome(run: Run) -> Outcome:
    """The run was stopped before it could say anything of its own."""
    return Outcome("stopped", tr("stopped after {tokens}").format(tokens=words.count(len(run.tokens), "token")))


class StatusNumbers(NamedTuple):
    """What is known of a run's speed and size; None where it is not known yet. Seconds, tokens a second, bytes."""

    first_token: float | None = None
    prefill: float | None = None
    decode: float | None = None
    cache: int | None = None
    acceptance: float | None = None


def compute_status_numbers(run: Run) -> StatusNumbers:
    """The run's own metrics once it has ended, else what its events so far amount to."""
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
    """Tokens of all texts after their first, over the time of the longest of them (they advance together)."""
    new = sum(max(0, len(sequence.tokens) - 1) for sequence in run.sequences)
    seconds = max(sum(token.seconds for token in sequence.tokens[1:]) for sequence in run.sequences)
    return new / seconds if seconds > 0 else None
