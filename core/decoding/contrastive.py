"""Contrastive search: confidence against resemblance to everything said before (Su et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from core.decoding.observe import Reading, alternative, read_step
from core.decoding.run import DecodingRun
from core.decoding.single import Ids
from core.events import Alternative, Event
from core.text import Pieces


class History:
    """Directions (unit vectors) of all hidden states so far, [T, D], growing in place."""

    def __init__(self, states: torch.Tensor) -> None:
        self._length = states.shape[0]
        self._buffer = torch.cat([_unit(states), torch.empty(256, states.shape[1], device=states.device)])

    def resemblance(self, candidates: torch.Tensor) -> torch.Tensor:
        """Largest cosine of each candidate [k, D] with any earlier state: the degeneration penalty, [k]."""
        return (_unit(candidates) @ self._buffer[: self._length].T).amax(-1)

    def append(self, state: torch.Tensor) -> None:
        """Add one state [D]."""
        if self._length == self._buffer.shape[0]:
            self._buffer = torch.cat([self._buffer, torch.empty_like(self._buffer)])
        self._buffer[self._length] = _unit(state)
        self._length += 1


def _unit(states: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(states.float(), dim=-1)


def balance(confidence: torch.Tensor, penalty: torch.Tensor, alpha: float) -> torch.Tensor:
    """(1 − α) · confidence − α · penalty, [k]; a banned candidate (confidence 0) never wins."""
    score = (1 - alpha) * confidence - alpha * penalty
    return score.masked_fill(confidence == 0, -math.inf)


def decode_contrastive(run: DecodingRun) -> Iterator[Event]:
    """Try the k likeliest tokens in one batched pass and keep the best balanced one."""
    k = min(int(run.config.top_k), run.model.vocabulary)
    alpha = float(run.config.penalty_alpha or 0.0)
    names = [(stage.name, stage.label) for stage in run.funnel.stages]
    track, ids = run.track(0), Ids(run.start_ids, 1, run.model.device)
    output, prefilled = run.prefill(hidden=True, whole=True)
    yield prefilled
    assert output.hidden is not None
    history, raw, step = History(output.hidden[-1][0]), run.repair(output.last), 0
    run.forward.expand(k)
    while True:
        scores = run.funnel.trace(ids.tensor, raw)
        run.check_scores(scores[-1], raw, step)
        confidence, candidates = torch.softmax(scores[-1][0], -1).topk(k)
        output = run.forward(candidates[:, None], hidden=True)
        assert output.hidden is not None
        states = output.hidden[-1][:, -1]
        penalty = history.resemblance(states)
        score = balance(confidence, penalty, alpha)
        best = score.argmax()
        chosen = candidates[best][None]
        reading = read_step(scores, chosen, run.request.top_n, names, run.model.pieces)[0]
        if run.request.top_n:
            reading = with_candidates(reading, candidates, confidence, penalty, score, scores[0][0], run.model.pieces)
        yield from run.token_events(track, reading, "contrastive")
        yield from run.step_done(step)
        step += 1
        if track.stop or run.is_cancelled():
            break
        # All k rows go on from the winner, so the next candidates need no copying of their own.
        run.forward.reorder(best.repeat(k))
        history.append(states[best])
        ids.append(chosen)
        raw = run.repair(output.last[best][None])
    yield from run.end([track])


def with_candidates(
    reading: Reading, candidates: torch.Tensor, confidence: torch.Tensor, penalty: torch.Tensor, score: torch.Tensor,
    raw: torch.Tensor, pieces: Pieces,
) -> Reading:  # fmt: skip
    """The reading with penalty and score on every candidate [k]; the ones outside the top n are added."""
    log_raw = torch.log_softmax(raw, -1)
    ranks = (log_raw[None] > log_raw[candidates][:, None]).sum(1) + 1
    columns = (candidates, penalty, score, log_raw[candidates], confidence.log(), ranks)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    known: dict[int, Alternative] = {item.id: item for item in reading.alternatives}
    for token, similarity, value, log_p, log_c, rank in rows:
        item = known.get(token) or alternative(token, log_p, log_c, rank, pieces)
        known[token] = replace(item, degeneration_penalty=similarity, score=value)
    ordered = sorted(known.values(), key=lambda item: item.rank)
    return replace(reading, alternatives=tuple(ordered))
