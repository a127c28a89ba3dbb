"""What can go wrong with an engine, as errors with cause and remedy. A key never stands in one."""

from __future__ import annotations

import json
import ssl
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import (
    EngineAccessError,
    EngineBusyError,
    EngineCutError,
    EngineError,
    EngineRefusedError,
    EngineReplyError,
    EngineUnreachableError,
)
from core.remote.http_stream import BrokenConnectionError, ReadTimeoutError
from core.text_truncation import cut_short
from resources.language import tr, trn

_MAX_MESSAGE_LENGTH = 400
RETRY_STATUSES = frozenset({429, 500, 502, 503, 504, 529})
"""Statuses that another try may find changed."""


def redact(text: str, key: str) -> str:
    """`text` with nothing of the key in it."""
    return text.replace(key, "…") if key else text


def redacted_error(error: EngineError, key: str) -> EngineError:
    """The same error with nothing of the key in it."""
    return type(error)(redact(error.cause, key), error.remedy)


def error_message(data: bytes) -> str:
    """What an engine says of a refusal, in its own words, without its wrapping."""
    text = data.decode("utf-8", "replace").strip()
    try:
        found = _find_message(json.loads(text))
    except (ValueError, RecursionError):
        found = None
    return cut_short(" ".join((found or text).split()), _MAX_MESSAGE_LENGTH)


def _find_message(value: object) -> str | None:
    """The sentence inside `{"error": {"message": …}}`, `{"detail": …}`, `{"message": …}` and their like."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return next((found for item in value if (found := _find_message(item))), None)
    if isinstance(value, dict):
        return next(
            (found for name in ("error", "message", "detail", "msg") if (found := _find_message(value.get(name)))), None
        )
    return None


def status_error(status: int, data: bytes, place: str, key: str) -> EngineError:
    """A reply that is none. `place`: the machine's name."""
    words = redact(error_message(data), key)
    cause = tr("{place} answers {status}: {words}").format(place=place, status=status, words=words or "–")
    if status in (401, 403):
        remedy = tr("Give another key; this one is not accepted.") if key else tr("Give the engine's key.")
        return EngineAccessError(cause, remedy)
    if status == 404:
        return EngineRefusedError(cause, tr("Check the address, its path, and the name of the model."))
    if status == 429:
        return EngineBusyError(cause, tr("Try again in a while."))
    if status in RETRY_STATUSES:
        return EngineBusyError(cause, tr("Look at what the engine itself writes, or try again in a while."))
    if 300 <= status < 400:
        return EngineRefusedError(
            cause, tr("It leads elsewhere, where the key was not sent: give that address itself.")
        )
    return EngineRefusedError(cause, tr("Change the setting or the prompt that it names."))


def unreachable_error(error: BrokenConnectionError | ReadTimeoutError, place: str) -> EngineError:
    """Nothing was answered."""
    if isinstance(error, ReadTimeoutError):
        cause = trn(
            "{place} has not answered for {seconds:.0f} second.",
            "{place} has not answered for {seconds:.0f} seconds.",
            round(error.seconds),
        ).format(place=place, seconds=error.seconds)
        return EngineUnreachableError(cause, tr("Look whether the engine is still loading its model, then try again."))
    if isinstance(error.error, ssl.SSLError):
        cause = tr("{place} cannot be trusted, or does not speak https: {reason}.").format(
            place=place, reason=_reason(error)
        )
        return EngineUnreachableError(cause, tr("Check the address; http is for this machine, or where it is allowed."))
    cause = tr("{place} cannot be reached: {reason}.").format(place=place, reason=_reason(error))
    return EngineUnreachableError(cause, tr("Check the address, and whether the engine has been started."))


def interrupted_error(error: BrokenConnectionError | ReadTimeoutError | None, place: str) -> EngineCutError:
    """The text ended before its end; None: the connection was closed in good order."""
    if isinstance(error, ReadTimeoutError):
        cause = trn(
            "{place} has sent nothing more for {seconds:.0f} second.",
            "{place} has sent nothing more for {seconds:.0f} seconds.",
            round(error.seconds),
        ).format(place=place, seconds=error.seconds)
    elif error is not None:
        cause = tr("The connection to {place} broke in the middle of the text: {reason}.").format(
            place=place, reason=_reason(error)
        )
    else:
        cause = tr("{place} closed the connection in the middle of the text.").format(place=place)
    return EngineCutError(cause, tr("What came before is kept. Look at what the engine itself writes, then run again."))


def failed_error(words: str, place: str) -> EngineCutError:
    """The engine says in the middle of the text that it failed."""
    cause = tr("{place} failed in the middle of the text: {words}").format(place=place, words=words)
    return EngineCutError(cause, tr("What came before is kept. Look at what the engine itself writes, then run again."))


def unreadable_error(place: str, what: str, error: Exception | None = None) -> EngineReplyError:
    """It is no JSON, or other JSON than that face has; `error` is what reading it came upon, for the details."""
    shown = cut_short(" ".join(what.split()), 80)
    return EngineReplyError(
        tr("What {place} sends is not what an OpenAI-compatible engine sends: “{what}”.").format(
            place=place, what=shown
        ),
        tr("Check that the address is that of such an engine, with its path, most often /v1."),
        "".join(traceback.format_exception(error)) if error is not None else "",
    )


@contextmanager
def parsing_message(message: object, place: str) -> Iterator[None]:
    """For reading a message in the block. Raises EngineReplyError where it is JSON of another shape."""
    try:
        yield
    except (TypeError, ValueError, LookupError) as error:
        raise unreadable_error(place, _safe_str(message), error) from error


def _safe_str(message: object) -> str:
    try:
        return str(message)
    except RecursionError:  # nested too deep
        return "[[…]]"


def _reason(error: BrokenConnectionError) -> str:
    inner = error.error
    words = inner.strerror if isinstance(inner, OSError) and inner.strerror else str(inner) or type(inner).__name__
    return words.rstrip(".")
