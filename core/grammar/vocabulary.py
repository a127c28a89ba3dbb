"""A model's tokens as llguidance needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llguidance import LLTokenizer


@dataclass(frozen=True, slots=True)
class GrammarVocabulary:
    """What each token adds to a text in bytes (None: nothing), and which tokens end one."""

    bytes: Sequence[bytes | None]
    names: Callable[[int], str]
    """What a token that writes nothing is called (`<s>`): a Lark grammar may name it."""
    end_tokens: tuple[int, ...] = ()
    cache: dict[str, Any] = field(default_factory=dict)
    """Where what is made of it is kept between runs."""

    def tokenizer(self) -> LLTokenizer:
        """llguidance's view; without an end token, an id behind the last one ends a text."""
        key = f"grammar/tokenizer/{self.end_tokens}"
        found: LLTokenizer | None = self.cache.get(key)
        if found is None:
            found = self.cache[key] = self._build_tokenizer()
        return found

    def _build_tokenizer(self) -> LLTokenizer:
        from llguidance import LLTokenizer, TokenizerWrapper

        tokens = [
            self.names(token).encode("utf-8", "replace") if data is None else data
            for token, data in enumerate(self.bytes)
        ]
        ends = list(self.end_tokens) or [len(tokens)]
        tokens += [b"end"] * (not self.end_tokens)
        special = sorted({*ends, *(token for token, data in enumerate(self.bytes) if data is None)})
        wrapped = TokenizerWrapper(_TokenList(tokens, special, ends[0]))
        return LLTokenizer(wrapped, n_vocab=len(tokens), eos_token=ends)


class _TokenList:
    """What `TokenizerWrapper` asks for. Text is never tokenized: no token is forced (`no_forcing`)."""

    bos_token_id = None

    def __init__(self, tokens: list[bytes], special: list[int], end: int) -> None:
        self.tokens, self.special_token_ids, self.eos_token_id = tokens, special, end

    def __call__(self, text: bytes) -> list[int]:
        return []
