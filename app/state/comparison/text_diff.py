"""Where two texts part: by tokens, and word by word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SpanKind = Literal["same", "own", "missing"]
_WORD_PATTERN = re.compile(r"\s*\S+|\s+$")
"""A word with the white space before it: joined, they are the text again."""


@dataclass(frozen=True, slots=True)
class DiffSpan:
    """A piece of a text beside the reference: in both, here only, or there only (then it is no part of this text)."""

    kind: SpanKind
    text: str


def split_words(text: str) -> list[str]:
    """The text's words, each with the white space before it."""
    return _WORD_PATTERN.findall(text)


def word_diff(reference: str, text: str) -> list[DiffSpan]:
    """`text` word by word beside `reference`: the spans that are not `missing`, joined, are `text`; those that are not
    `own` are `reference`. Words are compared without the white space before them; of a pair of runs of words that
    differ, what is missing comes first."""
    from difflib import SequenceMatcher

    ours, theirs = split_words(text), split_words(reference)
    matcher = SequenceMatcher(None, [w.strip() for w in theirs], [w.strip() for w in ours], autojunk=False)
    spans: list[DiffSpan] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            spans.append(DiffSpan("same", "".join(ours[c:d])))
            continue
        spans += [DiffSpan("missing", "".join(theirs[a:b]))] if b > a else []
        spans += [DiffSpan("own", "".join(ours[c:d]))] if d > c else []
    return spans


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """Place where two sequences of tokens part, the end of the shorter included; None when they are equal."""
    place = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return None if place == len(one) == len(other) else place
