"""Every way in which a vocabulary writes a word: behind a space and without one, at a text's start and inside it."""

from __future__ import annotations

from typing import Any

from core.models.text import Decoder
from core.models.token_bytes import SpellingModel, token_bytes

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
