"""What is kept of a run, told by the run itself."""

from __future__ import annotations

import time

from app.state import status_numbers
from app.state.conversation import format_turns, last_said
from app.state.request_json import to_plain
from app.state.run import Run
from app.state.worker_messages import RunRequest
from app.storage.history.history_record import HistoryRecord, Keeping, opening

SCORED = "scored"
"""Stands for the strategy of a run that chose nothing."""


def keeping_of(run: Run, made: float | None = None) -> Keeping:
    """A run that has ended, `made` seconds after 1970 (by default: now)."""
    request, known = run.request, status_numbers.figures(run)
    texts = _texts(run)
    record = HistoryRecord(
        id=run.id,
        made=time.time() if made is None else made,
        opening=opening(_last_said(request)),
        words=opening(texts[0]),
        model=request.model,
        strategy=SCORED if request.scored else request.strategy,
        cache=request.cache,
        seed=request.seed,
        outcome=run.outcome.kind if run.outcome is not None else "stopped",
        message=run.outcome.message if run.outcome is not None else "",
        tokens=_tokens(run),
        seconds=_seconds(run),
        speed=known.decode,
        cache_bytes=known.cache or 0,
        parent=request.parent or None,
        place=request.place if request.parent else None,
    )
    return Keeping(record, "\n".join([_said(request), *texts]), to_plain(request))


def _texts(run: Run) -> list[str]:
    """The best one first."""
    if run.finished is not None and run.finished.texts:
        return list(run.finished.texts)
    return [sequence.text for sequence in run.sequences]


def _tokens(run: Run) -> int:
    return run.finished.metrics.new_tokens if run.finished is not None else sum(len(s.tokens) for s in run.sequences)


def _seconds(run: Run) -> float:
    if run.finished is not None:
        return run.finished.metrics.seconds
    first = run.prefilled.seconds if run.prefilled is not None else 0.0
    return first + sum(token.seconds for token in run.sequences[0].tokens)


def _said(request: RunRequest) -> str:
    """The prompt in full."""
    return request.prompt if isinstance(request.prompt, str) else format_turns(request.prompt)


def _last_said(request: RunRequest) -> str:
    return request.prompt if isinstance(request.prompt, str) else last_said(request.prompt)
