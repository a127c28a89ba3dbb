"""The messages of a run, by the face of the engine that answers: its own where it has one, else the compatible one."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from core.errors import EngineCutError, EngineRefusedError, EngineReplyError
from core.remote.client import InternalServerError
from core.remote.remote_model import RemoteModel
from core.remote.request_builder import EngineRequest
from core.remote.sglang import is_native_response, native_request

Messages = Iterator[dict[str, object]]


class _EndpointUnavailableError(Exception):
    """A face that has not answered: another may."""


def stream_messages(model: RemoteModel, request: EngineRequest, cancel: threading.Event) -> Messages:
    """What the engine answers. A face that does not is not asked again, once the other one has. Raises EngineErrors."""
    own = native_request(model, request)
    if own is None:
        yield from _stream_compatible(model, request, cancel)
        return
    try:
        yield from _stream_native(model, *own, cancel)
    except _EndpointUnavailableError:
        for message in _stream_compatible(model, request, cancel):
            model.generates = False
            yield message


def _stream_native(model: RemoteModel, path: str, body: dict[str, object], cancel: threading.Event) -> Messages:
    """Raises _ElsewhereError where nothing of it could be read."""
    is_read = False
    try:
        for message in model.client.stream(path, body, cancel, is_trial=True):
            if not is_read and not is_native_response(message):
                break
            is_read = True
            yield message
    except (EngineRefusedError, EngineReplyError, EngineCutError, InternalServerError) as error:
        if is_read:
            raise
        raise _EndpointUnavailableError from error
    if not is_read:
        raise _EndpointUnavailableError


def _stream_compatible(model: RemoteModel, asked: EngineRequest, cancel: threading.Event) -> Messages:
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
        yield from _stream_without_probabilities(model, model.client.stream(asked.path, bare, cancel))
    except InternalServerError:
        yield from _stream_without_probabilities(model, model.client.stream(asked.path, bare, cancel))


def _stream_without_probabilities(model: RemoteModel, answered: Messages) -> Messages:
    """What the engine answers without probabilities; it is not asked for them again where it does."""
    for message in answered:
        model.tells = False
        yield message
