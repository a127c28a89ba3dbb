"""Held-out texts beside what a model made of them, counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress


@dataclass(frozen=True)
class ComparedTexts:
    """Texts as they are right, and as a model generated them."""

    right: list[str]
    generated: list[str]

    @property
    def words(self) -> int:
        return sum(len(text.split()) for text in self.right)

    @property
    def errors(self) -> int:
        """Words that are wrong."""
        return sum(word_errors(right.split(), generated.split()) for right, generated in self._pairs)

    @property
    def exact(self) -> int:
        return len(self.right) - len(self.wrong)

    @property
    def wrong(self) -> list[tuple[str, str]]:
        """Return the pairs of reference and generated text that differ."""
        return [(right, generated) for right, generated in self._pairs if right != generated]

    def only(self, picked: Iterable[bool]) -> ComparedTexts:
        """The picked ones of them."""
        kept = list(picked)
        return ComparedTexts(list(compress(self.right, kept)), list(compress(self.generated, kept)))

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        return list(zip(self.right, self.generated, strict=True))


def word_errors(right: list[str], generated: list[str]) -> int:
    """Words put in, left out or replaced: the least that turns one into the other (Levenshtein)."""
    row = list(range(len(generated) + 1))
    for count, word in enumerate(right, 1):
        before, row = row, [count]
        for place, other in enumerate(generated, 1):
            row.append(min(before[place] + 1, row[-1] + 1, before[place - 1] + (word != other)))
    return row[-1]


def share(part: int, whole: int) -> str:
    """`12 of 1,000 (1.2 %)`."""
    return f"{part} of {whole:,} ({100 * part / whole:.1f} %)"
