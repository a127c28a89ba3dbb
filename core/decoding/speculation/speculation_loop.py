"""The one frame of speculation: draft a tree, score it in one target pass, keep a path, go on from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from core.caches.tensors import cache_editing
from core.decoding.run import DecodingRun
from core.decoding.run_counters import is_measured
from core.decoding.score_cache import StepLogits
from core.decoding.speculation.drafter_selection import DrafterGroup, DrafterSelector
from core.decoding.speculation.drafters.base import Drafter
from core.decoding.speculation.drafters.lookahead import LookaheadBranch
from core.decoding.speculation.inverse_sampling import draw
from core.decoding.speculation.length_schedule import RoundResult
from core.decoding.speculation.round_events import (
    NodeProbabilities,
    RoundOutcome,
    RoundTotals,
    Stopwatch,
    cuts_of,
    round_event,
    target_shares,
)
from core.decoding.speculation.round_plan import RoundPlan
from core.decoding.speculation.speculation_text import SpeculationText
from core.decoding.speculation.target_model import TargetModel
from core.decoding.speculation.tree import Branch, DraftTree, merge
from core.decoding.speculation.verification import AcceptanceRng, VerifiedPath, sample_tree, walk_greedy
from core.decoding.speculation.verify_cost import clock_of, remembered_cost
from core.decoding.stage_observers import with_details
from core.decoding.step_events import StepEventWriter
from core.decoding.step_stats import StepStats, read_step
from core.events import CostCurve, Event, Method, Origin

_PAUSE = RoundPlan(0)
"""Of a round in which nobody is asked."""
_PRICED = 5
"""Of plain steps every so many is priced: asking a thread for its own time is a call of the system. It is an odd
number, for every second step writes two tokens."""


@dataclass(frozen=True, slots=True)
class SpeculationShape:
    """What every round has in common."""

    samples: bool
    """The verifier throws dice; else it follows the target's first choice."""
    draws: bool
    """Children are drawn from the drafter's distribution; else its likeliest tokens are taken."""
    widths: tuple[int, ...] = ()
    leaves: bool = False
    threshold: float = 0.0


@dataclass(frozen=True, slots=True)
class _RoundDraft:
    """A round's proposals; none: a plain step."""

    group: DrafterGroup
    plan: RoundPlan
    branches: list[Branch]
    silent: list[int]
    """Who was asked before and had no guess."""

    @property
    def was_asked(self) -> bool:
        """Whether anybody was: in a pause nobody is."""
        return bool(self.branches or self.silent)


