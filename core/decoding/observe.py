"""From tensors to plain numbers: what one step looked like, for every sequence of the batch at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, make_dataclass

import torch

from core.decoding.funnel import Heading
from core.decoding.quick_reading import FIXED, read_quickly
from core.events import Alternative, Stage
from core.models.text import Pieces

_FIXED = FIXED
"""Figures every reading begins with: raw and processed log-probability, how many tokens are likelier by the model
alone and after processing, negative entropy, varentropy, chosen token."""


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
    final_rank: int | None = None
    """Place after processing; None where nothing was processed."""
    varentropy: float = 0.0
    """In nats²."""


def read_step(
    scores: Sequence[torch.Tensor],
    chosen: torch.Tensor,
    top_n: int,
    names: Sequence[Heading],
    pieces: Pieces,
) -> list[Reading]:
    """Read a step.

    `scores`: the raw logits and the scores after every stage, each [B, V]; `names`: the stages' headings;
    `chosen`: token ids [B]. One transfer brings all figures to the host. `top_n` 0 reads the chosen token only.
    """
    top_n = min(top_n, scores[0].shape[-1])
    rows = read_quickly(scores, chosen, top_n) or _read_by_torch(scores, chosen, top_n)
    readings = [_reading(row, top_n, names, pieces, scores[0][number]) for number, row in enumerate(rows)]
    if len(scores) == 1:
        return readings
    return [_with_final_top(reading, scores[0][n], pieces) for n, reading in enumerate(readings)]


def _read_by_torch(scores: Sequence[torch.Tensor], chosen: torch.Tensor, top_n: int) -> list[list[float]]:
    """A row of figures for each text."""
    raw = torch.log_softmax(scores[0], -1)
    final = torch.log_softmax(scores[-1], -1) if len(scores) > 1 else raw
    probabilities = raw.exp()
    columns = _fixed_columns(raw, final, probabilities, chosen)
    if top_n:
        top = raw.topk(top_n, dim=1)
        columns += [top.indices.to(raw.dtype), top.values]
        if len(scores) > 1:
            columns += [final.gather(1, top.indices), _stage_columns(scores, probabilities, top_n)]
    # Ids stay exact in float32 up to 16,777,216, more than any vocabulary has.
    rows: list[list[float]] = torch.cat(columns, dim=1).tolist()
    return rows


def _fixed_columns(
    raw: torch.Tensor, final: torch.Tensor, probabilities: torch.Tensor, chosen: torch.Tensor
) -> list[torch.Tensor]:
    """Seven of [B, 1], in the order of a Reading."""
    index = chosen[:, None]
    picked = raw.gather(1, index)
    above = (raw > picked).sum(1, keepdim=True)
    entropy = torch.linalg.vecdot(probabilities, raw)[:, None]  # negative; NaN where a logit is -inf, see `_reading`
    varentropy = torch.linalg.vecdot(probabilities, (raw - entropy).square_())[:, None]
    # One number type throughout: to join several types takes five times as long.
    ahead, token = above.to(raw.dtype), index.to(raw.dtype)
    if final is raw:
        return [picked, picked, ahead, ahead, entropy, varentropy, token]
    kept = final.gather(1, index)
    return [picked, kept, ahead, (final > kept).sum(1, keepdim=True).to(raw.dtype), entropy, varentropy, token]


def _stage_columns(scores: Sequence[torch.Tensor], probabilities: torch.Tensor, top_n: int) -> torch.Tensor:
    """[B, S · (3 + 2n)]: for every stage survivors, mass, raw mass, top ids, top probabilities."""
    stages = torch.stack(list(scores[1:]))  # all in each operation: many small ones would cost more than they do
    shares = torch.softmax(stages, -1)
    alive = torch.isneginf(stages).logical_not_().to(shares.dtype)  # a comparison would take twice as long
    raw_mass = mass = torch.linalg.vecdot(alive, probabilities)
    if len(stages) > 1:
        mass = torch.linalg.vecdot(alive, torch.cat([probabilities[None], shares[:-1]]))
    top = shares.topk(top_n, dim=-1)
    sums = torch.stack([alive.sum(-1), mass, raw_mass], dim=-1)
    return torch.cat([sums, top.indices.to(sums.dtype), top.values], dim=-1).transpose(0, 1).flatten(1)


def _reading(row: list[float], top_n: int, names: Sequence[Heading], pieces: Pieces, logits: torch.Tensor) -> Reading:
    raw, final, above, ahead, entropy, varentropy, token = row[:_FIXED]
    rank, entropy, survivors = int(above) + 1, max(-entropy, 0.0), len(logits)
    final_rank = int(ahead) + 1 if names else None
    if math.isnan(entropy):
        entropy, varentropy, survivors = _with_banned(logits)
    if not top_n:
        return Reading(int(token), raw, final, rank, entropy, final_rank=final_rank, varentropy=varentropy)
    ids = [int(value) for value in row[_FIXED : _FIXED + top_n]]
    before = row[_FIXED + top_n : _FIXED + 2 * top_n]
    rest = row[_FIXED + 2 * top_n :]
    after = rest[:top_n] if rest else before
    found = [
        alternative(token_id, one, other, place, pieces)
        for place, (token_id, one, other) in enumerate(zip(ids, before, after, strict=True), 1)
    ]
    top = tuple([(item.id, item.raw_probability) for item in found if item.raw_probability > 0])
    opening = Stage("raw", "raw", survivors, 1.0, 1.0, top, kind="model", phrase="the model")
    if token not in ids:
        found.append(alternative(int(token), raw, final, rank, pieces))
    funnel = (opening, *_funnel(rest[top_n:], top_n, names))
    return Reading(int(token), raw, final, rank, entropy, tuple(found), funnel, final_rank, varentropy)


def _with_final_top(reading: Reading, logits: torch.Tensor, pieces: Pieces) -> Reading:
    """The reading with the likeliest after processing among the alternatives too; logits [V].

    They are nearly always there already: only what changes the order of tokens brings others in.
    """
    if not reading.funnel:
        return reading
    known = {item.id for item in reading.alternatives}
    missing = [(token, share) for token, share in reading.funnel[-1].top if token not in known]
    if not missing:
        return reading
    found = [alternative(*figures, pieces) for figures in _figures_of(missing, reading, logits)]
    ordered = sorted([*reading.alternatives, *found], key=lambda item: item.rank)
    object.__setattr__(reading, "alternatives", tuple(ordered))  # made just now, and nobody else's yet
    return reading


def _figures_of(
    tokens: Sequence[tuple[int, float]], reading: Reading, logits: torch.Tensor
) -> Iterator[tuple[int, float, float, int]]:
    """(token, log-probability before and after processing, rank) of tokens whose probability after it is known.

    What softmax takes off every logit is what it took off the chosen one's; NumPy takes a handful of numbers out in a
    third of torch's time."""
    row, ids = logits.float().cpu().numpy(), [token for token, _ in tokens]
    own = row[ids]
    taken = float(row[reading.token]) - reading.raw_log_probability
    if not math.isfinite(taken):  # the model itself forbids what was chosen
        taken = float(logits.logsumexp(-1))
    ranks = (row > own[:, None]).sum(1) + 1
    before, after = (own - taken).tolist(), [math.log(share) for _, share in tokens]
    return zip(ids, before, after, ranks.tolist(), strict=True)


