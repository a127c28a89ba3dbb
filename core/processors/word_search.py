"""The spellings of words in a vocabulary, and a search for phrases across the borders of its tokens."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import WORDS, Parameter
from decodescope.core.processors.base import Context, ProcessorModel
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    import torch

CAPITALS = Parameter(
    "banned_phrases_any_case", mark("Ignore capital letters"), "bool", True,
    mark("Words to avoid are avoided in small and capital letters alike."), option=True, advanced=True, group=WORDS,
)  # fmt: skip
STEP_BACK = Parameter(
    "banned_phrases_step_back", mark("Step back to the beginning"), "bool", False,
    mark("Where a phrase was completed, goes back to its first token and chooses another one there, instead of only "
         "changing its last token. For one text at a time, greedy or sampled, without drafts."),
    option=True, advanced=True, group=WORDS,
)  # fmt: skip
_KEY = "banned_phrases"
"""The setting with the phrases, and the place of their index in a model's own data."""


def word_forms(word: str, any_case: bool) -> tuple[str, ...]:
    """Return the word as typed and, if requested, in small letters, with a capital letter and in capitals."""
    forms = (word, word.lower(), word.capitalize(), word.upper()) if any_case else (word,)
    return tuple(dict.fromkeys(forms))


def word_spellings(model: ProcessorModel, word: str, any_case: bool) -> list[tuple[int, ...]]:
    """Return the token sequences that spell a word, with and without a space before it, each once."""
    found = (tuple(ids) for form in word_forms(word, any_case) for ids in model.spellings(form))
    return list(dict.fromkeys(found))


def word_spelling_texts(model: ProcessorModel, word: str, any_case: bool) -> list[list[str]]:
    """Return the same as the texts of the tokens."""
    return [[model.pieces[token] for token in ids] for ids in word_spellings(model, word, any_case)]


def fold(data: bytes) -> bytes:
    """Return UTF-8 text in lower case; bytes that are no character stay as they are."""
    return data.decode("utf-8", "surrogateescape").lower().encode("utf-8", "surrogateescape")


class TokenIndex:
    """The bytes of a vocabulary's tokens, searched for pieces of phrases. `folds`: in lower case."""

    def __init__(self, tokens: Sequence[bytes | None], folds: bool) -> None:
        self.data = [data if data is None or not folds else fold(data) for data in tokens]

    @cached_property
    def _sorted(self) -> tuple[list[bytes], list[int]]:
        pairs = sorted((data, token) for token, data in enumerate(self.data) if data)
        return [data for data, _token in pairs], [token for _data, token in pairs]

    def containing(self, phrase: bytes) -> list[int]:
        """Return the tokens that contain `phrase`."""
        return [token for token, data in enumerate(self.data) if data and phrase in data]

    def starting(self, rest: bytes) -> list[int]:
        """Return the tokens that begin with `rest`."""
        words, tokens = self._sorted
        first = bisect_left(words, rest)
        last = first
        while last < len(words) and words[last].startswith(rest):
            last += 1
        return tokens[first:last]


class PhraseMatcher:
    """Finds the tokens that complete a phrase after a text. The phrases are bytes, in lower case if the index is."""

    def __init__(self, phrases: Iterable[bytes], index: TokenIndex) -> None:
        self._phrases, self._index = tuple(phrases), index
        self.longest = max(map(len, self._phrases), default=0)
        self._always = frozenset(token for phrase in self._phrases for token in index.containing(phrase))
        self._completing: dict[tuple[bytes, int], frozenset[int]] = {}

    @property
    def always(self) -> frozenset[int]:
        """The tokens that contain a whole phrase."""
        return self._always

    def begun(self, tail: bytes) -> int:
        """Return how many bytes at the end of a text may be the beginning of a phrase."""
        sizes = (size for phrase in self._phrases for size in range(min(len(phrase) - 1, len(tail)), 0, -1)
                 if tail.endswith(phrase[:size]))  # fmt: skip
        return max(sizes, default=0)

    def last(self, text: bytes) -> tuple[int, bytes] | None:
        """Return the last position at which a phrase occurs in a text, and the phrase; None if none does."""
        return max(((text.rfind(phrase), phrase) for phrase in self._phrases if phrase in text), default=None)

    def completing(self, tail: bytes) -> frozenset[int]:
        """Return the tokens with which a text that ends with `tail` contains a phrase that it did not contain."""
        found = self._always
        for phrase in self._phrases:
            for length in range(1, len(phrase)):
                if tail.endswith(phrase[:length]):
                    found |= self._starting(phrase, length)
        return found

    def _starting(self, phrase: bytes, length: int) -> frozenset[int]:
        key = (phrase, length)
        if key not in self._completing:
            self._completing[key] = frozenset(self._index.starting(phrase[length:]))
        return self._completing[key]


