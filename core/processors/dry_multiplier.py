"""DRY: a token that would go on repeating an earlier passage loses the more, the longer the passage is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from core.parameter import Parameter
from core.processors.base import TOLD, Context, Processor
from resources.language import mark

if TYPE_CHECKING:
    import numpy as np
    import torch

    from core.events import StageDetail
    from core.processors.base import Witness

BASE = Parameter(
    "dry_base", mark("DRY base"), "float", 1.75,
    mark("By how much the penalty grows with every further token of the repeated passage."),
    minimum=1.0, maximum=10.0, soft_maximum=4.0, step=0.05, option=True, advanced=True,
)  # fmt: skip
ALLOWED = Parameter(
    "dry_allowed_length", mark("DRY allowed length"), "int", 2,
    mark("Passages shorter than this many tokens may be repeated."),
    minimum=1, maximum=10_000, soft_maximum=20, step=1, option=True, advanced=True,
)  # fmt: skip
RANGE = Parameter(
    "dry_range", mark("DRY range"), "int", 0,
    mark("How many of the last tokens are searched for the passage; 0 is the whole text."),
    minimum=0, maximum=1_000_000, soft_maximum=2000, step=1, option=True, advanced=True,
)  # fmt: skip
BREAKERS = (b"\n", b":", b'"', b"*")
"""A passage does not reach across these (p-e-w, text-generation-webui #5677)."""
LONGEST = 150
"""Passages are followed so far at least, and until their penalty is beyond every score."""
BEYOND = 1e6
"""A penalty that is: no logit comes near it."""


def repeated(text: np.ndarray, breaks: np.ndarray, longest: int) -> Iterator[tuple[int, int]]:
    """(place, length): where a token stood behind an earlier passage of `text` [T] with which it ends, and how long
    that passage is, `longest` at most; `breaks` [T] marks tokens that end one."""
    last = len(text) - 1
    if last < 1 or breaks[last]:
        return
    places = (text[:-1] == text[last]).nonzero()[0]
    length = 1
    while places.size:
        reach = places - length
        goes_on = (reach >= 0) & (length < longest)
        goes_on[goes_on] = (text[reach[goes_on]] == text[last - length]) & ~breaks[reach[goes_on]]
        yield from ((place + 1, length) for place in places[~goes_on].tolist())
        places = places[goes_on]
        length += 1


class Match(NamedTuple):
    """The longest passage behind which a token stood."""

    length: int
    back: int
    """How many tokens before the next one it stood there last."""
    penalty: float


class Dry:
    """Logit − multiplier · base^(n − allowed) for tokens behind a repeated passage of n ≥ allowed tokens."""

    def __init__(self, multiplier: float, context: Context) -> None:
        self._multiplier, self._model = multiplier, context.model
        self._base = float(context.options.get(BASE.name, BASE.default))
        self._allowed = int(context.options.get(ALLOWED.name, ALLOWED.default))
        self._window = int(context.options.get(RANGE.name, RANGE.default))
        further = (math.log(BEYOND) - math.log(multiplier)) / math.log(self._base) if self._base > 1 else 0
        self._longest = max(LONGEST, self._allowed + math.ceil(further))
        self._known: dict[int, bool] = {}
        self._matches: list[dict[int, Match]] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [B, V] with the penalties of the texts `ids` [B, T] taken off."""
        scores = scores.clone()
        self._matches = [self._search(text) for text in ids]
        for row, matches in enumerate(self._matches):
            if matches:
                scores[row, list(matches)] -= scores.new_tensor([match.penalty for match in matches.values()])
        return scores

    def _search(self, row: torch.Tensor) -> dict[int, Match]:
        """By token, for those that lose something."""
        import numpy as np

        text = row[-self._window :].cpu().numpy()  # [-0:] is all of it
        breaks = np.fromiter(map(self._breaks, text.tolist()), bool, len(text))
        found: dict[int, Match] = {}
        for place, length in repeated(text, breaks, self._longest):
            token, back = int(text[place]), len(text) - place
            known = found.get(token)
            if length >= self._allowed and (known is None or (length, -back) > (known.length, -known.back)):
                found[token] = Match(length, back, self._penalty(length))
        return found

    def _penalty(self, length: int) -> float:
        """Never infinite: what is the only token left is chosen all the same."""
        return min(self._multiplier * self._base ** (length - self._allowed), BEYOND**5)

    def _breaks(self, token: int) -> bool:
        if token not in self._known:
            data = self._model.pieces.data(token) or b""
            self._known[token] = any(breaker in data for breaker in BREAKERS)
        return self._known[token]

    def witness(self) -> Witness:
        """Of the passages found at this step."""
        matches, pieces = self._matches, self._model.pieces

        from core.events import Repeat, Repeats, StageDetail  # made when something runs

        def tell(row: int, before: torch.Tensor, after: torch.Tensor, chosen: int) -> StageDetail:
            heaviest = sorted(matches[row].items(), key=lambda item: (-item[1].length, item[1].back))
            told = (Repeat(token, pieces[token], m.back, m.length, m.penalty) for token, m in heaviest[:TOLD])
            return StageDetail(repeats=Repeats(tuple(told), len(heaviest)))

        return tell


def make(value: float, context: Context) -> Dry:
    """The penalty of one run."""
    return Dry(value, context)


PROCESSOR = Processor(
    name="dry_multiplier",
    make=make,
    order=155,
    label=mark("DRY {v}"),
    phrase=mark("the DRY penalty of {v}"),
    parameter=Parameter(
        "dry_multiplier", mark("DRY"), "float", 0.0,
        mark("Above 0, a token that would go on repeating an earlier passage loses score, the more the longer the "
             "passage (DRY, don't repeat yourself). 0.8 is usual."),
        minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.05, option=True, advanced=True,
    ),
    beside=(BASE, ALLOWED, RANGE),
    panel="penalties",
    shown=30,
    witness=Dry.witness,
)  # fmt: skip
