"""Convert token ids to text: single tokens, and the text that a growing sequence of ids spells.

All conversions of ids to text use this module: runs, prompts, beams, scores, grammars and stop strings.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from decodescope.core.models.token_scheme import BYTE_TOKEN, added_ids, detect_scheme, special_ids

if TYPE_CHECKING:
    from typing import Self

    import torch
    from transformers import PreTrainedModel

    class Network(PreTrainedModel):
        """A model with a language-model head, and the parts of transformers' `GenerationMixin` that are used here."""

        @classmethod
        def _supports_default_dynamic_cache(cls) -> bool: ...

        def eval(self) -> Self: ...

        def get_output_embeddings(self) -> torch.nn.Linear: ...

        def get_decoder(self) -> torch.nn.Module: ...

        def prepare_inputs_for_generation(self, ids: torch.Tensor, /, **kwargs: object) -> dict[str, object]: ...

        def _update_model_kwargs_for_generation(
            self, outputs: object, kwargs: dict[str, object], is_encoder_decoder: bool
        ) -> dict[str, object]: ...


class Tokenizer(Protocol):
    """The tokenizer methods used to spell tokens."""

    @property
    def all_special_ids(self) -> list[int]: ...

    def decode(self, ids: list[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool) -> str: ...

    def convert_ids_to_tokens(self, ids: int, /) -> str | bytes | None: ...


INCOMPLETE = "\ufffd"
_WINDOW = 6
"""Number of preceding tokens on which the text of a new token may depend."""
_MAX_TAIL = 16
"""Maximum number of tokens kept from the end of a text, so that the cost per token stays constant."""
_MAX_CHARACTER_BYTES = 4
_PREFIX = "abcdef"
"""Text after which `generate` spells a token to find stop strings in it."""

_Utf8 = codecs.getincrementaldecoder("utf-8")


def shown_bytes(text: str) -> str:
    """Return text decoded with surrogateescape in which every byte of an incomplete character is written as ⟨E2⟩."""
    return "".join(f"⟨{ord(char) - 0xDC00:02X}⟩" if 0xDC80 <= ord(char) <= 0xDCFF else char for char in text)


def _append(texts: list[str], rest: str) -> None:
    """Append the remaining incomplete bytes to the last token."""
    if rest and texts:
        texts[-1] += shown_bytes(rest)


class TokenSpellings:
    """Texts of single token ids, cached."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer: Any = tokenizer
        self._texts: dict[int, str] = {}
        self._bytes: dict[int, bytes | None] = {}
        self._stops: dict[int, bytes | None] = {}
        self._prefix: list[str] | None = None
        self.scheme = detect_scheme(tokenizer)
        self.special = special_ids(tokenizer)
        """Ids that decoding skips."""
        self._added = added_ids(tokenizer)

    def __getitem__(self, token: int) -> str:
        piece = self._texts.get(token)
        if piece is None:
            piece = self._texts[token] = self._spell(token)
        return piece

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Return what each of `ids` adds to the text they spell.

        A character made of several tokens comes with the last of them, bytes of incomplete characters as ⟨E2⟩, and
        special tokens as they are.
        """
        found = self._byte_texts(ids)
        if self._tokenizer is None or self.scheme.errors:
            return found
        known = [token for token in ids if self.data(token) is not None]
        own = "".join([text for token, text in zip(ids, found, strict=True) if self.data(token) is not None])
        whole = Decoder(self._tokenizer)(known)
        if own == whole or (own == f" {whole}" and own[1:2] == " "):
            return found  # keep all leading spaces: some tokenizers write one before every text
        if own == f" {whole}":
            first = next(place for place, token in enumerate(ids) if self.data(token))
            return [*found[:first], found[first].removeprefix(" "), *found[first + 1 :]]
        return self._decoded_texts(ids, found)

    def _byte_texts(self, ids: Sequence[int]) -> list[str]:
        """Return the texts according to the bytes of each token."""
        found: list[str] = []
        decoder = _Utf8("surrogateescape")
        for token in ids:
            data = self.data(token)
            if data is None or not (self.scheme.errors or self.is_byte(token)):
                _append(found, decoder.decode(b"", final=True))
            found.append(self[token] if data is None else shown_bytes(decoder.decode(data)))
        _append(found, decoder.decode(b"", final=True))
        return found

    def _decoded_texts(self, ids: Sequence[int], joined: Sequence[str]) -> list[str]:
        """Return the texts as the tokenizer decodes them, if the tokens' bytes do not add up to that; those of byte
        tokens as in `joined`.
        """
        decoder = IncrementalDecoder(self._tokenizer, self)
        state, found, bytes_before = decoder.start, list(joined), False
        for place, token in enumerate(ids):
            if self.data(token) is None:
                continue
            if self.is_byte(token):
                bytes_before = True
                continue
            keeps_space = bytes_before and not state.has_text
            text, state = decoder.push(state, token)
            found[place] = joined[place] if keeps_space else text
        _append(found, decoder.flush(state))
        return found

    def _spell(self, token: int) -> str:
        data = self.data(token)
        if data is not None:
            return shown_bytes(data.decode("utf-8", "surrogateescape"))
        raw = self._raw(token)
        is_known = raw is not None and (token in self.special or not self.scheme.latin1)
        return str(raw) if is_known else f"⟨{token}⟩"

    def _raw(self, token: int) -> str | bytes | None:
        if self._tokenizer is None:
            return None
        try:
            raw: str | bytes | None = self._tokenizer.convert_ids_to_tokens(token)
        except (IndexError, KeyError, ValueError, OverflowError):  # an id beyond the vocabulary, or a negative one
            return None
        return raw

    def data(self, token: int) -> bytes | None:
        """Return the bytes that a token spells; None for special and unknown tokens."""
        if token not in self._bytes:
            self._bytes[token] = None if token in self.special else self._read_bytes(token)
        return self._bytes[token]

    def _read_bytes(self, token: int) -> bytes | None:
        raw = self._raw(token)
        if raw is None or isinstance(raw, bytes):
            return raw
        return self.scheme.token_bytes(raw, token in self._added)

    def is_byte(self, token: int) -> bool:
        """Return whether a token is a single byte in a vocabulary of whole characters."""
        if not self.scheme.byte_fallback:
            return False
        data = self.data(token)
        return data is not None and len(data) == 1 and self.scheme.is_byte(str(self._raw(token)))

    def stop_bytes(self, token: int) -> bytes | None:
        """Return the bytes in which `generate` looks for stop strings: those of the token after other text, or a
        special token's name; None for an unknown id.
        """
        if token not in self._stops:
            self._stops[token] = self._read_stop(token)
        return self._stops[token]

    def _read_stop(self, token: int) -> bytes | None:
        raw, scheme = self._raw(token), self.scheme
        if raw is None or isinstance(raw, bytes):
            return raw
        if scheme.byte_level or scheme.latin1 or (scheme.byte_fallback and BYTE_TOKEN.fullmatch(raw)):
            return scheme.token_bytes(raw, token in self._added)
        try:
            text = str(self._tokenizer.convert_tokens_to_string([*self._prefix_tokens(), raw]))
            return text[text.index(_PREFIX) + len(_PREFIX) :].encode("utf-8", "surrogatepass")
        except (AttributeError, TypeError, ValueError):  # no such method, or no tokens for these letters
            return scheme.token_bytes(raw, token in self._added)

    def _prefix_tokens(self) -> list[str]:
        """Return the tokens of the text after which stop strings are searched."""
        if self._prefix is None:
            ids = self._tokenizer(_PREFIX, add_special_tokens=False)["input_ids"]
            self._prefix = [str(self._tokenizer.convert_ids_to_tokens(token)) for token in ids]
        return self._prefix


class Decoder:
    """Decodes token ids without special tokens, as growing texts require."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer = tokenizer

    def __call__(self, ids: Sequence[int]) -> str:
        if self._tokenizer is None or not ids:
            return ""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def added_text(self, prefix: Sequence[int], ids: Sequence[int]) -> str:
        """Return the text that `ids` adds to that of `prefix`, which ends with a complete character.

        Decoders with byte tokens drop a whole run of them because of one invalid byte; text already shown stays, and
        only the rest is decoded separately.
        """
        before, after = self(prefix), self(ids)
        return after[len(before) :] if after.startswith(before) else self(ids[len(prefix) :])


class TextState(NamedTuple):
    """State needed to spell a text's next token; its size does not grow with the text."""

    tail: tuple[int, ...]
    """The last tokens; empty if their bytes suffice."""
    held_tokens: int
    """Number of tokens at the end whose character is incomplete."""
    has_text: bool
    """Whether there is any text before: some tokenizers strip the space before the first word."""
    pending: bytes = b""
    """Bytes of the incomplete character."""
    context_tokens: int = 0
    """Number of held tokens that precede the first pushed token."""


class IncrementalDecoder:
    """Spells texts token by token, at a cost independent of their length.

    The texts that `push` returns, and finally `flush`, add up to the decoded sequence.
    """

    def __init__(self, tokenizer: Tokenizer | None, pieces: TokenSpellings | None = None) -> None:
        self._has_no_tokenizer = tokenizer is None
        self._decode = Decoder(tokenizer)
        self._pieces = pieces if pieces is not None else TokenSpellings(tokenizer)
        self._scheme = self._pieces.scheme
        self._context_free: set[int] = set()
        """Tokens whose text after other text is always their own: they need not be decoded again."""
        self.start = TextState((), 0, False)
        """State of an empty text."""

    def state_after(self, context: Sequence[int]) -> TextState:
        """Return the state after the tokens of an existing text."""
        if self._has_no_tokenizer:
            return self.start
        if self._scheme.errors:
            pending = self._pending_bytes(context)
            return TextState((), int(bool(pending)), True, pending, int(bool(pending)))
        ids = [token for token in context if self._pieces.data(token) is not None]
        pending = self._pending_bytes(ids) if self._scheme.byte_fallback or self._scheme.byte_level else b""
        held = self._count_pending_tokens(ids, pending)
        tail = self.tail(ids)
        return TextState(tail, held, bool(self._decode(tail[: len(tail) - held])), pending, held)

    def push(self, state: TextState, token: int) -> tuple[str, TextState]:
        """Return the complete characters that `token` adds, and the next state."""
        if self._has_no_tokenizer:
            return "", state
        data = self._pieces.data(token)
        if not data:  # decoding skips it
            return "", state
        if self._scheme.errors:
            return self._push_bytes(state, data)
        if token in self._context_free and state.has_text and not state.held_tokens:
            return self._pieces[token], self._append(state, token)
        return self._push_tokens(state, token)

    def flush(self, state: TextState) -> str:
        """Return the text that is held back at the end, as incomplete as it is."""
        if not state.held_tokens or self._has_no_tokenizer:
            return ""
        if self._scheme.errors:
            return "" if state.context_tokens else codecs.utf_8_decode(state.pending, self._scheme.errors, True)[0]
        known = len(state.tail) - state.held_tokens + state.context_tokens
        return self._decode.added_text(state.tail[:known], state.tail)

    def state_after_flush(self, state: TextState) -> TextState:
        """Return the state after `flush`."""
        return TextState(state.tail, 0, True)

    def tail(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return the last tokens of `ids` on which the text of a next one may depend: a few, starting with a complete
        character and including a token of visible text if there is one.
        """
        if len(ids) <= _WINDOW:
            return tuple(ids)
        start = len(ids) - _WINDOW
        first = max(0, start - _MAX_CHARACTER_BYTES + 1)
        while start > first and self._continues_character(ids[start]):
            start -= 1
        recent = ids[start:]
        head = self._invalid_byte_before(ids, start)
        if not any(map(self._is_visible, recent)):
            before = (ids[place] for place in range(start - 1, -1, -1))
            head = [next(filter(self._is_visible, before), ids[0]), *head]
        return (*head, *recent)

    def _push_bytes(self, state: TextState, data: bytes) -> tuple[str, TextState]:
        """Decode the bytes as UTF-8 without calling the tokenizer."""
        buffer = state.pending + data
        text, consumed = codecs.utf_8_decode(buffer, self._scheme.errors, False)
        rest = buffer[consumed:]
        if state.context_tokens and _starts_invalid(text, buffer):
            text = text.removeprefix(INCOMPLETE)
        if not rest and not state.held_tokens:
            return text, state if state.has_text else state._replace(has_text=True)
        if not rest:
            return text, TextState((), 0, True)
        is_new = bool(text) or consumed > 0
        return text, TextState(
            (), 1 if is_new else state.held_tokens + 1, True, rest, 0 if is_new else state.context_tokens
        )

    def _push_tokens(self, state: TextState, token: int) -> tuple[str, TextState]:
        """Decode the last few tokens with the tokenizer."""
        ids = (*state.tail, token)
        known = len(state.tail) - state.held_tokens
        buffer, pending, held = self._incomplete(state, ids, token)
        end = len(ids) - held
        if end <= known:
            return "", TextState(ids, held, state.has_text, pending, state.context_tokens)
        if state.context_tokens and _starts_invalid(codecs.utf_8_decode(buffer, "replace", False)[0], buffer):
            known += state.context_tokens
        text = self._decode.added_text(ids[:known], ids[:end])
        if (
            state.has_text
            and not (state.held_tokens or held)
            and self._scheme.is_local
            and not self._pieces.is_byte(token)
        ):
            if text == self._pieces[token]:
                self._context_free.add(token)
        return text, self._shorten(TextState(ids, held, state.has_text or bool(text), pending))

    def _incomplete(self, state: TextState, ids: Sequence[int], token: int) -> tuple[bytes, bytes, int]:
        """Return the bytes since the last complete character, those of an incomplete character among them, and its
        token count.
        """
        data = self._pieces.data(token) or b""
        if self._pieces.is_byte(token) or self._scheme.byte_level:
            buffer = state.pending + data
            pending = buffer[codecs.utf_8_decode(buffer, "replace", False)[1] :]
            if self._scheme.byte_fallback:
                return buffer, pending, len(pending)
            held = state.held_tokens + 1 if pending and state.held_tokens < _WINDOW else 0
            return buffer, pending if held else b"", held
        if self._scheme.byte_fallback or data.endswith(INCOMPLETE.encode()):
            return state.pending + data, b"", 0
        is_held = self._decode(ids).endswith(INCOMPLETE) and state.held_tokens < _MAX_CHARACTER_BYTES - 1
        return b"", b"", state.held_tokens + 1 if is_held else 0

    def _append(self, state: TextState, token: int) -> TextState:
        return self._shorten(TextState((*state.tail, token), 0, True))

    def _shorten(self, state: TextState) -> TextState:
        return state if len(state.tail) <= _MAX_TAIL else state._replace(tail=self.tail(state.tail))

    def _pending_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of an incomplete character at the end of `ids`."""
        data = b""
        for place in range(len(ids) - 1, -1, -1):
            if len(data) >= _MAX_CHARACTER_BYTES or not (
                self._may_split_characters(ids[place]) or ids[place] in self._pieces.special
            ):
                break
            data = (self._pieces.data(ids[place]) or b"") + data
        return data[codecs.utf_8_decode(data, "replace", False)[1] :]

    def _may_split_characters(self, token: int) -> bool:
        """Return whether characters may be split between this token and its neighbors."""
        return bool(self._scheme.errors) or self._scheme.byte_level or self._pieces.is_byte(token)

    def _count_pending_tokens(self, ids: Sequence[int], pending: bytes) -> int:
        """Return how many tokens at the end of `ids` contain the bytes of the incomplete character."""
        count, length = 0, 0
        while length < len(pending):
            count += 1
            length += len(self._pieces.data(ids[-count]) or b"")
        return count

    def _continues_character(self, token: int) -> bool:
        data = self._pieces.data(token)
        return bool(data) and self._may_split_characters(token) and data[0] & 0xC0 == 0x80 if data else False

    def _is_visible(self, token: int) -> bool:
        data = self._pieces.data(token)
        return bool(data and data.strip()) and not self._may_split_characters(token)

    def _invalid_byte_before(self, ids: Sequence[int], start: int) -> list[int]:
        """Return an invalid byte token from the run that `ids[start:]` continues, if there is one: a decoder drops the
        whole run because of it.
        """
        if not self._pieces.is_byte(ids[start]):
            return []
        first = start
        while first > 0 and self._pieces.is_byte(ids[first - 1]):
            first -= 1
        dropped = [self._pieces.data(token) or b"" for token in ids[first:start]]
        try:
            b"".join(dropped).decode()
        except UnicodeDecodeError:
            return [next(token for token, data in zip(ids[first:start], dropped, strict=True) if data[0] >= 0x80)]
        return []


def _starts_invalid(text: str, data: bytes) -> bool:
    """Return whether the first character of `data`, decoded as `text`, is invalid."""
    return text.startswith(INCOMPLETE) and not data.startswith(INCOMPLETE.encode())


class TextStream:
    """Spells a growing sequence; the results of `push` and `flush` add up to the decoded sequence.

    `context` are the tokens before it: tokenizers that strip a leading space need them, and a character that begins in
    them is shown once it is complete.
    """

    def __init__(
        self, tokenizer: Tokenizer | None, context: Sequence[int], pieces: TokenSpellings | None = None
    ) -> None:
        self._decoder = IncrementalDecoder(tokenizer, pieces)
        self.state = self._decoder.state_after(context)

    def copy(self) -> TextStream:
        """Return an independent stream with the same state."""
        twin = TextStream.__new__(TextStream)
        twin._decoder, twin.state = self._decoder, self.state
        return twin

    @property
    def held(self) -> int:
        """Number of tokens at the end whose character is incomplete."""
        return self.state.held_tokens

    def push(self, token: int) -> str:
        """Return the complete characters that `token` adds; empty while a character is incomplete."""
        text, self.state = self._decoder.push(self.state, token)
        return text

    def flush(self) -> str:
        """Return the text that is held back, as incomplete as it is."""
        text = self._decoder.flush(self.state)
        self.state = self._decoder.state_after_flush(self.state)
        return text
