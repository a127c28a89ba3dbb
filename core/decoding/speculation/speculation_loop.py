"""The speculative decoding loop: draft a tree, score it in one target pass, accept a path, and continue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from decodescope.core.caches.tensors import cache_operations
from decodescope.core.decoding.forward.forward_pass import ForwardOutput
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.score_cache import StepLogits
from decodescope.core.decoding.sequences import is_cache_measured
from decodescope.core.decoding.speculation.drafter_selection import DrafterGroup, DrafterSelector
from decodescope.core.decoding.speculation.drafters.base import Drafter, SpeculationText
from decodescope.core.decoding.speculation.drafters.lookahead_drafter import ExtraRowsDrafter
from decodescope.core.decoding.speculation.round_events import (
    ForcedPositions,
    NodeProbabilities,
    RoundOutcome,
    RoundTotals,
    Stopwatch,
    build_round_event,
    find_banning_stages,
    node_probabilities,
    target_probabilities,
)
from decodescope.core.decoding.speculation.round_plan import RoundPlan, RoundResult
from decodescope.core.decoding.speculation.target_model import TargetModel
from decodescope.core.decoding.speculation.tree import Branch, DraftTree, merge_branches
from decodescope.core.decoding.speculation.tree_passes import pricing_clock, remembered_cost
from decodescope.core.decoding.speculation.verification import (
    AcceptanceRng,
    VerifiedPath,
    verify_greedy,
    verify_sampled,
)
from decodescope.core.decoding.step_stats import (
    DeviceStats,
    StepStats,
    TokenChoice,
    add_stage_details,
    compute_device_stats,
)
from decodescope.core.decoding.tensor_utils import argmax, draw_samples
from decodescope.core.decoding.token_loop import StepEventWriter
from decodescope.core.events import CostCurve, Event, Method, Origin
from decodescope.core.system.gpu import upload

_PAUSE_PLAN = RoundPlan(0)
"""Plan of a round without drafting."""
_TIMING_INTERVAL = 5
"""Time only every Nth plain step, because reading a thread's CPU time is a system call. N is odd because every second
step emits two tokens.
"""


@dataclass(frozen=True, slots=True)
class SpeculationShape:
    """Settings shared by all rounds."""

    is_sampled: bool
    """Whether the verifier samples; else it follows the target's argmax."""
    draws_children: bool
    """Whether children are sampled from the drafter's distribution; else its most likely tokens are taken."""
    widths: tuple[int, ...] = ()
    allows_leaves: bool = False
    threshold: float = 0.0


@dataclass(frozen=True, slots=True)
class _RoundDraft:
    """A round's proposals; without any, a plain step follows."""

    group: DrafterGroup
    plan: RoundPlan
    branches: list[Branch]
    without_proposal: list[int]
    """Drafters that were tried before and proposed nothing."""

    @property
    def was_attempted(self) -> bool:
        """Whether any drafter was tried; none is during a pause."""
        return bool(self.branches or self.without_proposal)


