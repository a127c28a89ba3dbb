"""Rankings of completions, the pairs they imply, and the rule that ranks the bundled ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from decodescope.core.checks.arguments import check_integer, check_kind, check_text, checked_texts
from decodescope.core.errors import PreferenceError
from decodescope.resources.language import tr, trn

MAX_RANK = 10**9
"""Maximum rank."""
Groups = Sequence[str | Sequence[str]]
"""Completions, the best first; tied ones form a sequence of their own."""


class Pair(NamedTuple):
    """The preferred and the rejected one of two completions of a prompt; field names as in TRL."""

    prompt: str
    chosen: str
    rejected: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """Completions of one prompt and their ranks: 1 is the best, equal ranks are ties."""

    prompt: str
    completions: tuple[str, ...]
    ranks: tuple[int, ...]

    def __post_init__(self) -> None:
        check_text("prompt", self.prompt)
        check_kind("completions", self.completions, tuple, tr("Pass a tuple of texts."))
        checked_texts("completions", self.completions)
        check_kind("ranks", self.ranks, tuple, tr("Pass a tuple of whole numbers."))
        for rank in self.ranks:
            check_integer("ranks", rank, -MAX_RANK, MAX_RANK)
        if len(self.completions) != len(self.ranks):
            raise _invalid_ranking(
                trn(
                    "There is {texts} completion, but the number of ranks is {ranks}.",
                    "There are {texts} completions, but the number of ranks is {ranks}.",
                    len(self.completions),
                ).format(texts=len(self.completions), ranks=len(self.ranks))
            )
        if len(self.completions) < 2:
            raise _invalid_ranking(tr("A ranking needs at least two completions."))
        if len(set(self.completions)) < len(self.completions):
            raise _invalid_ranking(tr("The same completion occurs twice."))

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The completions grouped by rank, the best first."""
        by_rank: dict[int, list[str]] = {}
        for text, rank in zip(self.completions, self.ranks, strict=True):
            by_rank.setdefault(rank, []).append(text)
        return tuple(tuple(by_rank[rank]) for rank in sorted(by_rank))


def ranked(groups: Groups, prompt: str = "") -> Ranking:
    """Return the ranking of completions given best first, with ties grouped. Raises ParameterError, PreferenceError."""
    given = groups if isinstance(groups, (list, tuple)) else ()
    tied = [tuple(group) if isinstance(group, (list, tuple)) else (group,) for group in given]
    texts = tuple(text for group in tied for text in group)
    if not all(isinstance(text, str) for text in texts):
        raise _invalid_ranking(tr("The prompt and the completions must be texts."))
    ranks = tuple(rank for rank, group in enumerate(tied, 1) for _ in group)
    return Ranking(prompt, texts, ranks)


def pairs(ranking: Ranking | Mapping[str, object] | Groups) -> list[Pair]:
    """Return the pairs implied by a ranking of K completions: C(K, 2) without ties, those of the best completion first.

    `ranking`: a `Ranking`; a mapping with its three fields, as in JSONL files; or the completions alone, the best
    first, with ties in a list of their own: `["best", ["as good", "as this"], "worst"]`. Raises PreferenceError for
    repeated completions or fewer than two.
    """
    known = ranking if isinstance(ranking, Ranking) else _as_ranking(ranking)
    order = sorted(zip(known.ranks, known.completions, strict=True), key=lambda place: place[0])
    return [
        Pair(known.prompt, better, worse)
        for (above, better), (below, worse) in combinations(order, 2)
        if above < below
    ]  # fmt: skip


def _as_ranking(ranking: Mapping[str, object] | Groups) -> Ranking:
    return parse_ranking(ranking) if isinstance(ranking, Mapping) else ranked(ranking)


def parse_ranking(values: Mapping[str, object]) -> Ranking:
    """Return the ranking of `{"prompt", "completions", "ranks"}`, or of a TRL pair `{"prompt", "chosen", "rejected"}`.

    Raises PreferenceError.
    """
    prompt = values.get("prompt", "")
    is_pair = "chosen" in values or "rejected" in values
    ranks: tuple[object, ...] = (1, 2) if is_pair else _sequence(values, "ranks")
    texts = (values.get("chosen"), values.get("rejected")) if is_pair else _sequence(values, "completions")
    if not (isinstance(prompt, str) and all(isinstance(text, str) and text for text in texts)):
        raise _invalid_ranking(tr("The prompt and the completions must be texts."))
    if not all(isinstance(rank, int) and not isinstance(rank, bool) for rank in ranks):
        raise _invalid_ranking(tr("The ranks must be whole numbers."))
    return Ranking(prompt, tuple(map(str, texts)), tuple(int(str(rank)) for rank in ranks))


def _sequence(values: Mapping[str, object], name: str) -> tuple[object, ...]:
    found = values.get(name)
    if not isinstance(found, (list, tuple)):
        raise _invalid_ranking(tr("“chosen” and “rejected”, or “completions” and “ranks”, are missing."))
    return tuple(found)


def _invalid_ranking(cause: str) -> PreferenceError:
    return PreferenceError(cause, tr("Each ranking needs at least two different completions, each with a rank."))


KIND_POINTS = 2
REPEATED_NGRAM = 4
_INTRODUCED_NAME = re.compile(r"\b(?:named|called) ([A-Z][a-z]+)")
_NAME_IN_SENTENCE = re.compile(r"(?<=[a-z,] )([A-Z][a-z]+)")
"""A capitalized word within a sentence, taken as a name."""
_SAME_NAME_TWICE = re.compile(r"\b([A-Z][a-z]+) and \1\b")
_WORD = re.compile(r"[A-Za-z]+")


class Verdict(NamedTuple):
    """The rule's result for one ending."""

    kind: bool
    names_kept: bool
    no_repetition: bool

    @property
    def points(self) -> int:
        """Points from 0 to 4; more is better."""
        return KIND_POINTS * self.kind + self.names_kept + self.no_repetition


def judge(prompt: str, completion: str) -> Verdict:
    """Apply the rule to `completion` after `prompt`. Raises ParameterError."""
    check_text("prompt", prompt)
    check_text("completion", completion)
    return Verdict(_is_kind(completion), _keeps_names(prompt, completion), not _has_repetition(completion))


def rank_by_rule(prompt: str, completions: Sequence[str]) -> Ranking:
    """Rank the completions by points; equal points are ties. Raises ParameterError, PreferenceError."""
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
