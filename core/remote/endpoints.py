"""Stream the messages of a run from the engine's native endpoint, falling back to the OpenAI-compatible one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import EngineCutError, EngineRefusedError, EngineReplyError
from core.remote import http_stream
from core.remote.client import InternalServerError
from core.remote.remote_model import RemoteModel
from core.remote.request_builder import EngineRequest
from core.remote.responses import (
    MAX_ALTERNATIVES,
    StreamedToken,
    TextDelta,
    TokenLogprob,
    as_count,
    parse_log_probability,
    repair_text,
)

_NATIVE_NAMES = {
    "max_tokens": "max_new_tokens", "min_tokens": "min_new_tokens", "seed": "sampling_seed",
    **{name: name for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "stop", "stop_token_ids",
                               "n", "json_schema", "regex")},
}  # fmt: skip
"""Maps setting names of the compatible API to those of the native API."""


def native_request(model: RemoteModel, request: EngineRequest) -> tuple[str, dict[str, object]] | None:
    """Return path and body of the equivalent native request; None if there is none: chats need the engine's
    template.
    """
    if request.is_chat or not (model.kind.generates and model.generates):
        return None
    prompt = request.body["prompt"]
    settings = {_NATIVE_NAMES[name]: value for name, value in request.body.items() if name in _NATIVE_NAMES}
    if not request.is_sampling:
        settings.pop("sampling_seed", None)
    body = {"text" if isinstance(prompt, str) else "input_ids": prompt, "sampling_params": settings, "stream": True}
    if request.alternatives:
        body |= {"return_logprob": True, "top_logprobs_num": request.alternatives, "logprob_start_len": -1,
                 "return_text_in_logprobs": True}  # fmt: skip
    return f"{model.address.root}/generate", body


def is_native_response(message: Mapping[str, object]) -> bool:
    """Return whether a message comes from the native API."""
    return isinstance(message.get("meta_info"), dict)


@dataclass(slots=True)
class _ReceivedText:
    """What has been received of one text."""

    text: str = ""
    tokens: int = 0


@dataclass(slots=True)
class GenerateResponse:
    """Reads the messages of one run. Each contains everything from the beginning or only what is new: this is a server
    setting, and in some versions differs between lists and texts.
    """

    place: str
    _known: dict[int, _ReceivedText] = field(default_factory=dict)

    def delta(self, message: Mapping[str, Any]) -> TextDelta:
        """Return what a message adds. Raises EngineCutError if the engine aborted the text."""
        meta, number = message["meta_info"], as_count(message.get("index"))
        known = self._known.setdefault(number, _ReceivedText())
        ids, logs, tops = self._new_items(message, known)
        found = message.get("text")
        added = _added_text(
            found if isinstance(found, str) else "", known.text, "".join(_piece_of(one) for one in logs)
        )
        tokens = (
            tuple(map(_native_token, logs)) if "output_token_logprobs" in meta else _tokens_without_logprobs(ids, added)
        )
        if tops and len(tops) == len(tokens):
            tokens = tuple(StreamedToken(one.piece, one.id, one.log_probability, _native_alternatives(top))
                           for one, top in zip(tokens, tops, strict=True))  # fmt: skip
        known.text += added
        known.tokens += len(tokens)
        return TextDelta(number, added, tokens, *self._finish_reason(meta.get("finish_reason")))

    def _new_items(self, message: Mapping[str, Any], known: _ReceivedText) -> list[Sequence[Any]]:
        """Return the new ids, log-probabilities and alternatives."""
        meta = message["meta_info"]
        lists = (message.get("output_ids"), meta.get("output_token_logprobs"), meta.get("output_top_logprobs"))
        new = as_count(meta.get("completion_tokens")) - known.tokens
        return [_new_part(one if isinstance(one, list) else [], known.tokens, new) for one in lists]

    def _finish_reason(self, reason: object) -> tuple[str, str]:
        if not isinstance(reason, dict):
            return (reason, "") if isinstance(reason, str) else ("", "")
        if reason.get("type") == "abort" and reason.get("message"):
            raise http_stream.failed_error(str(reason["message"]), self.place)
        stop = reason.get("matched")
        return str(reason.get("type") or "stop"), stop if isinstance(stop, str) else ""


def _new_part(told: Sequence[object], known: int, new: int) -> Sequence[object]:
    """Return the new items of a list that contains either only the `new` ones or all, including the `known` ones."""
    is_piece = new > 0 and (len(told) == new or len(told) < known)
    return told if is_piece else told[known:]


def _added_text(told: str, known: str, pieces: str) -> str:
    """Return what a text adds to the `known` one: all of it if it consists of exactly the new tokens."""
    if not known or (told == pieces and told != known + pieces):
        return told
    if told.startswith(known):
        return told[len(known) :]
    return "" if known.startswith(told) else told  # a stop string may be removed again at the end


def _piece_of(told: object) -> str:
    return told[2] if isinstance(told, list) and len(told) > 2 and isinstance(told[2], str) else ""


def _native_logprob(told: Sequence[object]) -> TokenLogprob:
    number = told[1] if isinstance(told[1], int) and told[1] >= 0 else None
    return TokenLogprob(repair_text(_piece_of(told)) or f"⟨{told[1]}⟩", parse_log_probability(told[0]), number)


def _native_token(told: Sequence[object]) -> StreamedToken:
    one = _native_logprob(told)
    return StreamedToken(one.piece, one.id, one.log_probability)


def _native_alternatives(told: Any) -> tuple[TokenLogprob, ...]:
    return tuple(
        sorted((_native_logprob(one) for one in (told or ())[:MAX_ALTERNATIVES]), key=lambda one: -one.log_probability)
    )


def _tokens_without_logprobs(ids: Sequence[Any], text: str) -> tuple[StreamedToken, ...]:
    """Return tokens for which only ids are reported."""
    if not all(isinstance(one, int) and one >= 0 for one in ids):
        return ()
    return tuple(
        StreamedToken(text if text and place == len(ids) else f"⟨{one}⟩", one) for place, one in enumerate(ids, 1)
    )


Messages = Iterator[dict[str, object]]


class _EndpointUnavailableError(Exception):
    """The native endpoint did not answer; try the compatible one."""


def stream_messages(model: RemoteModel, request: EngineRequest, cancel: threading.Event) -> Messages:
    """Yield the engine's messages. An endpoint that fails is not tried again once the other one has answered. Raises
    EngineErrors.
    """
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
    """Stream from the native endpoint. Raises _EndpointUnavailableError if nothing of it could be read."""
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
    """Stream from the compatible endpoint; retry without probabilities if the engine rejects them or fails at them."""
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
    """Yield messages without probabilities; after the first one, probabilities are not requested from this engine
    again.
    """
    for message in answered:
        model.tells = False
        yield message
