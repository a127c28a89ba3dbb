"""What is kept of a run, told by the run itself."""

from __future__ import annotations

import time

from app.state import status_numbers
from app.state.conversation import format_turns, last_user_message
from app.state.request_json import request_to_json
from app.state.run import Run
from app.state.worker_messages import RunRequest
from app.storage.history.history_record import HistoryRecord, SavedRunData, preview_line

SCORED = "scored"
"""Stands for the strategy of a run that chose nothing."""


def saved_run_data(run: Run, made: float | None = None) -> SavedRunData:
    """A run that has ended, `made` seconds after 1970 (by default: now)."""
    request, known = run.request, status_numbers.compute_status_numbers(run)
    texts = _run_texts(run)
    record = HistoryRecord(
        id=run.id,
        made=time.time() if made is None else made,
        opening=preview_line(_last_message(request)),
        words=preview_line(texts[0]),
        model=request.model,
        strategy=SCORED if request.scored else request.strategy,
        cache=request.cache,
        seed=request.seed,
        outcome=run.outcome.kind if run.outcome is not None else "stopped",
        message=run.outcome.message if run.outcome is not None else "",
        tokens=_token_count(run),
        seconds=_duration(run),
        speed=known.decode,
        cache_bytes=known.cache or 0,
        parent=request.parent or None,
        place=request.place if request.parent else None,
    )
    return SavedRunData(record, "\n".join([_prompt_text(request), *texts]), request_to_json(request))


def _run_texts(run: Run) -> list[str]:
    """The best one first."""
    if run.finished is not None and run.finished.texts:
        return list(run.finished.texts)
    return [sequence.text for sequence in run.sequences]


def _token_count(run: Run) -> int:
    return run.finished.metrics.new_tokens if run.finished is not None else sum(len(s.tokens) for s in run.sequences)


def _duration(run: Run) -> float:
    if run.finished is not None:
        return run.finished.metrics.seconds
    first = run.prefilled.seconds if run.prefilled is not None else 0.0
    return first + sum(token.seconds for token in run.sequences[0].tokens)


def _prompt_text(request: RunRequest) -> str:
    """The prompt in full."""
    return request.prompt if isinstance(request.prompt, str) else format_turns(request.prompt)


def _last_message(request: RunRequest) -> str:
    return request.prompt if isinstance(request.prompt, str) else last_user_message(request.prompt)
