"""Tokenize a prompt with the engine's own tokenizer. If that fails, only the token boundaries are missing."""

from __future__ import annotations

import codecs
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from core.errors import EngineAccessError, EngineBusyError, EngineError
from core.events import PromptToken
from core.models.text import BYTE_TOKEN, byte_alphabet, shown_bytes
from core.remote.backends import LLAMA_CPP
from core.remote.client import EngineClient
from core.remote.http_stream import CancelledError
from core.remote.remote_model import RemoteModel
from core.remote.request_builder import EngineRequest
from core.remote.responses import StreamedToken, TextDelta, TokenLogprob, display_bytes, split_text

_TIMEOUT_SECONDS = 5.0
"""Timeout for the tokenizer request."""
_MAX_ADDED_TOKENS = 4
"""Maximum number of special tokens before a text, and after it."""
_MAX_TOKENS = 2**22
_MAX_ID = 2**31


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """The tokens of a prompt."""

    count: int
    prompt: tuple[PromptToken, ...] = ()
    """Empty if no token ends where the answer begins."""
    beginning: tuple[PromptToken, ...] = ()


class _UnexpectedReplyError(Exception):
    """The tokenizer's response has an unexpected form."""


def tokenize_prompt(model: RemoteModel, request: EngineRequest, cancel: threading.Event) -> PromptTokens | None:
    """Return the tokens of the prompt, or None if the engine does not report them. One attempt; a model whose engine
    has no tokenizer is not tried again.
    """
    if not (model.kind.tokenizes and model.reads):
        return None
    try:
        return _request_tokens(model, short_timeout_client(model), request, cancel)
    except CancelledError:
        return None
    except (EngineBusyError, EngineAccessError):
        return None  # may succeed in another run
    except (EngineError, _UnexpectedReplyError):
        model.reads = False
        return None


def short_timeout_client(model: RemoteModel) -> EngineClient:
    """Return a client with short timeouts, for requests that a run does not depend on."""
    patience = model.client.timeouts
    hasty = replace(
        patience,
        first_byte=min(patience.first_byte, _TIMEOUT_SECONDS),
        between=min(patience.between, _TIMEOUT_SECONDS),
        max_attempts=1,
    )
    return EngineClient(model.address, hasty)


def tokenize_text(
    client: EngineClient, model: RemoteModel, text: str, cancel: threading.Event
) -> tuple[list[int], list[bytes]]:
    """Return the ids and bytes of the tokens of `text` from llama.cpp's tokenizer, without special tokens. Raises
    EngineError, CancelledError, ValueError.
    """
    body = {"content": text, "add_special": False, "parse_special": False, "with_pieces": True}
    try:
        ids, raw = _parse_tokens(client.post(f"{model.address.root}/tokenize", body, cancel))
    except _UnexpectedReplyError as error:
        raise ValueError(text) from error
    return ids, [one if isinstance(one, bytes) else _plain_bytes(one) for one in raw]


def _request_tokens(
    model: RemoteModel, client: EngineClient, asked: EngineRequest, cancel: threading.Event
) -> PromptTokens:
    root, prompt = model.address.root, asked.body.get("prompt")
    if isinstance(prompt, list):
        return _tokens_from_ids(
            model, prompt, client.post(f"{root}/detokenize", {"model": model.name, "tokens": prompt}, cancel)
        )
    body: dict[str, object] = {"prompt": prompt} if prompt is not None else {"messages": asked.body["messages"]}
    if model.kind is LLAMA_CPP:
        if prompt is None:
            prompt = _text_field(client.post(f"{root}/apply-template", body, cancel), "prompt")
        body = {"content": prompt, "add_special": True, "parse_special": True, "with_pieces": True}
    else:
        body |= {"model": model.name, "return_token_strs": True}
    ids, raw = _parse_tokens(client.post(f"{root}/tokenize", body, cancel))
    return _split_prompt(model, asked, ids, raw, prompt)


def _tokens_from_ids(model: RemoteModel, ids: Sequence[int], reply: object) -> PromptTokens:
    text = _text_field(reply, "content" if model.kind is LLAMA_CPP else "prompt")
    known = [model.words.piece_of(number) or "" for number in ids]
    texts = split_text(text, known)
    return _to_prompt_tokens(ids, texts, known, len(ids))


def _text_field(reply: object, name: str) -> str:
    text = reply.get(name) if isinstance(reply, dict) else None
    if not isinstance(text, str):
        raise _UnexpectedReplyError
    return text


