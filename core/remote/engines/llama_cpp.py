"""llama.cpp's server. It reports only whole characters; the tokens that it withholds are recovered with its
tokenizer.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from decodescope.core.errors import EngineError
from decodescope.core.grammar.grammar_setting import schema_of
from decodescope.core.remote.client import EngineClient, short_timeout_client
from decodescope.core.remote.engines.base import Body, ConnectedModel, EngineKind, EngineTokenizer, Message
from decodescope.core.remote.engines.formats import GRAMMAR, OPENAI_SETTINGS, USAGE, choice_as_gbnf, gbnf_field
from decodescope.core.remote.http_stream import CancelledError
from decodescope.core.remote.responses import (
    ResponseUsage,
    StreamedToken,
    TextDelta,
    TokenLogprob,
    display_bytes,
    valid_count,
)
from decodescope.core.remote.tokenizer_replies import UnexpectedReplyError, parse_tokens, text_field

_SETTINGS = {
    "top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repeat_penalty", "typical_p": "typical_p",
    "top_n_sigma": "top_n_sigma", "xtc_probability": "xtc_probability", "xtc_threshold": "xtc_threshold",
    "dry_multiplier": "dry_multiplier", "dry_base": "dry_base", "dry_allowed_length": "dry_allowed_length",
    "dry_range": "dry_penalty_last_n",
}  # fmt: skip
_SAMPLERS = ["penalties", "dry", "temperature", "top_k", "top_p", "min_p", "top_n_sigma", "typ_p", "xtc"]
"""The samplers in the order of transformers."""
_MAX_MILLISECONDS = 2**53


def chat_text(model: ConnectedModel, client: EngineClient, messages: object, cancel: threading.Event) -> str:
    """Return the text of a chat by the model's own template."""
    reply = client.post(f"{model.address.root}/apply-template", {"messages": messages}, cancel)
    return text_field(reply, "prompt")


def tokenize_body(model: str, prompt: str | None, messages: object) -> Body:
    """Return the body of a request for the tokens of a prompt."""
    return {"content": prompt, "add_special": True, "parse_special": True, "with_pieces": True}


def tokenize_text(
    client: EngineClient, model: ConnectedModel, text: str, cancel: threading.Event
) -> tuple[list[int], list[bytes]]:
    """Return the ids and bytes of the tokens of `text` from llama.cpp's tokenizer, without special tokens. Raises
    EngineError, CancelledError, ValueError.
    """
    body = {"content": text, "add_special": False, "parse_special": False, "with_pieces": True}
    try:
        ids, raw = parse_tokens(client.post(f"{model.address.root}/tokenize", body, cancel))
    except UnexpectedReplyError as error:
        raise ValueError(text) from error
    return ids, [one if isinstance(one, bytes) else one.encode("utf-8", "replace") for one in raw]


_RARE_BLOCKS = (0x80, 0x380, 0x2580)
"""Code blocks of characters that few tokenizers have as whole tokens: they are split into the bytes that follow a
character's first byte.
"""


class WithheldTokenRecovery:
    """Fills the gaps in the tokens of one streamed answer, message by message."""

    def __init__(self, model: ConnectedModel, cancel: threading.Event) -> None:
        self._model, self._cancel = model, cancel
        self._client: EngineClient = short_timeout_client(model.client)
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
        joined = b"".join(one.token_bytes or b"" for one in (*before[:-1], exact))
        self._pending_bytes = (self._pending_bytes + joined).removeprefix(token.token_bytes or b"")
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


def read_usage(usage: ResponseUsage, message: Message) -> None:
    """Read the timings, which every message contains."""
    timings = message.get("timings")
    if not isinstance(timings, dict):
        return
    milliseconds = timings.get("prompt_ms")
    if isinstance(milliseconds, (int, float)) and 0 < milliseconds < _MAX_MILLISECONDS:
        usage.prompt_seconds = milliseconds / 1000
    usage.cached = valid_count(timings.get("cache_n"), usage.cached)
    usage.decoded = valid_count(timings.get("predicted_n"), usage.decoded)
    usage.drafted = valid_count(timings.get("draft_n"), usage.drafted)
    usage.accepted = valid_count(timings.get("draft_n_accepted"), usage.accepted)


ENGINE = EngineKind(
    "llama.cpp",
    "llama.cpp",
    {**OPENAI_SETTINGS, **_SETTINGS, **GRAMMAR},
    {**USAGE, "samplers": _SAMPLERS, "timings_per_token": True, "return_tokens": True},
    max_seed=2**32 - 1,  # it uses 32 bits of a seed, and a random one for the largest number
    alternatives=100,
    chat_alternatives=100,
    counts_by="n_probs",
    takes_ids=True,
    whole_text=("repeat_last_n", "dry_penalty_last_n"),
    owned_by="llamacpp",
    server="llama.cpp",
    loads_any_model=True,
    grammars={
        "json_schema": lambda content: {"json_schema": schema_of(content)},
        "choice": choice_as_gbnf,
        "gbnf": gbnf_field,
    },
    tokenizer=EngineTokenizer("content", tokenize_body, chat_text),
    recover_tokens=WithheldTokenRecovery,
    read_usage=read_usage,
    order=30,
)
