"""Prompt lookup (Saxena 2023): what followed the last time the text said the same few words."""

from __future__ import annotations

from collections.abc import Sequence

from core.decoding.speculation.plan import Plan
from core.decoding.speculation.text import Text
from core.decoding.speculation.tree import Branch


class Lookup:
    """Finds the longest n-gram at the end of the text earlier in it (or in an encoder's source) and proposes what came
    next; the latest place wins among equally long ones."""

    name = "lookup"
    makes_trees = False

    def __init__(self, source: list[int], longest: int, most: int, number: int = 0) -> None:
        self._longest = longest
        self._most = most
        self._number = number
        self._places: dict[tuple[int, ...], int] = {}
        self._length = 0
        self._all: list[int] = []
        self._index(source)

    def room(self, length: int) -> int:
        """It has no limit but its own."""
        return self._most

    def propose(self, text: Text, plan: Plan) -> Branch | None:
        """A chain of at most min(depth, limit) tokens, a point mass each; empty without a match."""
        new = text.ids[self._length :]
        self._length = len(text.ids)
        self._index(new)
        begin = self._find()
        if begin is None:
            return Branch()
        ids: list[int] = []
        chance = 1.0
        for place in range(begin, begin + plan.depth):
            if plan.gate is not None:
                chance *= plan.gate.accept(self._number, 1.0)
                if not plan.gate.is_worth(chance, len(ids)):
                    break
            # Past the end of the text it goes on with its own proposal: a loop.
            ids.append(self._all[place] if place < len(self._all) else ids[place - len(self._all)])
        return Branch.chain(ids, [1.0] * len(ids), [None] * len(ids) if plan.keep_q else ())

    def _index(self, new: Sequence[int]) -> None:
        """Remember where every n-gram that `new` completes is followed by something (so: not the last ones)."""
        for token in new:
            end = len(self._all)  # the token about to be added follows what ends here
            for size in range(1, min(self._longest, end) + 1):
                self._places[tuple(self._all[end - size : end])] = end
            self._all.append(token)

    def _find(self) -> int | None:
        for size in range(min(self._longest, len(self._all)), 0, -1):
            if (place := self._places.get(tuple(self._all[-size:]))) is not None:
                return place
        return None

    def settle(self, accepted: Sequence[int]) -> None:
        """Nothing to keep."""

    def close(self, length: int) -> None:
        """Nothing to forget."""