class Speculation:
    """A run with drafters. Its caches contain exactly the text (without its last token) whenever it yields."""

    def __init__(
        self,
        run: DecodingRun,
        target: TargetModel,
        drafters: Sequence[Drafter],
        make_selector: Callable[[], DrafterSelector],
        shape: SpeculationShape,
    ) -> None:
        """Prepare the run; `make_selector` is called after prefill and returns the drafter selector."""
        self.run, self.target, self.drafters, self.shape = run, target, drafters, shape
        self._make_selector = make_selector
        self.text = SpeculationText(run.start_ids, run.device)
        self.sequence = run.writer.new_sequence(0)
        self.totals = RoundTotals()
        self._extra_rows_drafter = next(
            (drafter for drafter in drafters if isinstance(drafter, ExtraRowsDrafter)), None
        )
        self._plain_steps = 0
        """Number of plain steps so far."""
        self._acceptance_rng = AcceptanceRng(run.generator)
        self._clock = pricing_clock(run.device)
        self._method: Method = "sampled" if shape.is_sampled else "greedy"
        self._writer = StepEventWriter(run, [self.sequence], target.headings, self._method, target.pipeline.observers)

    def decode(self) -> Iterator[Event]:
        """Yield all events from prefill to the end of the text."""
        run = self.run
        watched = self.target.passes.hidden_states is not None
        output, prefilled = run.prefill(hidden=watched, is_whole=watched)
        yield prefilled
        try:
            yield from self._writer.write_all(self._steps(output))
        finally:
            self._finish_caches()
        if not run.request.steady and (cost := remembered_cost(run.model)):
            yield CostCurve(cost.curve)
        yield from run.finish([self.sequence])

    def _steps(self, output: ForwardOutput) -> Iterator[Event]:
        """Decode from the output of the prompt to the end of the text."""
        scores = self.target.score_prompt(output, self.text)
        yield from self._write_plain(scores, self._choose_token(scores))
        selector = None
        while not self.sequence.stop and not self.run.is_cancelled():
            selector = selector or self._make_selector()
            rest = selector.take_pause()
            yield from self._plain_steps_of_pause(selector, rest) if rest else self._round(selector)

    def _finish_caches(self) -> None:
        """Cut the caches to the text, even if the run ended in the middle of a round."""
        length = max(len(self.run.start_ids) + len(self.sequence.ids) - 1, 0)
        self.target.crop(length)
        for drafter in self.drafters:
            drafter.finish(length)
        self.totals.write_to_run(self.run)

    def _round(self, selector: DrafterSelector) -> Iterable[Event]:
        watch = self._start_stopwatch()
        draft = self._draft(selector)
        if draft is None or self.run.is_cancelled():
            return []
        if not draft.branches:
            rider = self._extra_rows_drafter if draft.was_attempted else None
            return self._plain_step(selector) if rider is None else self._step_with_extra_rows(selector, rider)
        group, plan = draft.group, draft.plan
        tree = merge_branches(self.text.ids[-1], draft.branches, group.drafters)
        watch.lap()
        scores = self.target.score_tree(self.text, tree, self._extra_rows_drafter)
        verdict, stats = self._verify(tree, scores)
        watch.lap()
        self._commit(tree, verdict)
        pool = (
            self._extra_rows_drafter.ngram_pool(self.run.model.pieces) if self._extra_rows_drafter is not None else None
        )
        found = RoundOutcome(tree, verdict, plan.depth, selector.explain_choice(group, draft.without_proposal), pool)
        shares = target_probabilities(scores[-1], tree) if stats is None else [1.0, *stats.extra]
        judged = NodeProbabilities(
            shares, find_banning_stages(scores, [stage.name for stage in self.target.headings], tree, shares)
        )
        watch.lap()
        waiting, step = list(self._writer.flush()), len(self.sequence.ids)
        events = self._write_path(found, scores, stats)
        written = len(self.sequence.ids) - step
        watch.lap()
        watch.finish()
        first = sum(self.drafters[number].first_token_seconds for number in group.drafters) * watch.clock_ratio
        depth, extra = sum(map(_branch_depth, draft.branches)), watch.lap_cost(2) + watch.lap_cost(3)
        selector.update(
            group, RoundResult(tree, verdict, depth, watch.lap_cost(0), watch.lap_cost(1), first, extra, written)
        )
        figures = self.totals.add(found, step, watch, self._forced_positions(step, tree, verdict))
        return [*waiting, build_round_event(found, written, judged, figures, self.run.model.pieces), *events]

    def _forced_positions(self, step: int, tree: DraftTree, verdict: VerifiedPath) -> ForcedPositions:
        """Return how many of a round's positions were written by force: drafts are not measured by them. `step`: tokens
        written before the round.
        """
        run, written = self.run, self.sequence.ids[:step]
        if not run.forcing_stages:
            return ForcedPositions()
        accepted = [tree.ids[node] for node in verdict.path]
        flags = [run.is_forced([*written, *accepted[:count]]) for count in range(len(accepted) + 1)]
        return ForcedPositions(sum(flags[:-1]), sum(flags[:-1]) + (flags[-1] and not verdict.is_bonus))

    def _start_stopwatch(self) -> Stopwatch:
        return Stopwatch(self._clock, self.run.model.disk_offload is not None)

    def _plain_steps_of_pause(self, selector: DrafterSelector, steps: int) -> Iterator[Event]:
        """Decode plain steps without drafting, exactly as greedy decoding does."""
        for _ in range(steps):
            yield from self._plain_step(selector)
            if self.sequence.stop or self.run.is_cancelled():
                return

    def _plain_step(self, selector: DrafterSelector) -> Iterable[Event]:
        """Decode one token without drafting."""
        watch = self._start_stopwatch() if self._plain_steps % _TIMING_INTERVAL == 0 else None
        self._plain_steps += 1
        begun = time.perf_counter()
        scores = self.target.score_step(self.text)
        choice = self._choose_token(scores)
        self.totals.verify_seconds += time.perf_counter() - begun
        if watch is None:
            return self._write_plain(scores, choice)
        watch.lap()
        events = list(self._write_plain(scores, choice))
        watch.lap()
        watch.finish()
        selector.update_plain(watch.lap_cost(0), watch.lap_cost(1))
        return events

    def _step_with_extra_rows(self, selector: DrafterSelector, extra_rows_drafter: ExtraRowsDrafter) -> Iterator[Event]:
        """Decode one token with a lookahead branch in the same pass."""
        watch = self._start_stopwatch()
        scores = self._score_with_extra_rows(extra_rows_drafter)
        choice = self._choose_token(scores)
        watch.lap()
        watch.finish()
        # Rows of a window cost time even if they bring no draft.
        tree, nothing = merge_branches(self.text.ids[-1], [Branch()]), VerifiedPath([], -1, True)
        selector.update(selector.ranked_groups()[0], RoundResult(tree, nothing, 0, 0.0, watch.lap_cost(0)))
        self.totals.verify_seconds += watch.seconds[0]
        return self._write_plain(scores, choice)

    def _score_with_extra_rows(self, extra_rows_drafter: ExtraRowsDrafter) -> list[torch.Tensor]:
        """Return the scores after the text, each [1, V], from a pass that includes the lookahead rows."""
        scores = self.target.score_tree(self.text, merge_branches(self.text.ids[-1], [Branch()]), extra_rows_drafter)
        self.target.commit([])
        return scores

    def _write_plain(self, scores: list[torch.Tensor], choice: TokenChoice) -> Iterator[Event]:
        """Append one token [1]; the statistics of fast steps are computed in pairs."""
        step = len(self.sequence.ids)
        if self.run.counters.check_overdue() or is_cache_measured(step):
            cache_operations.compact(self.run.forward.cache, keep_spare=True)
        yield from self._writer.write(step, scores, choice)
        self.text.extend(self.sequence.ids[step:], choice.tokens)

    def _choose_token(self, scores: list[torch.Tensor]) -> TokenChoice:
        """Choose a token from scores [1, V]."""
        step = len(self.sequence.ids)
        self.run.check_before_choice(scores, step)
        if self.shape.is_sampled:
            chosen = draw_samples(torch.softmax(scores[-1], -1), 1, self.run.generator)[0]
        else:
            chosen = argmax(scores[-1])
        return self.run.read_choice(scores, chosen, step)

    def _plan(self, group: DrafterGroup) -> RoundPlan:
        target_length = group.schedule.length()
        if not target_length:
            return _PAUSE_PLAN
        room = [self.run.stopping.max_new - len(self.sequence.ids) - 1]
        if self.run.model.context is not None:
            room.append(self.run.model.context - len(self.text))
        room += [self.drafters[number].max_length(len(self.text)) for number in group.drafters]
        shape = self.shape
        return RoundPlan(
            max(min(target_length, *room), 0), shape.widths, shape.draws_children, shape.is_sampled, shape.threshold,
            group.schedule.gate, shape.allows_leaves,
        )  # fmt: skip

    def _draft(self, selector: DrafterSelector) -> _RoundDraft | None:
        """Return the proposals of the first group that has any; None if the run was cancelled meanwhile."""
        silent: list[int] = []
        for group in selector.ranked_groups():
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

    def _verify(self, tree: DraftTree, scores: list[torch.Tensor]) -> tuple[VerifiedPath, DeviceStats | None]:
        """Return the accepted path. For greedy decoding on a GPU, also the statistics of the best token after every
        node, with the probabilities of the nodes: the token after an accepted node is always the best one.
        """
        final = scores[-1]
        if self.shape.is_sampled:
            # A node whose tokens are all banned has no distribution; `_write_path` reports an error if it is reached.
            p = torch.softmax(final, -1).nan_to_num(1.0 / final.shape[-1])
            return verify_sampled(tree, p, self._acceptance_rng, self.run.generator), None
        best = final.argmax(-1)
        if self.run.device.type == "cpu":  # statistics of rejected nodes cost more there than a second transfer
            return verify_greedy(tree, best.tolist()), None
        probabilities = node_probabilities(final, tree) if len(tree) > 1 else None
        stats = compute_device_stats(scores, best, self.run.request.top_n, probabilities)
        return verify_greedy(tree, stats.tokens), stats

    def _commit(self, tree: DraftTree, verdict: VerifiedPath) -> None:
        accepted = [tree.ids[node] for node in verdict.path]
        self.target.commit(verdict.path)
        for drafter in self.drafters:
            drafter.commit(accepted)

    def _write_path(self, outcome: RoundOutcome, scores: list[torch.Tensor], stats: DeviceStats | None) -> list[Event]:
        """Emit the accepted tokens and the target's own token after them. `stats`: those of all nodes, if known."""
        tree, verdict, run = outcome.tree, outcome.verified, self.run
        tokens = [*(tree.ids[node] for node in verdict.path), verdict.extra_token]
        rows, chosen = [0, *verdict.path], upload(tokens, run.device)
        places = upload(rows, run.device)
        picked = [score.index_select(0, places) for score in scores]
        drafted: list[Origin] = ["draft"] * len(verdict.path)
        last: Origin = "bonus" if verdict.is_bonus else "correction"
        readings = self._path_stats(picked, chosen, stats.select(rows) if stats is not None else None)
        if run.score_cache is not None:
            for place, token in enumerate(tokens):
                run.score_cache.add(len(self.sequence.ids) + place, StepLogits(picked[0][place : place + 1]), [token])
        seen = self.target.pipeline.observers()
        detailed = [add_stage_details(reading, scores, row, seen) for reading, row in zip(readings, rows, strict=True)]
        return self._write(detailed, chosen, [*drafted, last])

    def _path_stats(
        self, picked: list[torch.Tensor], chosen: torch.Tensor, stats: DeviceStats | None
    ) -> list[StepStats]:
        """Return the statistics of accepted tokens [n], from their scores [n, V] unless they are known. Raises the
        errors of `check_scores`.
        """
        step = len(self.sequence.ids)
        if stats is None:
            self.run.check_before_choice(picked, step)
            choice = self.run.read_choice(picked, chosen, step)
        else:
            self.run.check_scores(picked[-1], picked[0], step, picked, stats.maxima)
            choice = TokenChoice(chosen, stats)
        return self.run.step_stats(picked, choice, self.target.headings)

    def _write(self, readings: list[StepStats], chosen: torch.Tensor, origins: list[Origin]) -> list[Event]:
        """Append tokens [n] until the text ends."""
        run, events = self.run, list[Event]()
        step = len(self.sequence.ids)
        if run.counters.check_overdue() or any(map(is_cache_measured, range(step, step + len(origins)))):
            cache_operations.compact(run.forward.cache, keep_spare=True)
        for reading, origin in zip(readings, origins, strict=True):
            events += run.writer.append_and_emit(self.sequence, reading, self._method, origin=origin)
            events += run.finish_step(len(self.sequence.ids) - 1)
            if self.sequence.stop:
                break
        self.text.extend(self.sequence.ids[step:], chosen)
        return events


def _branch_depth(branch: Branch) -> int:
    """Return the number of draft passes of a branch: its depth."""
    depths = [0]
    for parent in branch.parents:
        depths.append(depths[parent] + 1)
    return max(depths)
