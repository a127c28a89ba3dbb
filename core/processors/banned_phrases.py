"""Words and phrases that must not appear, in whatever way their letters are divided into tokens.

A token is forbidden if the text would contain a phrase with it, whether the phrase lies inside the token or ends in it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Context, Processor
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    import torch

CAPITALS = Parameter(
    "banned_phrases_any_case", mark("Ignore capital letters"), "bool", True,
    mark("Words to avoid are avoided in small and capital letters alike."), option=True, advanced=True,
)  # fmt: skip
_KEY = "banned_phrases"


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
                PROCESSOR.name,
            )  # fmt: skip
        self._tokens = model.token_bytes
        self._folds = any_case
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

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return masked scores [B, V] for the texts `ids` [B, T]."""
        import torch

        tails = ids[:, -self._longest :].tolist()
        banned = [self._banned(tail) for tail in tails]
        if not any(banned):
            return scores
        changed = scores.clone()
        for row, tokens in enumerate(banned):
            if tokens:
                if tokens not in self._masks:
                    self._masks[tokens] = torch.tensor(sorted(tokens), device=scores.device)
                changed[row, self._masks[tokens]] = -math.inf
        return changed

    def _banned(self, last: Sequence[int]) -> frozenset[int]:
        """Return the forbidden tokens after a text that ends with the tokens `last`."""
        tail = b""
        for token in last:
            data = self._tokens[token] if token < len(self._tokens) else None
            tail = tail + data if data is not None else b""  # a phrase does not go on across a control token
        found = [matcher.completing(fold(tail) if folds else tail) for folds, matcher in self._matchers]
        return frozenset().union(*found)


def make(value: Sequence[str], context: Context) -> PhraseBan:
    """Create the stage of one run. Raises ParameterError."""
    phrases = [value] if isinstance(value, str) else list(value)
    if not all(phrases):
        raise ParameterError(tr("One of the words to avoid is empty."), tr("Remove it."), PROCESSOR.name)
    return PhraseBan(phrases, bool(context.settings.get(CAPITALS.name, CAPITALS.default)), context)


PROCESSOR = Processor(
    name="banned_phrases",
    make=make,
    order=75,
    label=mark("words to avoid"),
    phrase=mark("the list of words to avoid"),
    plain_phrase=mark("the list of words to avoid"),
    kind="ban",
    parameter=Parameter(
        "banned_phrases", mark("Words to avoid"), "words", None,
        mark("Words and phrases that must not appear, as you would type them, also inside longer words and across "
             "tokens."),
        option=True, advanced=True,
    ),
    extra_parameters=(CAPITALS,),
    shown=18,
    before_contrast=True,
)  # fmt: skip
