"""Contrastive search: model confidence against similarity to earlier hidden states (Su et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.score_cache import StepLogits, detach_storage
from decodescope.core.decoding.step_details import StepDetails, build_alternative
from decodescope.core.decoding.step_replayer import StepReplayer, StepRng
from decodescope.core.decoding.step_stats import StepStats, add_stage_details
from decodescope.core.decoding.tensor_utils import GrowableTensor, growable_ids
from decodescope.core.events import Alternative, Event, Method
from decodescope.core.models.text import TokenSpellings


class HiddenStateHistory:
    """Unit vectors of all hidden states so far, [T, D]."""

    def __init__(self, states: torch.Tensor) -> None:
        self._directions = GrowableTensor(_to_unit_vectors(states)[None])

    def max_similarity(self, candidates: torch.Tensor) -> torch.Tensor:
        """Return the largest cosine similarity of each candidate [k, D] to any earlier state: the degeneration penalty,
        [k].
        """
        return (_to_unit_vectors(candidates) @ self._directions.tensor[0].T).amax(-1)

    def append(self, state: torch.Tensor) -> None:
        """Append one state [D]."""
        self._directions.append(_to_unit_vectors(state)[None, None])


def _to_unit_vectors(states: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(states.float(), dim=-1)


def contrastive_scores(confidence: torch.Tensor, penalty: torch.Tensor, alpha: float) -> torch.Tensor:
    """Return (1 − α) · confidence − α · penalty, [k]; a banned candidate (confidence 0) never wins."""
    score = (1 - alpha) * confidence - alpha * penalty
    return score.masked_fill(confidence == 0, -math.inf)


@dataclass(frozen=True, slots=True)
class CandidateScores:
    """The k evaluated candidates of a step.

    Token ids, probabilities after processing, penalties and scores are [k]; last-layer states after each are [k, D] and
    logits [k, V].
    """

    candidates: torch.Tensor
    confidence: torch.Tensor
    penalty: torch.Tensor
    score: torch.Tensor
    states: torch.Tensor
    logits: torch.Tensor

    @property
    def best_index(self) -> torch.Tensor:
        """Index of the best candidate, [1]."""
        return self.score.argmax(-1, keepdim=True)

    def columns(self, raw: torch.Tensor) -> torch.Tensor:
        """Return per candidate token, penalty, score, the model's log-probability, the processed one, and rank, [6, k];
        `raw` are the model's logits [V].
        """
        log_raw = torch.log_softmax(raw, -1)
        mine = log_raw.index_select(0, self.candidates)
        ranks = (log_raw[None] > mine[:, None]).sum(1) + 1
        parts = (self.candidates, self.penalty, self.score, mine, self.confidence.log(), ranks)
        return torch.stack([part.to(log_raw.dtype) for part in parts])


def score_candidates(
    run: DecodingRun, scores: torch.Tensor, history: HiddenStateHistory, k: int, alpha: float
) -> CandidateScores:
    """Feed the k most likely tokens of `scores` [V] as one batch and score them."""
    confidence, candidates = torch.softmax(scores, -1).topk(k)
    output = run.forward(candidates[:, None], hidden=True)
    assert output.hidden is not None
    states = output.hidden[-1][:, -1]
    penalty = history.max_similarity(states)
    return CandidateScores(
        candidates, confidence, penalty, contrastive_scores(confidence, penalty, alpha), states, output.last
    )


def decode_contrastive(run: DecodingRun) -> Iterator[Event]:
    """Evaluate the k most likely tokens in one batched pass per step and keep the one with the best score."""
    k, alpha = _contrastive_settings(run)
    track, ids, step = run.writer.new_sequence(0), growable_ids(run.start_ids, 1, run.device), 0
    output, prefilled = run.prefill(hidden=True, is_whole=True)
    yield prefilled
    assert output.hidden is not None
    history, raw = HiddenStateHistory(output.hidden[-1][0]), run.replace_invalid(output.last)
    run.forward.expand(k)
    while True:
        run.counters.check_overdue()
        scores = run.pipeline.trace(ids.tensor, raw)
        run.check_before_choice(scores, step)
        evaluated = score_candidates(run, scores[-1][0], history, k, alpha)
        best = evaluated.best_index
        chosen = evaluated.candidates.index_select(0, best)
        stats, columns = _step_stats(run, scores, evaluated, chosen, step)
        if run.score_cache is not None:
            penalties = dict(zip(map(int, columns[0]), columns[1], strict=True))
            run.score_cache.add(step, StepLogits(detach_storage(raw), penalties=penalties), [stats.token])
        yield from run.writer.append_and_emit(track, stats, "contrastive")
        yield from run.finish_step(step)
        step += 1
        if track.stop or run.is_cancelled():
            break
        run.forward.keep_row(best, k)
        history.append(evaluated.states.index_select(0, best)[0])
        ids.append(chosen[None])
        raw = run.replace_invalid(evaluated.logits.index_select(0, best))
    yield from run.finish([track])


def _contrastive_settings(run: DecodingRun) -> tuple[int, float]:
    """Return the number of candidates and α."""
    return min(int(run.settings["top_k"]), run.model.vocabulary), float(run.settings.get("penalty_alpha") or 0.0)


Columns = Sequence[Sequence[float]]
"""`CandidateScores.columns` on the host."""


def _step_stats(
    run: DecodingRun, scores: list[torch.Tensor], trial: CandidateScores, chosen: torch.Tensor, step: int
) -> tuple[StepStats, Columns]:
    """Return the step's statistics, with every candidate among the alternatives unless tracing is off, and the columns
    of the candidates. Raises the errors of `DecodingRun.read_choice`.
    """
    top_n, k = run.request.top_n, len(trial.candidates)
    values = trial.columns(scores[0][0]).flatten() if top_n or run.score_cache is not None else None
    choice = run.read_choice(scores, chosen, step, values)
    columns = [choice.extra[begin : begin + k] for begin in range(0, len(choice.extra), k)]
    (reading,) = run.step_stats(scores, choice, [stage.heading for stage in run.pipeline.stages])
    reading = add_stage_details(reading, scores, 0, run.pipeline.observers())
    return add_candidates(reading, columns, run.model.pieces) if top_n else reading, columns


def add_candidates(stats: StepStats, columns: Columns, pieces: TokenSpellings) -> StepStats:
    """Add penalty and score to every candidate; candidates outside the top n are appended."""
    known: dict[int, Alternative] = {item.id: item for item in stats.details.alternatives()}
    for number, similarity, value, log_p, log_c, rank in zip(*columns, strict=True):
        token = int(number)
        item = known.get(token) or build_alternative(token, log_p, log_c, int(rank), pieces)
        known[token] = replace(item, degeneration_penalty=similarity, score=value)
    ordered = sorted(known.values(), key=lambda item: item.rank)
    return stats._replace(details=StepDetails(tuple(ordered), stats.details.funnel()))


class ContrastiveReplay(StepReplayer):
    """Replays a step of contrastive search with the penalties recorded for its candidates."""

    @property
    def method(self) -> Method:
        """The method that selects tokens."""
        return "contrastive"

    def pick(self, scores: torch.Tensor, step_logits: StepLogits, rng: StepRng | None) -> int | None:
        """Return the candidate with the best score; None where one was never evaluated."""
        trial = self._replay_candidates(scores, step_logits)
        return int(trial.candidates.index_select(0, trial.best_index)) if trial is not None else None

    def add_strategy_stats(
        self, stats: StepStats, scores: Sequence[torch.Tensor], step_logits: StepLogits
    ) -> StepStats:
        """Add penalty and score to every candidate."""
        trial = self._replay_candidates(scores[-1], step_logits)
        if trial is None:
            return stats
        return add_candidates(stats, trial.columns(scores[0][0]).tolist(), self.run.model.pieces)

    def _replay_candidates(self, scores: torch.Tensor, step_logits: StepLogits) -> CandidateScores | None:
        """Return the candidates of scores [1, V] without states and logits; None where one was never evaluated."""
        k, alpha = _contrastive_settings(self.run)
        confidence, candidates = torch.softmax(scores[0], -1).topk(k)
        found = [step_logits.penalties.get(token) for token in candidates.tolist()]
        known = [penalty for penalty in found if penalty is not None]
        if len(known) < len(found):
            return None
        penalty = torch.tensor(known, device=scores.device)
        nothing = torch.empty(0)
        return CandidateScores(
            candidates, confidence, penalty, contrastive_scores(confidence, penalty, alpha), nothing, nothing
        )
