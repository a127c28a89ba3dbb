"""A closer look at a step: its alternatives and its funnel, made of the step's figures when somebody asks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.decoding.funnel import Heading
from core.events import Alternative, Stage, StageDetail
from core.events.open_twins import open_twin
from core.models.text import Pieces

if TYPE_CHECKING:
    from core.processors.base import Telling

FIXED = 7
"""Figures every row begins with: raw and processed log-probability of the chosen token, how many tokens are likelier by
the model alone and after processing, negative entropy, varentropy, chosen token."""
OF_STAGE = 3
"""Survivors, mass and raw mass."""


def columns(stages: int, top_n: int) -> int:
    """Figures of a row. Behind the fixed ones: ids, raw and, where there are stages, processed log-probabilities of the
    n likeliest; for each stage its three, ids and probabilities of its n likeliest; for the last one's likeliest the
    raw log-probability and how many tokens are likelier (-1 where it is among the n likeliest by the model alone)."""
    if not top_n:
        return FIXED
    return FIXED + 2 * top_n + (3 * top_n + stages * (OF_STAGE + 2 * top_n) if stages else 0)


@dataclass(frozen=True, slots=True)
class Made:
    """Alternatives and funnel that are there already."""

    kept: tuple[Alternative, ...] = ()
    stages: tuple[Stage, ...] = ()

    def alternatives(self) -> tuple[Alternative, ...]:
        """Of the step."""
        return self.kept

    def funnel(self) -> tuple[Stage, ...]:
        """Of the step."""
        return self.stages

    def details(self) -> tuple[StageDetail, ...]:
        """Of its stages."""
        return tuple([stage.detail for stage in self.stages if stage.detail is not None])


@dataclass(slots=True)
class Look:
    """The figures of one text at one step, and what names them."""

    row: Sequence[float]
    """[`columns`]."""
    top_n: int
    names: Sequence[Heading]
    pieces: Pieces
    survivors: int
    """Tokens that the model itself leaves."""
    tellings: tuple[tuple[int, Telling], ...] = ()
    """Who tells of a stage's detail, with its place in the funnel."""

    def alternatives(self) -> tuple[Alternative, ...]:
        """The n likeliest by the model alone, those after processing, and the chosen one; by rank."""
        found = self._likeliest()
        known = {item.id for item in found}
        raw, final, above, _, _, _, token = self.row[:FIXED]
        if int(token) not in known:
            found.append(self._alternative(int(token), raw, final, int(above) + 1))
            known.add(int(token))
        brought = [self._alternative(*figures) for figures in self._brought_in() if figures[0] not in known]
        return tuple(sorted([*found, *brought], key=_rank) if brought else found)

    def _likeliest(self) -> list[Alternative]:
        n, row = self.top_n, self.row
        ids, before = row[FIXED : FIXED + n], row[FIXED + n : FIXED + 2 * n]
        after = row[FIXED + 2 * n : FIXED + 3 * n] if self.names else before
        return [
            self._alternative(int(token), one, other, place)
            for place, (token, one, other) in enumerate(zip(ids, before, after, strict=True), 1)
        ]

    def _brought_in(self) -> Iterator[tuple[int, float, float, int]]:
        """(token, log-probability before and after processing, rank) of the likeliest after processing that are none of
        the likeliest before: only what changes the order of tokens brings any in."""
        if not self.names:
            return
        n, row = self.top_n, self.row
        last = len(row) - 2 * n
        for place in range(n):
            share, above = row[last - n + place], row[last + n + place]
            if above >= 0 and share > 0:
                yield int(row[last - 2 * n + place]), row[last + place], math.log(share), int(above) + 1

    def _alternative(self, token: int, raw: float, final: float, rank: int) -> Alternative:
        return alternative(token, raw, final, rank, self.pieces)

    def funnel(self) -> tuple[Stage, ...]:
        """The model's own distribution, and what each stage leaves of it."""
        n, row = self.top_n, self.row
        ids, before = row[FIXED : FIXED + n], row[FIXED + n : FIXED + 2 * n]
        top = _likely(ids, list(map(math.exp, before)))
        opening = Stage("raw", "raw", self.survivors, 1.0, 1.0, top, kind="model", phrase="the model")
        told = dict(self.tellings)
        return (opening, *(self._stage(place, head, told.get(place)) for place, head in enumerate(self.names, 1)))

    def details(self) -> tuple[StageDetail, ...]:
        """What its stages tell, in their order."""
        told = [telling() for _, telling in self.tellings]
        return tuple([detail for detail in told if detail is not None])

    def _stage(self, place: int, head: Heading, told: Telling | None) -> Stage:
        n, width = self.top_n, OF_STAGE + 2 * self.top_n
        end = FIXED + 3 * n + place * width
        survivors, mass, raw_mass = self.row[end - width : end - 2 * n]
        made = _OpenStage()
        made.name, made.label, made.value, made.kind, made.phrase = head
        made.survivors, made.mass, made.raw_mass = int(survivors), min(mass, 1.0), min(raw_mass, 1.0)
        made.top = _likely(self.row[end - 2 * n : end - n], self.row[end - n : end])
        made.detail = told() if told is not None else None
        made.__class__ = Stage
        closed: Stage = made
        return closed


def _rank(item: Alternative) -> int:
    return item.rank


def _likely(ids: Sequence[float], shares: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """(token, probability) of what has any; the shares fall."""
    pairs = zip(map(int, ids), shares, strict=True)
    return tuple(pairs) if shares[-1] > 0 else tuple([pair for pair in pairs if pair[1] > 0])


def alternative(token: int, raw: float, final: float, rank: int, pieces: Pieces) -> Alternative:
    """An Alternative from its two log-probabilities."""
    made = _Open()
    made.id, made.text, made.raw_probability, made.probability = token, pieces[token], math.exp(raw), math.exp(final)
    made.raw_log_probability, made.log_probability, made.rank = raw, final, rank
    made.degeneration_penalty = made.score = None
    made.__class__ = Alternative
    closed: Alternative = made
    return closed


_Open, _OpenStage = open_twin(Alternative), open_twin(Stage)
