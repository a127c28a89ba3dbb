"""Tokenize a prompt with the engine's own tokenizer. If that fails, only the token boundaries are missing."""

from __future__ import annotations

import codecs
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from decodescope.core.errors import EngineAccessError, EngineBusyError, EngineError
from decodescope.core.events import PromptToken
from decodescope.core.models.token_scheme import TokenScheme
from decodescope.core.remote.client import EngineClient, short_timeout_client
from decodescope.core.remote.engines.base import EngineTokenizer
from decodescope.core.remote.http_stream import CancelledError
from decodescope.core.remote.remote_model import RemoteModel
from decodescope.core.remote.request_builder import EngineRequest
from decodescope.core.remote.responses import display_bytes, split_text
from decodescope.core.remote.tokenizer_replies import UnexpectedReplyError, parse_tokens, text_field

_MAX_ADDED_TOKENS = 4
"""Maximum number of special tokens before a text, and after it."""
_SCHEMES = (TokenScheme(), TokenScheme(byte_level=True), TokenScheme(byte_fallback=True, space_mark=True))
"""How engines may spell tokens: as their text, as byte-level BPE, or as SentencePiece."""


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """The tokens of a prompt."""

    count: int
    prompt: tuple[PromptToken, ...] = ()
    """Empty if no token ends where the answer begins."""
    beginning: tuple[PromptToken, ...] = ()


def tokenize_prompt(model: RemoteModel, request: EngineRequest, cancel: threading.Event) -> PromptTokens | None:
    """Return the tokens of the prompt, or None if the engine does not report them. One attempt; a model whose engine
    has no tokenizer is not tried again.
    """
    tokenizer = model.kind.tokenizer
    if tokenizer is None or not model.reads:
        return None
    try:
        return _request_tokens(model, tokenizer, short_timeout_client(model.client), request, cancel)
    except CancelledError:
        return None
    except (EngineBusyError, EngineAccessError):
        return None  # may succeed in another run
    except (EngineError, UnexpectedReplyError):
        model.reads = False
        return None


def _request_tokens(
    model: RemoteModel,
    tokenizer: EngineTokenizer,
    client: EngineClient,
    engine_request: EngineRequest,
    cancel: threading.Event,
) -> PromptTokens:
    root, prompt, messages = model.address.root, engine_request.body.get("prompt"), engine_request.body.get("messages")
    if isinstance(prompt, list):
        reply = client.post(f"{root}/detokenize", {"model": model.name, "tokens": prompt}, cancel)
        return _tokens_from_ids(model, prompt, text_field(reply, tokenizer.text_field))
    if prompt is None and tokenizer.chat_text is not None:
        prompt = tokenizer.chat_text(model, client, messages, cancel)
    body = tokenizer.build_body(model.name, prompt, messages)
    ids, raw = parse_tokens(client.post(f"{root}/tokenize", body, cancel))
    return _split_prompt(model, engine_request, ids, raw, prompt)


def _tokens_from_ids(model: RemoteModel, ids: Sequence[int], text: str) -> PromptTokens:
    known = [model.words.piece_of(number) or "" for number in ids]
    texts = split_text(text, known)
    return _to_prompt_tokens(ids, texts, known, len(ids))


def _split_prompt(
    model: RemoteModel,
    engine_request: EngineRequest,
    ids: Sequence[int],
    raw: Sequence[str | bytes],
    sent_text: str | None,
) -> PromptTokens:
    """Split the tokens into prompt and beginning of the answer. `sent_text` is the text of the tokens; None if only the
    messages of a chat are known.
    """
    found = next(_matching_encodings(raw, sent_text, engine_request.body.get("messages", ())), None)
    if found is None:  # the tokenizer changes its text: report the tokens without the text that each adds
        texts = ["" for _ in ids[1:]] + [engine_request.prompt_text]
        pieces = [one if isinstance(one, str) else "" for one in raw]
        return PromptTokens(len(ids)) if engine_request.beginning else _to_prompt_tokens(ids, texts, pieces, len(ids))
    pieces = [display_bytes(one) for one in found.data]
    for number, piece in zip(ids, pieces, strict=True):
        if piece:
            model.words.id_of(piece, number)
    texts = _added_texts(found)
    end = _token_after(engine_request.prompt_text, texts, found.first) if engine_request.beginning else len(ids)
    return PromptTokens(len(ids)) if end is None else _to_prompt_tokens(ids, texts, pieces, end)


def _to_prompt_tokens(ids: Sequence[int], texts: Sequence[str], pieces: Sequence[str], end: int) -> PromptTokens:
    tokens = tuple(
        PromptToken(number, text, piece if piece != text else "")
        for number, text, piece in zip(ids, texts, pieces, strict=True)
    )
    return PromptTokens(len(tokens), tokens[:end], tokens[end:])


class _TokenBytes(NamedTuple):
    """The bytes of each token."""

    data: Sequence[bytes]
    first: int = 0
    """Index of the first token of the text; special tokens precede it."""
    has_leading_space: bool = False
    """Whether an extra space precedes the text."""


def _matching_encodings(
    raw: Sequence[str | bytes], sent_text: str | None, messages: Sequence[Mapping[str, object]]
) -> Iterator[_TokenBytes]:
    """Yield the tokens' bytes in every vocabulary encoding that reproduces the prompt."""
    for scheme in _SCHEMES:
        data = [one if isinstance(one, bytes) else scheme.token_bytes(one, is_added=False) or b"" for one in raw]
        if sent_text is not None:
            yield from _matching_ranges(data, sent_text.encode("utf-8", "replace"))
        elif all(str(one.get("content")).strip().encode("utf-8", "replace") in b"".join(data) for one in messages):
            yield _TokenBytes(data)


def _matching_ranges(data: Sequence[bytes], text: bytes) -> Iterator[_TokenBytes]:
    """Find the text among the tokens: up to a few special tokens may precede and follow it."""
    for first in range(min(_MAX_ADDED_TOKENS, len(data) - 1) + 1):
        for last in range(len(data), max(first, len(data) - _MAX_ADDED_TOKENS - 1), -1):
            joined = b"".join(data[first:last])
            if joined in (text, b" " + text):
                yield _TokenBytes(data, first, joined != text)


def _added_texts(token_bytes: _TokenBytes) -> list[str]:
    """Return what each token adds: a character of several tokens comes with the last of them."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts = [
        decoder.decode(one, final=place == len(token_bytes.data) - 1) for place, one in enumerate(token_bytes.data)
    ]
    if token_bytes.has_leading_space:
        texts[token_bytes.first] = texts[token_bytes.first].removeprefix(" ")
    return texts


def _token_after(text: str, texts: Sequence[str], first: int) -> int | None:
    """Return the index of the first token after `text`; None if a token extends over its end."""
    done = 0
    for place in range(first, len(texts) + 1):
        if done == len(text):
            return place
        if place == len(texts) or not text.startswith(texts[place], done):
            return None
        done += len(texts[place])
    return None
