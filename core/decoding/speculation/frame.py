"""The one frame of speculation: draft a tree, score it in one target pass, keep a path, go on from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from core.decoding.observe import read_step
from core.decoding.run import DecodingRun
from core.decoding.speculation import rollback
from core.decoding.speculation.cost import remembered_cost
from core.decoding.speculation.drafters.base import Drafter
from core.decoding.speculation.plan import Plan
from core.decoding.speculation.report import Figures, Tally, round_event, target_shares
from core.decoding.speculation.schedule import Outcome, Schedule
from core.decoding.speculation.target import Target
from core.decoding.speculation.text import Text
from core.decoding.speculation.tree import Branch, DraftTree, merge
from core.decoding.speculation.verify import Dice, Verdict, sample_tree, walk_greedy
from core.events import CostCurve, Event


@dataclass(frozen=True, slots=True)
class Shape:
    """What every round has in common."""

    samples: bool
    """The verifier throws dice; else it follows the target's first choice."""
    draws: bool
    """Children are drawn from the drafter's distribution; else its likeliest tokens are taken."""
    widths: tuple[int, ...] = ()
    branching: bool = False
    threshold: float = 0.0


class Speculation:
    """A run with drafters. Its caches hold exactly the text (less its last token) whenever the caller has control."""

    def __init__(
        self,
        run: DecodingRun,
        target: Target,
        drafters: Sequence[Drafter],
        make_schedule: Callable[[], Schedule],
        shape: Shape,
    ) -> None:
        """`make_schedule` is called when the prompt has been read."""
        self.run, self.target, self.drafters, self.shape = run, target, drafters, shape
        self._make_schedule = make_schedule
        self.text = Text(run.start_ids, run.model.device)
        self.track = run.track(0)
        self.tally = Tally()
        self._dice = Dice(run.generator)
        self._extra_seconds = 0.0
        self._method = "sampled" if shape.samples else "greedy"

    def decode(self) -> Iterator[Event]:
        """All events between the prompt's pass and the end of the text."""
        run = self.run
        output, prefilled = run.prefill()
        yield prefilled
        try:
            scores = self.target.first(output, self.text)
            yield from self._write(scores, self._choose(scores), ["target"])
            schedule = None
            while not self.track.stop and not run.is_cancelled():
                schedule = schedule or self._make_schedule()
                yield from self._round(schedule)
        finally:
            self._close()
        if cost := remembered_cost(run.model):
            yield CostCurve(cost.curve)
        yield from run.end([self.track])

    def _close(self) -> None:
        """Leave caches that hold the text alone, also when the run ended in the middle of a round."""
        length = max(len(self.run.start_ids) + len(self.track.ids) - 1, 0)
        self.target.crop(length)
        for drafter in self.drafters:
            drafter.close(length)
        self.tally.report(self.run)

    def _round(self, schedule: Schedule) -> list[Event]:
        begun = time.perf_counter()
        plan = self._plan(schedule)
        if plan.depth == 0:
            return self._plain_step(schedule)
        branches = self._draft(plan)
        if branches is None or self.run.is_cancelled():
            return []
        tree = merge(self.text.ids[-1], branches)
        drafted = time.perf_counter()
        scores = self.target.score(self.text, tree)
        verdict = self._verify(tree, scores[-1])
        verified = time.perf_counter()
        self._settle(tree, verdict)
        outcome = Outcome(tree, verdict, sum(map(_depth, branches)), drafted - begun, verified - drafted)
        events = self._report(outcome, scores, plan.depth, begun)
        if tree.drafted:
            schedule.learn(replace(outcome, extra_seconds=self._extra_seconds))
        else:
            schedule.learn_plain(outcome.verify_seconds)
        return events

    def _plain_step(self, schedule: Schedule) -> list[Event]:
        """One token as plain decoding writes it."""
        begun = time.perf_counter()
        scores = self.target.step(self.text)
        token = self._choose(scores)
        taken = time.perf_counter() - begun
        schedule.learn_plain(taken)
        self.tally.verify_seconds += taken
        return self._write(scores, token, ["target"])

    def _choose(self, scores: list[torch.Tensor]) -> torch.Tensor:
        """A token [1] from scores [1, V]."""
        self.run.check_scores(scores[-1], scores[0], len(self.track.ids))
        if self.shape.samples:
            return torch.multinomial(torch.softmax(scores[-1], -1), 1, generator=self.run.generator)[0]
        return scores[-1].argmax(-1)

    def _plan(self, schedule: Schedule) -> Plan:
        room = [self.run.stopping.max_new - len(self.track.ids) - 1]
        if self.run.model.context is not None:
            room.append(self.run.model.context - len(self.text))
        room += [drafter.room(len(self.text)) for drafter in self.drafters]
        wanted = schedule.length()
        shape = self.shape
        return Plan(
            max(min(wanted, *room), 0), shape.widths, shape.draws, shape.samples, shape.threshold,
            schedule.gate, shape.branching,
        )  # fmt: skip

    def _draft(self, plan: Plan) -> list[Branch] | None:
        """Every drafter's proposal; None when the run was cancelled meanwhile."""
        branches = []
        for drafter in self.drafters:
            branch = drafter.propose(self.text, plan)
            if branch is None:
                return None
            branches.append(branch)
        return branches

    def _verify(self, tree: DraftTree, scores: torch.Tensor) -> Verdict:
        if not self.shape.samples:
            return walk_greedy(tree, scores.argmax(-1).tolist())
        # A node whose every token is banned has no distribution; reaching it is an error that `_write` reports.
        p = torch.softmax(scores, -1).nan_to_num(1.0 / scores.shape[-1])
        return sample_tree(tree, p, self._dice, self.run.generator)

    def _settle(self, tree: DraftTree, verdict: Verdict) -> None:
        accepted = [tree.ids[node] for node in verdict.path]
        self.target.settle(verdict.path)
        for drafter in self.drafters:
            drafter.settle(accepted)

    def _report(self, outcome: Outcome, scores: list[torch.Tensor], length: int, begun: float) -> list[Event]:
        """Write the tokens, and tell of the round in front of them."""
        tree, verdict, step = outcome.tree, outcome.verdict, len(self.track.ids)
        tokens = [*(tree.ids[node] for node in verdict.path), verdict.extra]
        last = "target" if not tree.drafted else "bonus" if verdict.is_bonus else "correction"
        writing = time.perf_counter()
        picked = [score[[0, *verdict.path]] for score in scores] if tree.drafted else scores
        self.run.check_scores(picked[-1], picked[0], step)
        chosen = torch.tensor(tokens, device=self.run.model.device)
        events = self._write(picked, chosen, [*["draft"] * len(verdict.path), last])
        writing = time.perf_counter() - writing
        if not tree.drafted:
            self.tally.verify_seconds += outcome.verify_seconds
            return events
        self.tally.add(outcome)
        shares = target_shares(scores[-1], tree)
        spent = outcome.draft_seconds + outcome.verify_seconds
        self.tally.draft_seconds += outcome.draft_seconds
        self.tally.verify_seconds += outcome.verify_seconds
        overhead = time.perf_counter() - begun - spent
        self.tally.overhead_seconds += overhead
        self._extra_seconds = max(overhead - writing, 0.0)
        figures = Figures(self.tally.rounds - 1, step, length, outcome.draft_seconds, outcome.verify_seconds, overhead)
        written = len(self.track.ids) - step
        return [round_event(tree, verdict, written, shares, figures, self.run.model.pieces), *events]

    def _write(self, scores: list[torch.Tensor], chosen: torch.Tensor, origins: list[str]) -> list[Event]:
        """Append tokens [n] until the text ends; scores [n, V] decided them."""
        run, events = self.run, list[Event]()
        step = len(self.track.ids)
        if any(number % 16 == 0 for number in range(step, step + len(origins))):
            rollback.compact(run.forward.cache)
        readings = read_step(scores, chosen, run.request.top_n, self.target.names, run.model.pieces)
        for reading, origin in zip(readings, origins, strict=True):
            events += run.token_events(self.track, reading, self._method, origin=origin)
            events += run.step_done(len(self.track.ids) - 1)
            if self.track.stop:
                break
        self.text.extend(self.track.ids[step:], chosen)
        return events


def _depth(branch: Branch) -> int:
    """Draft passes a branch took: its depth."""
    depths = [0]
    for parent in branch.parents:
        depths.append(depths[parent] + 1)
    return max(depths)