def _parse_tokens(reply: object) -> tuple[list[int], list[str | bytes]]:
    """Return the ids, and each token as in the vocabulary (vLLM) or as its text (llama.cpp)."""
    told = reply.get("tokens") if isinstance(reply, dict) else None
    names = reply.get("token_strs") if isinstance(reply, dict) else None
    if not isinstance(told, list) or not 0 < len(told) <= _MAX_TOKENS:
        raise _UnexpectedReplyError
    if all(isinstance(one, dict) for one in told):
        names, told = [one.get("piece") for one in told], [one.get("id") for one in told]
    if not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < _MAX_ID for one in told):
        raise _UnexpectedReplyError
    if not isinstance(names, list) or len(names) != len(told):
        names = [None] * len(told)
    return told, [_token_name(one) for one in names]


def _token_name(told: object) -> str | bytes:
    if isinstance(told, list) and all(isinstance(one, int) and 0 <= one < 256 for one in told):
        return bytes(told)
    return told if isinstance(told, str) else ""


def _split_prompt(
    model: RemoteModel, asked: EngineRequest, ids: Sequence[int], raw: Sequence[str | bytes], sent: str | None
) -> PromptTokens:
    """Split the tokens into prompt and beginning of the answer. `sent` is the text of the tokens; None if only the
    messages of a chat are known.
    """
    found = next(_matching_encodings(raw, sent, asked.body.get("messages", ())), None)
    if found is None:  # the tokenizer changes its text: report the tokens without the text that each adds
        texts = ["" for _ in ids[1:]] + [asked.prompt_text]
        pieces = [one if isinstance(one, str) else "" for one in raw]
        return PromptTokens(len(ids)) if asked.beginning else _to_prompt_tokens(ids, texts, pieces, len(ids))
    pieces = [_displayed_text(one) for one in found.data]
    for number, piece in zip(ids, pieces, strict=True):
        if piece:
            model.words.id_of(piece, number)
    texts = _added_texts(found)
    end = _token_after(asked.prompt_text, texts, found.first) if asked.beginning else len(ids)
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
    raw: Sequence[str | bytes], sent: str | None, messages: Sequence[Mapping[str, object]]
) -> Iterator[_TokenBytes]:
    """Yield the tokens' bytes in every vocabulary encoding that reproduces the prompt."""
    for way in (_plain_bytes, _byte_level_bytes, _sentencepiece_bytes):
        data = [one if isinstance(one, bytes) else way(one) for one in raw]
        if sent is not None:
            yield from _matching_ranges(data, sent.encode("utf-8", "replace"))
        elif all(str(one.get("content")).strip().encode("utf-8", "replace") in b"".join(data) for one in messages):
            yield _TokenBytes(data)


def _matching_ranges(data: Sequence[bytes], text: bytes) -> Iterator[_TokenBytes]:
    """Find the text among the tokens: up to a few special tokens may precede and follow it."""
    for first in range(min(_MAX_ADDED_TOKENS, len(data) - 1) + 1):
        for last in range(len(data), max(first, len(data) - _MAX_ADDED_TOKENS - 1), -1):
            spelled = b"".join(data[first:last])
            if spelled in (text, b" " + text):
                yield _TokenBytes(data, first, spelled != text)


def _plain_bytes(name: str) -> bytes:
    return name.encode("utf-8", "replace")


def _byte_level_bytes(name: str) -> bytes:
    alphabet = byte_alphabet()
    return bytes(alphabet[char] for char in name) if all(char in alphabet for char in name) else _plain_bytes(name)


def _sentencepiece_bytes(name: str) -> bytes:
    match = BYTE_TOKEN.fullmatch(name)
    return bytes([int(match[1], 16)]) if match else _plain_bytes(name.replace("▁", " "))


def _displayed_text(data: bytes) -> str:
    return shown_bytes(data.decode("utf-8", "surrogateescape"))


