"""The bytes that each token adds to a text, whatever way a tokenizer has of spelling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from core.models.text import Decoder, IncrementalDecoder

if TYPE_CHECKING:
    from core.models.text import Tokenizer, TokenSpellings

_SAMPLE_INTERVAL = 97
"""Every so many tokens one is spelled by the tokenizer too, to see whether their own bytes are what it writes."""


class SpellingModel(Protocol):
    """What spelling asks of a model."""

    @property
    def pieces(self) -> TokenSpellings: ...

    @property
    def tokenizer(self) -> Tokenizer | None: ...

    @property
    def vocabulary(self) -> int: ...

    @property
    def remembered(self) -> dict[str, Any]: ...


def token_bytes(model: SpellingModel) -> list[bytes | None]:
    """What each token writes behind others; None for those that write nothing (special ones, gaps). Found out once."""
    known: list[bytes | None] | None = model.remembered.get("token_bytes")
    if known is None:
        known = model.remembered["token_bytes"] = _compute_bytes(model)
    return known


def _compute_bytes(model: SpellingModel) -> list[bytes | None]:
    """Byte-level and SentencePiece tokens carry their bytes. Others (WordPiece: `##ing`) are spelled behind a word by
    the tokenizer itself."""
    own = [model.pieces.data(token) for token in range(model.vocabulary)]
    decode, anchor = Decoder(model.tokenizer), _anchor(model, own)
    if anchor is None:
        return own

    def written(token: int) -> bytes:
        return decode.added_text([anchor], [anchor, token]).encode("utf-8", "surrogatepass")

    known = [token for token, data in enumerate(own) if data is not None and _is_text(data)]
    if all(written(token) == own[token] for token in known[::_SAMPLE_INTERVAL]):
        return own
    return [data if data is None or not _is_text(data) else written(token) for token, data in enumerate(own)]


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _anchor(model: SpellingModel, own: Sequence[bytes | None]) -> int | None:
    """A token of plain letters, which others can stand behind; None where there is no tokenizer to ask."""
    plain = (token for token, data in enumerate(own) if data is not None and data.isalpha() and len(data) < 8)
    return next(plain, None) if model.tokenizer is not None else None


def strips_first_space(model: SpellingModel, before: Sequence[int]) -> bool:
    """Whether the text of an answer behind `before` loses the space that its first token begins with."""
    spaced = (token for token, data in enumerate(token_bytes(model)) if data and data[:1] == b" " and data[1:])
    token = next(spaced, None)
    if token is None or model.tokenizer is None:
        return False
    decode = Decoder(model.tokenizer)
    known = IncrementalDecoder(model.tokenizer, model.pieces).tail(before)
    return not decode.added_text(known, [*known, token]).startswith(" ")


_CONTEXTS = ("(", "\n", '"', ".", "a", "1 ")
"""What a word may stand behind: tokenizers write it otherwise there than at the start of a text."""


def word_spellings(model: SpellingModel, text: str) -> list[list[int]]:
    """Token ids that write `text` behind a space and without one, each once.

    These are the tokenizer's own spellings in different surroundings, and single tokens of the same letters.
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
    """The first token of the vocabulary that writes these bytes."""
    known: dict[bytes, int] | None = model.remembered.get("tokens_by_bytes")
    if known is None:
        known = {data: token for token, data in reversed(list(enumerate(token_bytes(model)))) if data}
        model.remembered["tokens_by_bytes"] = known
    return known
