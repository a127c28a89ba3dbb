"""Where texts stand in a grammar, and which tokens may follow there: matchers that go along, back and apart."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from core.errors import ParameterError
from core.grammar.grammar_setting import GrammarProgress
from resources.language import tr

if TYPE_CHECKING:
    from llguidance import LLMatcher

MAX_MASKS = 256
"""Masks that are kept: a draft's places are asked for twice, by the drafter and by the target."""


class MatcherState:
    """A matcher and the tokens that it has read."""

    __slots__ = ("matcher", "path")

    def __init__(self, matcher: LLMatcher, path: list[int]) -> None:
        self.matcher, self.path = matcher, path

    def copy(self) -> MatcherState:
        """Another one, which goes its own way from here."""
        return MatcherState(self.matcher.deep_copy(), list(self.path))

    def move_to(self, text: list[int]) -> bool:
        """Go to the end of `text`, back where need be; False, as far as it goes, where the grammar forbids it."""
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
    """The grammar for all rows of a batch; any row may be anywhere at each call."""

    def __init__(self, matcher: LLMatcher, vocabulary: int, device: torch.device) -> None:
        self._start, self._size, self._device = MatcherState(matcher, []), vocabulary, device
        self._states = [self._start.copy()]
        self._masks: OrderedDict[tuple[int, ...], torch.Tensor] = OrderedDict()

    def forbidden_mask(self, row: int, text: list[int]) -> torch.Tensor | None:
        """Which tokens [V] may not follow `text`; None where the text is none of the grammar's itself, or has ended.

        Raises ParameterError where the grammar takes too much.
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
                tr("The grammar became too complex at this place of the text to be followed further."),
                tr("Simplify it: fewer alternatives that begin alike, shorter repetitions."),
                "grammar",
            )
        return torch.from_numpy(allowed[: self._size] == 0).to(self._device)

    def progress(self, text: list[int]) -> GrammarProgress:
        """Whether `text`, without an end token, is a whole text of the grammar, and whether it may go on."""
        place = self._state(0)
        if not place.move_to(text) or not place.matcher.is_accepting():
            return "open"
        return "closed" if place.matcher.is_stopped() else "whole"

    def is_valid_prefix(self, text: Sequence[int]) -> bool:
        """Whether a text of the grammar can begin so."""
        return self._state(0).move_to(list(text))

    def reorder(self, rows: Sequence[int]) -> None:
        """Row i was row `rows[i]`."""
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
