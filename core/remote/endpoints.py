"""Stream the messages of a run from the engine's native endpoint, falling back to the OpenAI-compatible one."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from decodescope.core.errors import EngineCutError, EngineRefusedError, EngineReplyError
from decodescope.core.remote import http_stream
from decodescope.core.remote.client import InternalServerError
from decodescope.core.remote.engines.base import NativeEndpoint
from decodescope.core.remote.remote_model import RemoteModel
from decodescope.core.remote.request_builder import EngineRequest

Messages = Iterator[dict[str, object]]
_MAX_QUOTED = 200


class _EndpointUnavailableError(Exception):
    """The native endpoint did not answer; try the compatible one."""


def stream_messages(model: RemoteModel, request: EngineRequest, cancel: threading.Event) -> Messages:
    """Yield the engine's messages. An endpoint that fails is not tried again once the other one has answered. Raises
    EngineError and its subclasses.
    """
    native = model.kind.native
    if native is None or not _native_path(native, request) or not model.has_native_endpoint:
        yield from _stream_compatible(model, request, cancel)
        return
    if native.is_required:
        yield from _stream_required(model, native, request, cancel)
        return
    try:
        yield from _stream_native(model, native, request, cancel)
    except _EndpointUnavailableError:
        for message in _stream_compatible(model, request, cancel):
            model.has_native_endpoint = False
            yield message


def _native_path(native: NativeEndpoint, request: EngineRequest) -> str:
    return native.chat_path if request.is_chat else native.path


def _stream_required(
    model: RemoteModel, native: NativeEndpoint, request: EngineRequest, cancel: threading.Event
) -> Messages:
    """Stream from a native endpoint that has no substitute."""
    path = f"{model.address.root}{_native_path(native, request)}"
    body = native.build_body(request.body, request.is_sampling, request.alternatives)
    for message in model.client.stream(path, body, cancel, has_json_lines=native.has_json_lines):
        if not native.reader.is_response(message):
            raise http_stream.unreadable_error(model.place, str(message)[:_MAX_QUOTED])
        yield message


def _stream_native(
    model: RemoteModel, native: NativeEndpoint, request: EngineRequest, cancel: threading.Event
) -> Messages:
    """Stream from the native endpoint. Raises _EndpointUnavailableError if nothing of it could be read."""
    path = f"{model.address.root}{_native_path(native, request)}"
    body = native.build_body(request.body, request.is_sampling, request.alternatives)
    is_read = False
    try:
        for message in model.client.stream(path, body, cancel, is_trial=True, has_json_lines=native.has_json_lines):
            if not is_read and not native.reader.is_response(message):
                break
            is_read = True
            yield message
    except (EngineRefusedError, EngineReplyError, EngineCutError, InternalServerError) as error:
        if is_read:
            raise
        raise _EndpointUnavailableError from error
    if not is_read:
        raise _EndpointUnavailableError


def _stream_compatible(model: RemoteModel, engine_request: EngineRequest, cancel: threading.Event) -> Messages:
    """Stream from the compatible endpoint; retry without probabilities if the engine rejects them or fails at them."""
    bare, is_read = engine_request.without_probabilities(), False
    requests_probabilities = bare != engine_request.body
    try:
        is_trial = requests_probabilities and bool(model.kind.no_probabilities_notice)
        for message in model.client.stream(engine_request.path, engine_request.body, cancel, is_trial=is_trial):
            is_read = True
            yield message
    except EngineRefusedError as error:
        if is_read or not requests_probabilities or "logprob" not in error.cause.lower():
            raise
        yield from _stream_without_probabilities(model, model.client.stream(engine_request.path, bare, cancel))
    except InternalServerError:
        yield from _stream_without_probabilities(model, model.client.stream(engine_request.path, bare, cancel))


def _stream_without_probabilities(model: RemoteModel, answered: Messages) -> Messages:
    """Yield messages without probabilities; after the first one, probabilities are not requested from this engine
    again.
    """
    for message in answered:
        model.reports_probabilities = False
        yield message
