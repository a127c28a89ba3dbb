"""Record transformers' assisted generation: drafted, accepted and rejected tokens of each round."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from decodescope.core.decoding.speculation.round_events import (
    NodeProbabilities,
    RoundNumbers,
    RoundOutcome,
    build_round_event,
    find_banning_stages,
    target_probabilities,
)
from decodescope.core.decoding.speculation.tree import Branch, merge_branches
from decodescope.core.decoding.speculation.verification import NodeDecision, VerifiedPath
from decodescope.core.decoding.step_stats import compute_step_stats
from decodescope.core.generate_recording.call_recorder import CallRecorder

if TYPE_CHECKING:
    from decodescope.core.events import Method, Origin
    from decodescope.core.generate_recording.call_recorder import CallInputs, FiredCriterion, NewRun, ProcessedStep
    from decodescope.core.generate_recording.run_writer import RunWriter
    from decodescope.core.models.loaded_model import LoadedModel


@dataclass(slots=True)
class _Draft:
    """Candidates of a round, before their verification."""

    length: int
    """Number of tokens before them."""
    ids: list[int]
    probabilities: list[float]
    distributions: torch.Tensor | None
    """[n, V] of the draft model; None if it reports none."""
    started: float
    ready: float
    rng_state: torch.Tensor
    """State of the global generator once the draft is ready."""


class DraftRecorder(CallRecorder):
    """Records assisted generation and prompt lookup. The hooks of the candidate generator call `drafted` and
    `verified`.
    """

    def __init__(self, model: LoadedModel, inputs: CallInputs, new_run: NewRun) -> None:
        super().__init__(model, inputs, new_run)
        self._draft: _Draft | None = None
        self._steps: list[ProcessedStep] = []
        self._round = 0
        self._verified: tuple[torch.Tensor, torch.Tensor, float] | None = None
        self._method: Method = "sampled" if inputs.config.do_sample else "greedy"

    def drafted(self, ids: torch.Tensor, candidates: torch.Tensor, logits: torch.Tensor | None, started: float) -> None:
        """Receive the candidates [1, T + n] after `ids` [1, T] and, if the drafter has them, their logits [1, n, V]."""
        self.begin(ids)
        length = ids.shape[1]
        tokens = candidates[0, length:].tolist()
        distributions = logits[0].float().softmax(-1) if logits is not None and len(tokens) else None
        probabilities = [1.0] * len(tokens)
        if distributions is not None:
            places = torch.tensor(tokens, device=distributions.device)[:, None]
            probabilities = distributions[: len(tokens)].gather(1, places)[:, 0].tolist()
        now, state = time.perf_counter(), torch.get_rng_state()
        self._draft = _Draft(length, tokens, probabilities, distributions, started, now, state)
        self._steps = []

    def processed(self, ids: torch.Tensor, step: ProcessedStep) -> None:
        """Receive the target's scores of one position of the draft."""
        self._steps.append(step)
        if self._draft is not None:
            self._draft.rng_state = torch.get_rng_state()

    def verified(self, ids: torch.Tensor, scores: torch.Tensor) -> None:
        """Receive the text with the accepted tokens [1, T + m] and the target's processed scores [1, n + 1, V]."""
        self._verified = (ids, scores.clone(), time.perf_counter())

    def stopped(self, ids: torch.Tensor, done: list[bool], fired: list[FiredCriterion]) -> None:
        """Emit the round whose tokens `ids` now contains."""
        draft, verified = self._draft, self._verified
        self._draft = self._verified = None
        if draft is None or verified is None:
            return
        run = self.runs[0]
        tokens = verified[0][0, draft.length :].tolist()
        scores = self._scores(verified[1][0])
        step = len(run.sequences[0].ids)
        lap = run.lap()
        origins = self._origins(draft, tokens)
        if draft.ids:
            self._emit_round(run, draft, tokens, scores, step, verified[2])
        headings = self._steps[0].headings if self._steps else ()
        picked = [one[: len(tokens)] for one in scores]
        chosen = torch.tensor(tokens, device=picked[0].device)
        stats = compute_step_stats(picked, chosen, self.inputs.top_n, headings, self.model.pieces)
        for place, (one, origin) in enumerate(zip(stats, origins, strict=True)):
            stop = None
            if done[0] and place == len(tokens) - 1:
                count = len(run.sequences[0].ids) + 1
                stop = self.stop_reason(run, one.token, count, 0, fired, ids[0, -32:].tolist())
            run.append(run.sequences[0], one, self._method, lap / len(tokens), stop, origin)
            self._measure(step + place)

    def _scores(self, final: torch.Tensor) -> list[torch.Tensor]:
        """Return the scores before the first processor and after each, all [n + 1, V]."""
        if not self._steps:
            return [final]
        count = len(self._steps[0].scores)
        return [torch.cat([step.scores[stage] for step in self._steps]) for stage in range(count)]

    @staticmethod
    def _origins(draft: _Draft, tokens: list[int]) -> list[Origin]:
        if not draft.ids:
            return ["target"] * len(tokens)
        accepted = _match_length(draft.ids, tokens)
        extra: Origin = "bonus" if accepted == len(draft.ids) else "correction"
        drafted: list[Origin] = ["draft"] * accepted
        return drafted + [extra] * (len(tokens) - accepted)

    def _emit_round(
        self, run: RunWriter, draft: _Draft, tokens: list[int], scores: list[torch.Tensor], step: int, verified: float
    ) -> None:
        root = self._last_token(run)
        tree = merge_branches(root, [Branch.chain(draft.ids, draft.probabilities)])
        accepted = _match_length(draft.ids, tokens)
        extra = tokens[accepted] if accepted < len(tokens) else -1
        path = VerifiedPath(list(range(1, accepted + 1)), extra, accepted == len(draft.ids))
        path.decisions.update(self._decisions(draft, scores[-1], accepted))
        shares = target_probabilities(scores[-1], tree)
        headings = self._steps[0].headings if self._steps else ()
        banned = find_banning_stages(scores, [heading.name for heading in headings], tree, shares)
        drafting, verifying = draft.ready - draft.started, max(verified - draft.ready, 0.0)
        overhead = max(time.perf_counter() - verified, 0.0)
        figures = RoundNumbers(self._round, step, drafting, verifying, overhead)
        self._round += 1
        run.accepted += accepted
        run.examined += accepted + (accepted < len(draft.ids))
        run.draft_seconds += drafting
        run.verify_seconds += verifying
        run.overhead_seconds += overhead
        outcome = RoundOutcome(tree, path, len(draft.ids))
        judged = NodeProbabilities(shares, banned)
        run.emit(build_round_event(outcome, len(tokens), judged, figures, self.model.pieces))

    def _last_token(self, run: RunWriter) -> int:
        written = run.sequences[0].ids or run.prompt.start
        return written[-1] if written else 0

    def _decisions(self, draft: _Draft, final: torch.Tensor, accepted: int) -> dict[int, NodeDecision]:
        """Return the acceptance tests of speculative sampling, with the random numbers replayed from the generator's
        state; empty if tokens were compared instead, or if the replay contradicts the outcome.
        """
        if draft.distributions is None or not self.inputs.config.do_sample or final.device.type != "cpu":
            return {}
        places = torch.tensor(draft.ids)[:, None]
        target = final[: len(draft.ids)].softmax(-1).gather(1, places)[:, 0]
        ratios = (target / torch.tensor(draft.probabilities)).tolist()
        generator = torch.Generator()
        generator.set_state(draft.rng_state)
        dice = torch.rand(1, len(ratios), generator=generator)[0].tolist()
        passed = [die <= ratio for die, ratio in zip(dice, ratios, strict=True)]
        if not all(passed[:accepted]) or (accepted < len(passed) and passed[accepted]):
            return {}
        tested = min(accepted + 1, len(ratios))
        return {place + 1: NodeDecision(min(1.0, ratios[place]), dice[place]) for place in range(tested)}


def _match_length(draft: list[int], tokens: list[int]) -> int:
    """Return how many tokens at the start are equal."""
    count = 0
    for one, other in zip(draft, tokens, strict=False):
        if one != other:
            break
        count += 1
    return count
