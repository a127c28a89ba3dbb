"""From tensors to plain numbers: what one step looked like, for every sequence of the batch at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from core.events import Alternative, Stage
from core.text import Pieces

_FIXED = 5
"""Figures every reading begins with: raw and processed log-probability, rank, entropy, chosen token."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One sequence's step: log-probabilities natural, entropy in nats, rank from 1."""

    token: int
    raw_log_probability: float
    log_probability: float
    rank: int
    entropy: float
    alternatives: tuple[Alternative, ...] = ()
    funnel: tuple[Stage, ...] = ()


def read_step(
    scores: Sequence[torch.Tensor],
    chosen: torch.Tensor,
    top_n: int,
    names: Sequence[tuple[str, str]],
    pieces: Pieces,
) -> list[Reading]:
    """Read a step.

    `scores`: the raw logits and the scores after every stage, each [B, V]; `names`: (name, label) of the stages;
    `chosen`: token ids [B]. One transfer brings all figures to the host. `top_n` 0 reads the chosen token only.
    """
    top_n = min(top_n, scores[0].shape[-1])
    raw = torch.log_softmax(scores[0], -1)
    final = torch.log_softmax(scores[-1], -1) if len(scores) > 1 else raw
    probabilities = raw.exp()
    columns = [_fixed_columns(raw, final, probabilities, chosen)]
    if top_n:
        top = raw.topk(top_n, dim=1)
        columns.append(_alternative_columns(final, top))
        columns.append(_stage_columns(scores, top_n) if len(scores) > 1 else _only_raw(scores[0], top))
    # Ids stay exact in float32 up to 16,777,216, more than any vocabulary has.
    rows = torch.cat(columns, dim=1).tolist()
    return [_reading(row, top_n, names, pieces) for row in rows]


def _fixed_columns(
    raw: torch.Tensor, final: torch.Tensor, probabilities: torch.Tensor, chosen: torch.Tensor
) -> torch.Tensor:
    """[B, 5] in the order of a Reading."""
    index = chosen[:, None]
    picked = raw.gather(1, index)
    rank = (raw > picked).sum(1, keepdim=True) + 1
    entropy = torch.special.entr(probabilities).sum(1, keepdim=True)
    return torch.cat([picked, final.gather(1, index), rank, entropy, index], dim=1)


Top = torch.return_types.topk
"""Values and indices [B, n]."""


def _only_raw(logits: torch.Tensor, top: Top) -> torch.Tensor:
    """[B, 3 + 2n] as `_stage_columns` would have it where no stage is on: nothing is cut, so the mass is whole."""
    alive = (logits > -math.inf).sum(1, keepdim=True)
    return torch.cat([alive, torch.ones_like(top.values[:, :2]), top.indices, top.values.exp()], dim=1)


def _alternative_columns(final: torch.Tensor, top: Top) -> torch.Tensor:
    """[B, 3n]: ids, raw log-probabilities, processed ones."""
    return torch.cat([top.indices, top.values, final.gather(1, top.indices)], dim=1)


def _stage_columns(scores: Sequence[torch.Tensor], top_n: int) -> torch.Tensor:
    """[B, S · (3 + 2n)]: for the raw scores and every stage survivors, mass, raw mass, top ids, top probabilities."""
    stacked = torch.stack(list(scores))  # all stages in each operation: many small ones would cost more than they do
    shares = torch.softmax(stacked, -1)
    alive = stacked > -math.inf
    entering = torch.cat([shares[:1], shares[:-1]])
    sums = torch.stack([alive, entering * alive, shares[:1] * alive]).sum(-1)
    top = shares.topk(top_n, dim=-1)
    figures = torch.cat([sums.permute(1, 2, 0), top.indices, top.values], dim=-1)
    return figures.transpose(0, 1).flatten(1)


def _reading(row: list[float], top_n: int, names: Sequence[tuple[str, str]], pieces: Pieces) -> Reading:
    raw, final, rank, entropy, token = row[:_FIXED]
    reading = Reading(int(token), raw, final, int(rank), entropy)
    if not top_n:
        return reading
    alternatives = _alternatives(row[_FIXED : _FIXED + 3 * top_n], top_n, reading, pieces)
    funnel = _funnel(row[_FIXED + 3 * top_n :], top_n, names)
    return Reading(reading.token, raw, final, reading.rank, entropy, alternatives, funnel)


def _alternatives(row: list[float], top_n: int, chosen: Reading, pieces: Pieces) -> tuple[Alternative, ...]:
    """The n likeliest by the model alone, and the chosen one behind them when it is not among these."""
    found = [
        alternative(int(row[i]), row[top_n + i], row[2 * top_n + i], i + 1, pieces)
        for i in range(top_n)
    ]  # fmt: skip
    if all(item.id != chosen.token for item in found):
        found.append(alternative(chosen.token, chosen.raw_log_probability, chosen.log_probability, chosen.rank, pieces))
    return tuple(found)


def alternative(token: int, raw: float, final: float, rank: int, pieces: Pieces) -> Alternative:
    """An Alternative from its two log-probabilities."""
    return Alternative(token, pieces[token], math.exp(raw), math.exp(final), raw, final, rank)


def _funnel(row: list[float], top_n: int, names: Sequence[tuple[str, str]]) -> tuple[Stage, ...]:
    width = 3 + 2 * top_n
    stages = []
    for index, (name, label) in enumerate((("raw", "raw"), *names)):
        part = row[index * width : (index + 1) * width]
        top = tuple((int(part[3 + i]), part[3 + top_n + i]) for i in range(top_n) if part[3 + top_n + i] > 0)
        stages.append(Stage(name, label, int(part[0]), min(part[1], 1.0), min(part[2], 1.0), top))
    return tuple(stages)