def _added_texts(found: _TokenBytes) -> list[str]:
    """Return what each token adds: a character of several tokens comes with the last of them."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts = [decoder.decode(one, final=place == len(found.data) - 1) for place, one in enumerate(found.data)]
    if found.has_leading_space:
        texts[found.first] = texts[found.first].removeprefix(" ")
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


_RARE_BLOCKS = (0x80, 0x380, 0x2580)
"""Code blocks of characters that few tokenizers have as whole tokens: they are split into the bytes that follow a
character's first byte.
"""


class WithheldTokenRecovery:
    """Fills the gaps in the tokens of one streamed answer, message by message."""

    def __init__(self, model: RemoteModel, cancel: threading.Event) -> None:
        self._model, self._cancel = model, cancel
        self._client: EngineClient = short_timeout_client(model)
        self._reported = 0
        self._pending_bytes = b""
        self._bytes: dict[int, int] = {}
        self.missing_count = 0
        """Number of tokens whose ids are unknown."""

    def fill_gap(self, part: TextDelta, decoded: int | None) -> TextDelta:
        """Return `part` with the missing tokens before it, and each token with its own piece. `decoded` is the number
        of tokens in the answer after this part.
        """
        gap = max((decoded or 0) - self._reported - len(part.tokens), 0)
        self._reported += gap + len(part.tokens)
        if not part.tokens:
            self.missing_count += gap
            return part
        if len(part.tokens) > 1:
            self.missing_count += gap
            return part
        (token,) = part.tokens
        token = replace(token, top=tuple(map(self._with_name, token.top)))
        before = self._recover_gap(token, gap) if gap else ()
        if before is None:
            self.missing_count += gap
            self._pending_bytes = b""
            return replace(
                part, tokens=(replace(token, id=None) if token.token_bytes else self._with_own_piece(token),)
            )
        exact = before[-1] if before else self._with_own_piece(token)
        spelled = b"".join(one.token_bytes or b"" for one in (*before[:-1], exact))
        self._pending_bytes = (self._pending_bytes + spelled).removeprefix(token.token_bytes or b"")
        return replace(part, tokens=(*before[:-1], exact))

    def _recover_gap(self, token: StreamedToken, gap: int) -> tuple[StreamedToken, ...] | None:
        """Return the tokens of a gap and `token` itself, or None if they are ambiguous."""
        text = (token.token_bytes or b"").removeprefix(self._pending_bytes)
        try:
            found = self._recover_by_tokenizer(token, text, gap) or self._recover_single_bytes(token, text, gap)
        except (EngineError, CancelledError, ValueError):  # UnicodeDecodeError is a ValueError
            return None
        if found is None:
            return None
        return (*found[:-1], replace(found[-1], log_probability=token.log_probability, top=token.top))

    def _recover_by_tokenizer(self, token: StreamedToken, text: bytes, gap: int) -> list[StreamedToken] | None:
        ids, data = tokenize_text(self._client, self._model, text.decode(), self._cancel) if text else ([], [])
        if (
            len(ids) == gap + 2 and data[0] == b" " and b"".join(data) == b" " + text
        ):  # space that SentencePiece prepends
            ids, data = ids[1:], data[1:]
        is_only_one = gap == 1 or all(len(one) == 1 for one in data[:-1])
        if len(ids) != gap + 1 or ids[-1] != token.id or b"".join(data) != text or not is_only_one:
            return None
        return [
            StreamedToken(display_bytes(one), number, token_bytes=one) for number, one in zip(ids, data, strict=True)
        ]

    def _recover_single_bytes(self, token: StreamedToken, text: bytes, gap: int) -> list[StreamedToken] | None:
        """Return the tokens of a text with one token per byte, which the tokenizer normally would not produce."""
        if len(text) != gap + 1:
            return None
        for char in text.decode():
            self._learn_bytes(char)
        ids = [self._bytes.get(one) for one in text]
        if ids[-1] != token.id or None in ids:
            return None
        return [StreamedToken(display_bytes(bytes([one])), self._bytes[one], token_bytes=bytes([one])) for one in text]

    def _learn_bytes(self, char: str) -> None:
        """Find the ids of the bytes of `char` through similar characters: `char` itself may be a token."""
        for base in (ord(char), *_RARE_BLOCKS):
            if all(one in self._bytes for one in char.encode()):
                return
            near = "".join(chr(base & ~63 | last) for last in range(64)).encode("utf-8", "replace").decode()
            ids, pieces = tokenize_text(self._client, self._model, near, self._cancel)
            self._bytes.update({one[0]: number for number, one in zip(ids, pieces, strict=True) if len(one) == 1})

    def remaining_text(self, part: TextDelta) -> str:
        """Return the text held back as the beginning of a stop string when the answer reached its length limit."""
        if part.finish != "length":
            return ""
        rest, self._pending_bytes = self._pending_bytes, b""
        return rest.decode("utf-8", "replace")

    def _with_own_piece(self, token: StreamedToken) -> StreamedToken:
        """Return `token` with its own piece: the message contains the text sent with it instead."""
        own = next((one for one in token.top if one.id == token.id), None)
        if own is not None:
            return replace(token, piece=own.piece, token_bytes=own.token_bytes)
        if token.token_bytes and not self._pending_bytes:
            return token
        named = self._with_name(TokenLogprob("", token.log_probability, token.id, b""))
        return replace(token, piece=named.piece, token_bytes=named.token_bytes)

    def _with_name(self, one: TokenLogprob) -> TokenLogprob:
        """Return a token without text with its name: the server hides the text of control tokens."""
        if one.token_bytes or one.id is None:
            return one
        piece = self._model.words.piece_of(one.id) or self._request_name(one.id)
        return one._replace(piece=piece, token_bytes=None if "\ufffd" in piece else piece.encode("utf-8", "replace"))

    def _request_name(self, number: int) -> str:
        try:
            path = f"{self._model.address.root}/detokenize"
            reply = self._client.post(path, {"model": self._model.name, "tokens": [number]}, self._cancel)
        except (EngineError, CancelledError):
            reply = None
        content = reply.get("content") if isinstance(reply, dict) else None
        return content if isinstance(content, str) and content and "\ufffd" not in content else f"⟨{number}⟩"
