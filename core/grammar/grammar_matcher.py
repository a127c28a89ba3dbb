"""Follow texts through a grammar and mask the tokens that cannot follow; matchers advance, roll back and branch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from decodescope.core.errors import ParameterError
from decodescope.core.grammar.grammar_setting import GrammarProgress
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from llguidance import LLMatcher

MAX_MASKS = 256
"""Number of cached masks: a draft's positions are looked up twice, by the drafter and by the target."""


class MatcherState:
    """A matcher and the tokens that it has read."""

    __slots__ = ("matcher", "path")

    def __init__(self, matcher: LLMatcher, path: list[int]) -> None:
        self.matcher, self.path = matcher, path

    def copy(self) -> MatcherState:
        """Return an independent copy."""
        return MatcherState(self.matcher.deep_copy(), list(self.path))

    def move_to(self, text: list[int]) -> bool:
        """Move to the end of `text`, rolling back if necessary. If the grammar forbids `text`, move as far as possible
        and return False.
        """
        path, known = self.path, len(self.path)
        if text[:known] != path:
            known = next((i for i, (a, b) in enumerate(zip(path, text, strict=False)) if a != b), min(known, len(text)))
            self.matcher.rollback(len(path) - known)
            del path[known:]
        rest = text[known:]
        if not rest:
            return True
        read = self.matcher.try_consume_tokens(rest)
        path += rest[:read]
        return read == len(rest)


class GrammarMatcher:
    """A grammar for all rows of a batch; rows may be at any position at each call."""

    def __init__(self, matcher: LLMatcher, vocabulary: int, device: torch.device) -> None:
        self._start, self._size, self._device = MatcherState(matcher, []), vocabulary, device
        self._states = [self._start.copy()]
        self._masks: OrderedDict[tuple[int, ...], torch.Tensor] = OrderedDict()

    def forbidden_mask(self, row: int, text: list[int]) -> torch.Tensor | None:
        """Return a mask [V] of the tokens that may not follow `text`, or None if `text` violates the grammar or is
        complete.

        Raises ParameterError if the grammar becomes too complex.
        """
        key = tuple(text)
        if (known := self._masks.get(key)) is not None:
            return known
        place = self._state(row)
        if not place.move_to(text):
            return None
        mask = self._mask(place.matcher)
        self._masks[key] = mask
        if len(self._masks) > MAX_MASKS:
            self._masks.popitem(last=False)
        return mask

    def _mask(self, matcher: LLMatcher) -> torch.Tensor:
        allowed = np.frombuffer(matcher.compute_logit_bias(), np.uint8)
        if matcher.is_error():
            raise ParameterError(
                tr("The grammar became too complex to follow at this point of the text."),
                tr("Simplify it: fewer alternatives with the same beginning, shorter repetitions."),
                "grammar",
            )
        return torch.from_numpy(allowed[: self._size] == 0).to(self._device)

    def progress(self, text: list[int]) -> GrammarProgress:
        """Return whether `text`, without an end token, is a complete text of the grammar, and whether it may
        continue.
        """
        place = self._state(0)
        if not place.move_to(text) or not place.matcher.is_accepting():
            return "open"
        return "closed" if place.matcher.is_stopped() else "whole"

    def is_valid_prefix(self, text: Sequence[int]) -> bool:
        """Return whether a text of the grammar can begin with `text`."""
        return self._state(0).move_to(list(text))

    def reorder(self, rows: Sequence[int]) -> None:
        """Reorder the rows: new row i is old row `rows[i]`."""
        taken: set[int] = set()
        places = []
        for row in rows:
            old = self._state(row)
            places.append(old.copy() if row in taken else old)
            taken.add(row)
        self._states = places

    def _state(self, row: int) -> MatcherState:
        while len(self._states) <= row:
            self._states.append(self._start.copy())
        return self._states[row]
