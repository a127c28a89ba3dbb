"""The rule by which the bundled rankings are made: which of two endings of a story is the better one.

Two points for a kind ending (its last sentence is whole, and somebody does something together), one where the names are
kept (nobody appears who was not in the beginning, and nobody meets himself), one where no four words come twice. It is
a stand-in for a person, so that the lab works at once and what a reward model has learned can be checked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from core.arguments import check_text, checked_texts
from core.labs.preference.rankings import Ranking

KIND_POINTS = 2
REPEATED_NGRAM = 4
_INTRODUCED_NAME = re.compile(r"\b(?:named|called) ([A-Z][a-z]+)")
_NAME_IN_SENTENCE = re.compile(r"(?<=[a-z,] )([A-Z][a-z]+)")
"""A capital within a sentence: a name."""
_SAME_NAME_TWICE = re.compile(r"\b([A-Z][a-z]+) and \1\b")
_WORD = re.compile(r"[A-Za-z]+")


class Verdict(NamedTuple):
    """What the rule says of one ending."""

    kind: bool
    names_kept: bool
    no_repetition: bool

    @property
    def points(self) -> int:
        """0 to 4; more is better."""
        return KIND_POINTS * self.kind + self.names_kept + self.no_repetition


def judge(prompt: str, completion: str) -> Verdict:
    """What the rule says of `completion` behind `prompt`. Raises ParameterError."""
    check_text("prompt", prompt)
    check_text("completion", completion)
    return Verdict(_is_kind(completion), _keeps_names(prompt, completion), not _has_repetition(completion))


def rank_by_rule(prompt: str, completions: Sequence[str]) -> Ranking:
    """The completions with their ranks: equal points are a tie. Raises ParameterError, PreferenceError."""
    check_text("prompt", prompt)
    completions = checked_texts("completions", completions)
    points = [judge(prompt, text).points for text in completions]
    places = sorted(set(points), reverse=True)
    return Ranking(prompt, tuple(completions), tuple(places.index(one) + 1 for one in points))


def _is_kind(text: str) -> bool:
    last = re.split(r"(?<=[.!?])\s+", text.strip())[-1]
    return last.endswith(".") and "together" in last.lower()


def _keeps_names(prompt: str, text: str) -> bool:
    present = set(_INTRODUCED_NAME.findall(prompt))
    return set(_NAME_IN_SENTENCE.findall(text)) <= present and not _SAME_NAME_TWICE.search(text)


def _has_repetition(text: str) -> bool:
    words = _WORD.findall(text.lower())
    runs = [tuple(words[start : start + REPEATED_NGRAM]) for start in range(len(words) - REPEATED_NGRAM + 1)]
    return len(set(runs)) < len(runs)
