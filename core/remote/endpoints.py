"""The messages of a run, by the face of the engine that answers: its own where it has one, else the compatible one."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from core.errors import EngineCutError, EngineRefusedError, EngineReplyError
from core.remote.client import FaultError
from core.remote.remote_model import RemoteModel
from core.remote.request_builder import EngineRequest
from core.remote.sglang import is_own, question

Messages = Iterator[dict[str, object]]


class _ElsewhereError(Exception):
    """A face that has not answered: another may."""


def messages(model: RemoteModel, asked: EngineRequest, cancel: threading.Event) -> Messages:
    """What the engine answers. A face that does not is not asked again, once the other one has. Raises EngineErrors."""
    own = question(model, asked)
    if own is None:
        yield from _compatible(model, asked, cancel)
        return
    try:
        yield from _own(model, *own, cancel)
    except _ElsewhereError:
        for message in _compatible(model, asked, cancel):
            model.generates = False
            yield message


def _own(model: RemoteModel, path: str, body: dict[str, object], cancel: threading.Event) -> Messages:
    """Raises _ElsewhereError where nothing of it could be read."""
    is_read = False
    try:
        for message in model.client.stream(path, body, cancel, is_trial=True):
            if not is_read and not is_own(message):
                break
            is_read = True
            yield message
    except (EngineRefusedError, EngineReplyError, EngineCutError, FaultError) as error:
        if is_read:
            raise
        raise _ElsewhereError from error
    if not is_read:
        raise _ElsewhereError


def _compatible(model: RemoteModel, asked: EngineRequest, cancel: threading.Event) -> Messages:
    """Asked again without probabilities where the engine refuses those, or fails at them."""
    bare, is_read = asked.without_probabilities(), False
    is_asked = bare != asked.body
    try:
        is_trial = is_asked and model.kind.fails_at_probabilities
        for message in model.client.stream(asked.path, asked.body, cancel, is_trial=is_trial):
            is_read = True
            yield message
    except EngineRefusedError as error:
        if is_read or not is_asked or "logprob" not in error.cause.lower():
            raise
        yield from _barely(model, model.client.stream(asked.path, bare, cancel))
    except FaultError:
        yield from _barely(model, model.client.stream(asked.path, bare, cancel))


def _barely(model: RemoteModel, answered: Messages) -> Messages:
    """What the engine answers without probabilities; it is not asked for them again where it does."""
    for message in answered:
        model.tells = False
        yield message