class Speculation:
    """A run with drafters. Its caches hold exactly the text (less its last token) whenever the caller has control."""

    def __init__(
        self,
        run: DecodingRun,
        target: TargetModel,
        drafters: Sequence[Drafter],
        make_asking: Callable[[], DrafterSelector],
        shape: SpeculationShape,
    ) -> None:
        """`make_asking` is called when the prompt has been read: who drafts in a round, and how long."""
        self.run, self.target, self.drafters, self.shape = run, target, drafters, shape
        self._make_asking = make_asking
        self.text = SpeculationText(run.start_ids, run.device)
        self.track = run.scribe.track(0)
        self.tally = RoundTotals()
        self._rider = next((drafter for drafter in drafters if isinstance(drafter, LookaheadBranch)), None)
        self._plain = 0
        """Plain steps so far."""
        self._dice = AcceptanceRng(run.generator)
        self._clock = clock_of(run.device)
        self._method: Method = "sampled" if shape.samples else "greedy"
        self._writer = StepEventWriter(run, [self.track], target.names, self._method, target.funnel.witnesses)

    def decode(self) -> Iterator[Event]:
        """All events between the prompt's pass and the end of the text."""
        run = self.run
        watched = self.target.passes.features is not None
        output, prefilled = run.prefill(hidden=watched, whole=watched)
        yield prefilled
        try:
            scores = self.target.first(output, self.text)
            yield from self._write_plain(scores, self._choose(scores))
            asking = None
            while not self.track.stop and not run.is_cancelled():
                asking = asking or self._make_asking()
                rest = asking.rest()
                yield from self._rest(asking, rest) if rest else self._round(asking)
            yield from self._writer.flush()
        except Exception:
            yield from self._writer.flush()  # the text so far is shown, whatever went wrong
            raise
        finally:
            self._close()
        if not run.request.steady and (cost := remembered_cost(run.model)):
            yield CostCurve(cost.curve)
        yield from run.end([self.track])

    def _close(self) -> None:
        """Leave caches that hold the text alone, also when the run ended in the middle of a round."""
        length = max(len(self.run.start_ids) + len(self.track.ids) - 1, 0)
        self.target.crop(length)
        for drafter in self.drafters:
            drafter.close(length)
        self.tally.report(self.run)

    def _round(self, asking: DrafterSelector) -> Iterable[Event]:
        watch = self._watch()
        draft = self._draft(asking)
        if draft is None or self.run.is_cancelled():
            return []
        if not draft.branches:
            rider = self._rider if draft.was_asked else None
            return self._plain_step(asking) if rider is None else self._ridden_step(asking, rider)
        group, plan = draft.group, draft.plan
        tree = merge(self.text.ids[-1], draft.branches, group.drafters)
        watch.lap()
        scores = self.target.score(self.text, tree, self._rider)
        verdict = self._verify(tree, scores[-1])
        watch.lap()
        self._settle(tree, verdict)
        pool = self._rider.told(self.run.model.pieces) if self._rider is not None else None
        found = RoundOutcome(tree, verdict, plan.depth, asking.choice(group, draft.silent), pool)
        shares = target_shares(scores[-1], tree)
        judged = NodeProbabilities(shares, cuts_of(scores, [stage.name for stage in self.target.names], tree, shares))
        watch.lap()
        waiting, step = list(self._writer.flush()), len(self.track.ids)
        events = self._write_path(found, scores)
        written = len(self.track.ids) - step
        watch.lap()
        watch.price()
        first = sum(self.drafters[number].first_seconds for number in group.drafters) * watch.share
        depth, extra = sum(map(_depth, draft.branches)), watch.priced(2) + watch.priced(3)
        asking.learn(group, RoundResult(tree, verdict, depth, watch.priced(0), watch.priced(1), first, extra, written))
        figures = self.tally.add(found, step, watch)
        return [*waiting, round_event(found, written, judged, figures, self.run.model.pieces), *events]

    def _watch(self) -> Stopwatch:
        return Stopwatch(self._clock, self.run.model.shelf is not None)

    def _rest(self, asking: DrafterSelector, steps: int) -> Iterator[Event]:
        """Plain steps in which nobody is asked: what greedy decoding does, and nothing besides."""
        for _ in range(steps):
            yield from self._plain_step(asking)
            if self.track.stop or self.run.is_cancelled():
                return

    def _plain_step(self, asking: DrafterSelector) -> Iterable[Event]:
        """One token as plain decoding writes it."""
        watch = self._watch() if self._plain % _PRICED == 0 else None
        self._plain += 1
        begun = time.perf_counter()
        scores = self.target.step(self.text)
        token = self._choose(scores)
        self.tally.verify_seconds += time.perf_counter() - begun
        if watch is None:
            return self._write_plain(scores, token)
        watch.lap()
        events = list(self._write_plain(scores, token))
        watch.lap()
        watch.price()
        asking.learn_plain(watch.priced(0), watch.priced(1))
        return events

    def _ridden_step(self, asking: DrafterSelector, rider: LookaheadBranch) -> Iterator[Event]:
        """One token; a rider looks ahead in its pass."""
        watch = self._watch()
        scores = self._step_with(rider)
        token = self._choose(scores)
        watch.lap()
        watch.price()
        # A window that brought no draft has cost its rows all the same.
        tree, nothing = merge(self.text.ids[-1], [Branch()]), VerifiedPath([], -1, True)
        asking.learn(asking.order()[0], RoundResult(tree, nothing, 0, 0.0, watch.priced(0)))
        self.tally.verify_seconds += watch.seconds[0]
        return self._write_plain(scores, token)

    def _step_with(self, rider: LookaheadBranch) -> list[torch.Tensor]:
        """Scores behind the text, each [1, V], from a pass in which the rider's rows were read too."""
        scores = self.target.score(self.text, merge(self.text.ids[-1], [Branch()]), rider)
        self.target.settle([])
        return scores

    def _write_plain(self, scores: list[torch.Tensor], chosen: torch.Tensor) -> Iterator[Event]:
        """Append one token [1]; quick steps are read in pairs."""
        step = len(self.track.ids)
        if is_measured(step):
            cache_editing.compact(self.run.forward.cache)
        yield from self._writer.write(step, scores, chosen, None)
        self.text.extend(self.track.ids[step:], chosen)

    def _choose(self, scores: list[torch.Tensor]) -> torch.Tensor:
        """A token [1] from scores [1, V]."""
        self.run.check_scores(scores[-1], scores[0], len(self.track.ids), scores)
        if self.shape.samples:
            return draw(torch.softmax(scores[-1], -1), 1, self.run.generator)[0]
        return scores[-1].argmax(-1)

    def _plan(self, group: DrafterGroup) -> RoundPlan:
        wanted = group.schedule.length()
        if not wanted:
            return _PAUSE
        room = [self.run.stopping.max_new - len(self.track.ids) - 1]
        if self.run.model.context is not None:
            room.append(self.run.model.context - len(self.text))
        room += [self.drafters[number].room(len(self.text)) for number in group.drafters]
        shape = self.shape
        return RoundPlan(
            max(min(wanted, *room), 0), shape.widths, shape.draws, shape.samples, shape.threshold,
            group.schedule.gate, shape.leaves,
        )  # fmt: skip

    def _draft(self, asking: DrafterSelector) -> _RoundDraft | None:
        """What the first group proposes that has a guess; None when the run was cancelled meanwhile."""
        silent: list[int] = []
        for group in asking.order():
            plan, branches = self._plan(group), []
            for number in group.drafters if plan.depth else ():
                branch = self.drafters[number].propose(self.text, plan)
                if branch is None:
                    return None
                branches.append(branch)
            if any(branch.ids for branch in branches):
                return _RoundDraft(group, plan, branches, silent)
            silent += group.drafters if plan.depth else ()
        return _RoundDraft(group, plan, [], silent)

    def _verify(self, tree: DraftTree, scores: torch.Tensor) -> VerifiedPath:
        if not self.shape.samples:
            return walk_greedy(tree, scores.argmax(-1).tolist())
        # A node whose every token is banned has no distribution; reaching it is an error that `_write_path` reports.
        p = torch.softmax(scores, -1).nan_to_num(1.0 / scores.shape[-1])
        return sample_tree(tree, p, self._dice, self.run.generator)

    def _settle(self, tree: DraftTree, verdict: VerifiedPath) -> None:
        accepted = [tree.ids[node] for node in verdict.path]
        self.target.settle(verdict.path)
        for drafter in self.drafters:
            drafter.settle(accepted)

    def _write_path(self, found: RoundOutcome, scores: list[torch.Tensor]) -> list[Event]:
        """Write the accepted tokens and the target's own behind them."""
        tree, verdict = found.tree, found.verdict
        tokens = [*(tree.ids[node] for node in verdict.path), verdict.extra]
        rows = [0, *verdict.path]
        picked = [score[rows] for score in scores]
        self.run.check_scores(picked[-1], picked[0], len(self.track.ids), picked)
        drafted: list[Origin] = ["draft"] * len(verdict.path)
        last: Origin = "bonus" if verdict.is_bonus else "correction"
        chosen = torch.tensor(tokens, device=self.run.device)
        if self.run.kept is not None:
            for place, token in enumerate(tokens):
                self.run.kept.add(len(self.track.ids) + place, StepLogits(picked[0][place : place + 1]), [token])
        readings = read_step(picked, chosen, self.run.request.top_n, self.target.names, self.run.model.pieces)
        seen = self.target.funnel.witnesses()
        told = [with_details(reading, scores, row, seen) for reading, row in zip(readings, rows, strict=True)]
        return self._write(told, chosen, [*drafted, last])

    def _write(self, readings: list[StepStats], chosen: torch.Tensor, origins: list[Origin]) -> list[Event]:
        """Append tokens [n] until the text ends, as they were read."""
        run, events = self.run, list[Event]()
        step = len(self.track.ids)
        if any(map(is_measured, range(step, step + len(origins)))):
            cache_editing.compact(run.forward.cache)
        for reading, origin in zip(readings, origins, strict=True):
            events += run.scribe.write(self.track, reading, self._method, origin=origin)
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
