"""Data saved of a run besides its recording: enough to list it, find it and restore its settings."""

from __future__ import annotations

import re
import time
import unicodedata
from typing import Any, NamedTuple

from decodescope.app.state import run_status
from decodescope.app.state.conversation import format_turns, last_user_message
from decodescope.app.state.request_json import request_to_json
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest, is_turns
from decodescope.core import beginning

MAX_PREVIEW_LENGTH = 240
"""Maximum length of the prompt and text previews, in characters."""
MAX_TITLE_LENGTH = 200
MAX_ID_LENGTH = 64
_ID = re.compile(rf"[0-9a-f]{{1,{MAX_ID_LENGTH}}}")


class HistoryRecord(NamedTuple):
    """One saved run, as shown in lists."""

    id: str
    made: float
    """When the run ended, in seconds since 1970 (UTC)."""
    opening: str
    """Beginning of the prompt on one line; for a chat, of the last message."""
    words: str
    """Beginning of the text on one line."""
    model: str
    strategy: str
    """Registry name of the strategy."""
    cache: str = ""
    seed: int = 0
    outcome: str = "completed"
    message: str = ""
    """Why the run ended."""
    tokens: int = 0
    """Number of tokens in all sequences."""
    seconds: float = 0.0
    speed: float | None = None
    """Tokens per second after the first token."""
    cache_bytes: int = 0
    bytes: int = 0
    """Size of the recording on disk."""
    title: str = ""
    """Title given by the user; empty if none."""
    pinned: bool = False
    parent: str | None = None
    """Id of the run that this one branched from."""
    place: int | None = None
    """Number of tokens taken over from the parent."""

    @property
    def name(self) -> str:
        """Display name: the title, else the beginning of the prompt, else of the text."""
        return self.title or self.opening or self.words


class SavedRunData(NamedTuple):
    """A record and the data saved with it that lists do not show."""

    record: HistoryRecord
    searchable_text: str
    """Full prompt and texts, for searching."""
    request: dict[str, Any]
    """The settings of the panels, in the format of `app.state.request_json`."""


def is_run_id(text: str) -> bool:
    """Return whether `text` is a valid run id; only valid ids become file names."""
    return _ID.fullmatch(text) is not None


def preview_line(text: str) -> str:
    """Return the beginning of a text on one line."""
    return beginning(" ".join(storable_text(text[: 4 * MAX_PREVIEW_LENGTH]).split()), MAX_PREVIEW_LENGTH)


def storable_text(text: str) -> str:
    """Replace what SQLite cannot store: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def normalize_for_search(text: str) -> str:
    """Normalize a text for search: ignore case and letter width (NFKC, casefold)."""
    return unicodedata.normalize("NFKC", storable_text(text)).casefold()


SCORED = "scored"
"""Strategy name of a run that only scored a text."""


def saved_run_data(run: Run, created_at: float | None = None) -> SavedRunData:
    """Build the saved data of a run that ended `created_at` seconds after 1970 (default: now)."""
    request, known = run.request, run_status.compute_status_numbers(run)
    texts = _run_texts(run)
    record = HistoryRecord(
        id=run.id,
        made=time.time() if created_at is None else created_at,
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
        place=request.shared_tokens if request.parent else None,
    )
    return SavedRunData(record, "\n".join([_prompt_text(request), *texts]), request_to_json(request))


def _run_texts(run: Run) -> list[str]:
    """Return the texts, best one first."""
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
    """Return the full prompt."""
    if isinstance(request.prompt, str):
        return request.prompt
    return format_turns(request.prompt) if is_turns(request.prompt) else request.prompt_text


def _last_message(request: RunRequest) -> str:
    return last_user_message(request.prompt) if is_turns(request.prompt) else _prompt_text(request)
