"""Bytes that each token adds to a text, for any kind of tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from decodescope.core.models.text import Decoder, IncrementalDecoder

if TYPE_CHECKING:
    from decodescope.core.models.text import Tokenizer, TokenSpellings

_SAMPLE_INTERVAL = 97
"""Interval at which tokens are also decoded by the tokenizer, to verify that their own bytes are what it writes."""


class SpellingModel(Protocol):
    """The attributes of a model required for spelling."""

    @property
    def pieces(self) -> TokenSpellings: ...

    @property
    def tokenizer(self) -> Tokenizer | None: ...

    @property
    def vocabulary(self) -> int: ...

    @property
    def strategy_data(self) -> dict[str, Any]: ...


def token_bytes(model: SpellingModel) -> list[bytes | None]:
    """Return what each token writes after other tokens; None for tokens without text (special ones, gaps). Cached."""
    known: list[bytes | None] | None = model.strategy_data.get("token_bytes")
    if known is None:
        known = model.strategy_data["token_bytes"] = _compute_bytes(model)
    return known


def _compute_bytes(model: SpellingModel) -> list[bytes | None]:
    """Return the bytes per token. Byte-level and SentencePiece tokens contain theirs; others (WordPiece: `##ing`) are
    decoded after a word by the tokenizer.
    """
    own = [model.pieces.data(token) for token in range(model.vocabulary)]
    decode, anchor = Decoder(model.tokenizer), _anchor(model, own)
    if anchor is None:
        return own

    def written(token: int) -> bytes:
        return decode.added_text([anchor], [anchor, token]).encode("utf-8", "surrogatepass")

    known = [token for token, data in enumerate(own) if data is not None and is_text(data)]
    if all(written(token) == own[token] for token in known[::_SAMPLE_INTERVAL]):
        return own
    return [data if data is None or not is_text(data) else written(token) for token, data in enumerate(own)]


def is_text(data: bytes) -> bool:
    """Return whether bytes are whole characters."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _anchor(model: SpellingModel, own: Sequence[bytes | None]) -> int | None:
    """Return a token of plain letters that others can follow; None without a tokenizer."""
    plain = (token for token, data in enumerate(own) if data is not None and data.isalpha() and len(data) < 8)
    return next(plain, None) if model.tokenizer is not None else None


def strips_first_space(model: SpellingModel, before: Sequence[int]) -> bool:
    """Return whether an answer after the tokens `before` loses the leading space of its first token."""
    spaced = (token for token, data in enumerate(token_bytes(model)) if data and data[:1] == b" " and data[1:])
    token = next(spaced, None)
    if token is None or model.tokenizer is None:
        return False
    decode = Decoder(model.tokenizer)
    known = IncrementalDecoder(model.tokenizer, model.pieces).tail(before)
    return not decode.added_text(known, [*known, token]).startswith(" ")


_CONTEXTS = ("(", "\n", '"', ".", "a", "1 ")
"""Texts before a word: tokenizers spell it differently there than at the start of a text."""


def word_spellings(model: SpellingModel, text: str) -> list[list[int]]:
    """Return the token ids that spell `text`, with and without a space before it, each once.

    These are the tokenizer's own spellings in different contexts, and single tokens of the same letters.
    """
    tokenizer: Any = model.tokenizer
    encode, decode = tokenizer.encode, Decoder(tokenizer)
    found: dict[tuple[int, ...], None] = {}
    forms = (text, f" {text.lstrip()}") if text.strip() else (text,)
    for form in forms:
        found[tuple(encode(form, add_special_tokens=False))] = None
    written = {text.strip(), *(decode(ids).strip() for ids in found)}
    for context in _CONTEXTS if text.strip() else ():
        before = list(encode(context, add_special_tokens=False))
        for form in forms:
            ids = list(encode(context + form, add_special_tokens=False))
            if ids[: len(before)] == before and decode.added_text(before, ids).strip() in written:
                found[tuple(ids[len(before) :])] = None
    unknown = getattr(tokenizer, "unk_token_id", None)
    known = _tokens_by_bytes(model)
    for word in written - {""}:
        singles = (known.get(form.encode("utf-8", "surrogatepass")) for form in (word, f" {word}"))
        found |= {(token,): None for token in singles if token is not None}
    return [list(ids) for ids in found if ids and unknown not in ids]


def _tokens_by_bytes(model: SpellingModel) -> dict[bytes, int]:
    """Return the first token of the vocabulary with each byte string."""
    known: dict[bytes, int] | None = model.strategy_data.get("tokens_by_bytes")
    if known is None:
        known = {data: token for token, data in reversed(list(enumerate(token_bytes(model)))) if data}
        model.strategy_data["tokens_by_bytes"] = known
    return known
