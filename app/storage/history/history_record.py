"""What is kept of a run beside its recording: enough to list it, to find it, and to set everything as it was."""

from __future__ import annotations

import re
import time
import unicodedata
from typing import Any, NamedTuple

from app.state import run_status
from app.state.conversation import format_turns, last_user_message
from app.state.request_json import request_to_json
from app.state.run import Run
from app.state.worker_messages import RunRequest
from core import beginning

MAX_PREVIEW_LENGTH = 240
"""Characters of prompt and text that a list holds."""
MAX_TITLE_LENGTH = 200
MAX_ID_LENGTH = 64
_ID = re.compile(rf"[0-9a-f]{{1,{MAX_ID_LENGTH}}}")


class HistoryRecord(NamedTuple):
    """One kept run, as lists show it."""

    id: str
    made: float
    """Seconds since 1970 (UTC) when it ended."""
    opening: str
    """How the prompt begins, in one line; of a chat, the last message."""
    words: str
    """How the text begins, in one line."""
    model: str
    strategy: str
    """Its registry name."""
    cache: str = ""
    seed: int = 0
    outcome: str = "completed"
    message: str = ""
    """Why it ended."""
    tokens: int = 0
    """All that were written."""
    seconds: float = 0.0
    speed: float | None = None
    """Tokens a second after the first one."""
    cache_bytes: int = 0
    bytes: int = 0
    """Of its recording, on the disk."""
    title: str = ""
    """Given by the reader; empty for none."""
    pinned: bool = False
    parent: str | None = None
    """The id of the run that it branched from."""
    place: int | None = None
    """How many of that one's tokens it took over."""

    @property
    def name(self) -> str:
        """What it is called: its title, else how its prompt begins."""
        return self.title or self.opening or self.words


class SavedRunData(NamedTuple):
    """A record, and what is kept with it that no list shows."""

    record: HistoryRecord
    searchable_text: str
    """Prompt and texts in full, to be found by."""
    request: dict[str, Any]
    """What the panels had set, as `app.state.request_json` writes it."""


def is_run_id(text: str) -> bool:
    """Whether that can be a run's id: nothing else becomes the name of a file."""
    return _ID.fullmatch(text) is not None


def preview_line(text: str) -> str:
    """The beginning of a text, in one line."""
    return beginning(" ".join(storable_text(text[: 4 * MAX_PREVIEW_LENGTH]).split()), MAX_PREVIEW_LENGTH)


def storable_text(text: str) -> str:
    """The text without what SQLite cannot hold: halves of characters, and NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def normalize_for_search(text: str) -> str:
    """The text as it is compared: case and the width of letters make no difference."""
    return unicodedata.normalize("NFKC", storable_text(text)).casefold()


SCORED = "scored"
"""Stands for the strategy of a run that chose nothing."""


def saved_run_data(run: Run, made: float | None = None) -> SavedRunData:
    """A run that has ended, `made` seconds after 1970 (by default: now)."""
    request, known = run.request, run_status.compute_status_numbers(run)
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
