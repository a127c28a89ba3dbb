"""Every way in which a vocabulary writes a word: behind a space and without one, at a text's start and inside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from core.models.text import Decoder


class SpellingVocabulary(Protocol):
    """The part of a `LoadedModel` that spelling a word needs."""

    @property
    def tokenizer(self) -> Any: ...

    @property
    def remembered(self) -> dict[str, Any]: ...

    @property
    def token_bytes(self) -> Sequence[bytes | None] | None: ...


_CONTEXTS = ("(", "\n", '"', ".", "a", "1 ")
"""What a word may stand behind: tokenizers write it otherwise there than at the start of a text."""


def word_spellings(model: SpellingVocabulary, text: str) -> list[list[int]]:
    """Token ids that write `text` behind a space and without one, each once.

    These are the tokenizer's own spellings in different surroundings, and single tokens of the same letters.
    """
    encode, decode = model.tokenizer.encode, Decoder(model.tokenizer)
    found: dict[tuple[int, ...], None] = {}
    forms = (text, f" {text.lstrip()}")
    for form in forms:
        found[tuple(encode(form, add_special_tokens=False))] = None
    written = {text.strip(), *(decode(ids).strip() for ids in found)}
    for context in _CONTEXTS:
        before = list(encode(context, add_special_tokens=False))
        for form in forms:
            ids = list(encode(context + form, add_special_tokens=False))
            if ids[: len(before)] == before and decode.added(before, ids).strip() in written:
                found[tuple(ids[len(before) :])] = None
    unknown = getattr(model.tokenizer, "unk_token_id", None)
    known = _by_bytes(model)
    for word in written - {""}:
        singles = (known.get(form.encode("utf-8", "surrogatepass")) for form in (word, f" {word}"))
        found |= {(token,): None for token in singles if token is not None}
    return [list(ids) for ids in found if ids and unknown not in ids]


def _by_bytes(model: SpellingVocabulary) -> dict[bytes, int]:
    """The first token of the vocabulary that writes these bytes."""
    known: dict[bytes, int] | None = model.remembered.get("tokens_by_bytes")
    if known is None:
        spelled = model.token_bytes or ()
        known = {data: token for token, data in reversed(list(enumerate(spelled))) if data}
        model.remembered["tokens_by_bytes"] = known
    return known