class PhraseBan:
    """Sets the scores of tokens that complete a phrase to −∞."""

    def __init__(self, phrases: Sequence[str], any_case: bool, context: Context) -> None:
        """Prepare the search. Raises ParameterError for a model without a tokenizer."""
        model = context.model
        if model.token_bytes is None:
            raise ParameterError(
                tr("The model has no tokenizer, so the text of its tokens is unknown."), tr("Remove the words."),
                _KEY,
            )  # fmt: skip
        self._tokens = model.token_bytes
        cached = model.strategy_data.setdefault(_KEY, {})
        assert isinstance(cached, dict)

        def index(folds: bool) -> TokenIndex:
            found: TokenIndex = cached.setdefault(folds, TokenIndex(self._tokens, folds))
            return found

        own = [phrase.encode("utf-8", "surrogatepass") for phrase in phrases]
        # A capital letter of several tokens has no lower case of its own: its usual spellings are searched as they are.
        forms = {form for phrase in phrases for form in (phrase, phrase.lower(), phrase.upper(), phrase.capitalize())}
        spelled = [form.encode("utf-8", "surrogatepass") for form in sorted(forms) if not form.isascii()]
        if any_case:
            folded = PhraseMatcher(dict.fromkeys(map(fold, own)), index(True))
            self._matchers = [(True, folded), (False, PhraseMatcher(spelled, index(False)))]
        else:
            self._matchers = [(False, PhraseMatcher(dict.fromkeys(own), index(False)))]
        self._longest = max(matcher.longest for _folds, matcher in self._matchers)
        self._masks: dict[frozenset[int], torch.Tensor] = {}
        self.steps_back = False
        """Whether the run steps back; set by the loop that does."""
        self._after: dict[tuple[int, ...], frozenset[int]] = {}
        """The tokens that are forbidden after a text, because a phrase began with them."""

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return masked scores [B, V] for the texts `ids` [B, T]."""
        import torch

        banned = [self._banned(row) for row in ids.tolist()]
        if not any(banned):
            return scores
        changed = scores.clone()
        for row, tokens in enumerate(banned):
            if tokens:
                if tokens not in self._masks:
                    self._masks[tokens] = torch.tensor(sorted(tokens), device=scores.device)
                changed[row, self._masks[tokens]] = -math.inf
        return changed

    def forbid(self, text: Sequence[int], token: int) -> None:
        """Forbid a token after the tokens `text`, while stepping back."""
        self._after[tuple(text)] = self._after.get(tuple(text), frozenset()) | {token}

    def completed(self, text: Sequence[int]) -> tuple[int, str] | None:
        """Return the number of tokens of `text` before the last phrase that its last token completed, and the phrase;
        None if it completed none.
        """
        return next(filter(None, (self._completed_by(text, *one) for one in self._matchers)), None)

    def _completed_by(self, text: Sequence[int], folds: bool, matcher: PhraseMatcher) -> tuple[int, str] | None:
        data, starts = self._tail(text)
        found = matcher.last(fold(data) if folds else data)
        if found is None or found[0] + len(found[1]) <= starts[-1]:
            return None
        before = max(n for n, start in enumerate(starts) if start <= found[0])
        return len(text) - len(starts) + before, found[1].decode("utf-8", "replace")

    def safe_length(self, text: Sequence[int]) -> int:
        """Return how many tokens of `text` lie before the earliest phrase that its end may begin."""
        data, starts = self._tail(text)
        sizes = [matcher.begun(fold(data) if folds else data) for folds, matcher in self._matchers]
        place = len(data) - max(sizes)
        return len(text) - sum(start >= place for start in starts) - any(start < place < end for start, end in zip(
            starts, [*starts[1:], len(data)], strict=True))  # fmt: skip

    def _tail(self, text: Sequence[int]) -> tuple[bytes, list[int]]:
        """Return the bytes of the last tokens, and the position at which each of them begins."""
        data, starts = b"", list[int]()
        for token in text[-2 * self._longest :]:
            more = self._tokens[token] if token < len(self._tokens) else None
            if more is None:  # a phrase does not go on across a control token
                data, starts = b"", []
            else:
                starts.append(len(data))
                data += more
        return data, starts or [0]

    def _banned(self, text: Sequence[int]) -> frozenset[int]:
        """Return the forbidden tokens after a text."""
        if self.steps_back:
            always = frozenset().union(*(matcher.always for _folds, matcher in self._matchers))
            return always | self._after.get(tuple(text), frozenset())
        tail = b""
        for token in text[-self._longest :]:
            data = self._tokens[token] if token < len(self._tokens) else None
            tail = tail + data if data is not None else b""
        found = [matcher.completing(fold(tail) if folds else tail) for folds, matcher in self._matchers]
        return frozenset().union(*found)