def _with_banned(logits: torch.Tensor) -> tuple[float, float, int]:
    """Entropy in nats, varentropy and survivors of raw logits [V] of which some are -inf: p ln p is 0 at p = 0."""
    shares = torch.softmax(logits, -1)
    entropy = torch.special.entr(shares).sum()
    spread = shares * (shares.log() + entropy).square()
    return float(entropy), float(spread[shares > 0].sum()), int((logits > -math.inf).sum())


def alternative(token: int, raw: float, final: float, rank: int, pieces: Pieces) -> Alternative:
    """An Alternative from its two log-probabilities; made open and closed at once, in a quarter of the time."""
    made = _Open(token, pieces[token], math.exp(raw), math.exp(final), raw, final, rank)
    made.__class__ = Alternative
    closed: Alternative = made
    return closed


_Open = make_dataclass(
    "_Open", [(item.name, item.type, field(default=item.default)) for item in fields(Alternative)], slots=True
)
"""An Alternative that is not frozen: filling a frozen one goes through `object.__setattr__`, field by field."""


def _funnel(row: list[float], top_n: int, names: Sequence[Heading]) -> Iterator[Stage]:
    """The stages behind the raw scores."""
    width = 3 + 2 * top_n
    for index, head in enumerate(names if row else ()):
        part = row[index * width : (index + 1) * width]
        top = [(int(part[3 + i]), part[3 + top_n + i]) for i in range(top_n) if part[3 + top_n + i] > 0]
        yield Stage(
            head.name, head.label, int(part[0]), min(part[1], 1.0), min(part[2], 1.0), tuple(top),
            head.value, head.kind, head.phrase,
        )  # fmt: skip
