"""The tokens that llama.cpp's server leaves out of a streamed answer.

The server sends nothing while its text ends inside a character, and reports the character with the id of its last token
alone (`process_token` in `tools/server/server-context.cpp`). The text of a stop string that has only begun is held back
in the same way. `timings.predicted_n` counts every token, so that a gap is noticed. The ids of the gap are found by the
server's own tokenizer, and only where no other ids can spell the same bytes.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from core.errors import EngineError
from core.remote.client import EngineClient
from core.remote.http_stream import CancelledError
from core.remote.prompt_tokens import short_timeout_client, tokenize_text
from core.remote.remote_model import RemoteModel
from core.remote.responses import StreamedToken, TextDelta, TokenLogprob
from core.remote.token_table import display_bytes

_RARE_BLOCKS = (0x80, 0x380, 0x2580)
"""Characters that few tokenizers hold whole: they are cut into the bytes that follow the first of a character."""


class WithheldTokenRecovery:
    """Completes the tokens of one streamed answer, message by message."""

    def __init__(self, model: RemoteModel, cancel: threading.Event) -> None:
        self._model, self._cancel = model, cancel
        self._client: EngineClient = short_timeout_client(model)
        self._reported = 0
        self._pending_bytes = b""
        self._bytes: dict[int, int] = {}
        self.missing_count = 0
        """Tokens of the answer whose ids are not known."""

    def fill_gap(self, part: TextDelta, decoded: int | None) -> TextDelta:
        """Return `part` with the tokens that are missing before it, and each token with its own piece. `decoded`: how
        many tokens the answer has after this part."""
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
        """Return the tokens of a gap and `token` itself, or None where they cannot be known for certain."""
        text = (token.token_bytes or b"").removeprefix(self._pending_bytes)
        try:
            found = self._recover_by_tokenizer(token, text, gap) or self._recover_single_bytes(token, text, gap)
        except (EngineError, CancelledError, ValueError):  # a UnicodeDecodeError is a ValueError
            return None
        if found is None:
            return None
        return (*found[:-1], replace(found[-1], log_probability=token.log_probability, top=token.top))

    def _recover_by_tokenizer(self, token: StreamedToken, text: bytes, gap: int) -> list[StreamedToken] | None:
        ids, data = tokenize_text(self._client, self._model, text.decode(), self._cancel) if text else ([], [])
        if len(ids) == gap + 2 and data[0] == b" " and b"".join(data) == b" " + text:  # SentencePiece's own space
            ids, data = ids[1:], data[1:]
        is_only_one = gap == 1 or all(len(one) == 1 for one in data[:-1])
        if len(ids) != gap + 1 or ids[-1] != token.id or b"".join(data) != text or not is_only_one:
            return None
        return [
            StreamedToken(display_bytes(one), number, token_bytes=one) for number, one in zip(ids, data, strict=True)
        ]

    def _recover_single_bytes(self, token: StreamedToken, text: bytes, gap: int) -> list[StreamedToken] | None:
        """Return the tokens of a text that has one for each byte, which its usual tokens are not."""
        if len(text) != gap + 1:
            return None
        for char in text.decode():
            self._learn_bytes(char)
        ids = [self._bytes.get(one) for one in text]
        if ids[-1] != token.id or None in ids:
            return None
        return [StreamedToken(display_bytes(bytes([one])), self._bytes[one], token_bytes=bytes([one])) for one in text]

    def _learn_bytes(self, char: str) -> None:
        """Find the ids of the bytes of `char` in characters that share bytes with it: it can be a token itself."""
        for base in (ord(char), *_RARE_BLOCKS):
            if all(one in self._bytes for one in char.encode()):
                return
            near = "".join(chr(base & ~63 | last) for last in range(64)).encode("utf-8", "replace").decode()
            ids, pieces = tokenize_text(self._client, self._model, near, self._cancel)
            self._bytes.update({one[0]: number for number, one in zip(ids, pieces, strict=True) if len(one) == 1})

    def remaining_text(self, part: TextDelta) -> str:
        """Return the text that was held back as the start of a stop string when the answer reached its length."""
        if part.finish != "length":
            return ""
        rest, self._pending_bytes = self._pending_bytes, b""
        return rest.decode("utf-8", "replace")

    def _with_own_piece(self, token: StreamedToken) -> StreamedToken:
        """Return `token` with its own piece: the message has the text that is sent with it instead."""
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
