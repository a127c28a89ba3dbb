"""Replay a step of a finished run under other settings ("What if")."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.decoding.processor_pipeline import build_pipeline
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.score_cache import ScoreCache, StepLogits, check_score_cache
from decodescope.core.decoding.sequences import AppendedToken, build_token_event
from decodescope.core.decoding.step_replayer import StepRng, is_stateful, replay_inputs
from decodescope.core.decoding.step_stats import add_stage_details, compute_step_stats
from decodescope.core.errors import ParameterError, StrategyError
from decodescope.core.events import TokenChosen
from decodescope.core.interpretability.step_query import token_ids
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.parameter import Settings, short_repr
from decodescope.core.plugins.guarded_thread import iterate_guarded
from decodescope.core.plugins.installation import used_plugins
from decodescope.core.request import Request, check_request
from decodescope.core.settings import resolve_settings, unknown_setting_error
from decodescope.core.system.torch_state import isolated
from decodescope.resources.language import tr

_DEFAULT_TOP_N = 10
"""Number of alternatives for a step that was not traced."""


@dataclass(frozen=True, slots=True)
class StepCounterfactual:
    """A step as recorded, and as it would have been; `seconds` and `origin` of both tokens are omitted."""

    before: TokenChosen
    after: TokenChosen
    is_decided: bool
    """Whether `after.id` is the token that would have been chosen. Otherwise it is the recorded token: random decisions
    on drafts cannot be replayed, and untried candidates of contrastive search have no penalty.
    """
    is_kept: bool
    """Whether both sides were computed from exactly the run's own scores; otherwise from a new pass over the text."""


@isolated
def replay_step(
    model: LoadedModel,
    request: Request,
    ids: Sequence[int],
    step: int,
    changes: Settings | None = None,
    *,
    sequence: int = 0,
    scores: ScoreCache | None = None,
) -> StepCounterfactual:
    """Replay step `step` of a run of `request` with `changes`, after the same text.

    `ids`: the tokens of the run's `sequence`-th text, at least up to the step; `changes`: settings of the strategy by
    name, including `stages`; None unsets one. Both sides are computed from the same scores: those stored in `scores`
    (`core.stream(…, scores=)`), otherwise those of one pass over the text (the changed side has its own pass if the
    changes affect the scores entering the funnel: DoLa's layers). Stateful stages (mirostat, guidance, SynthID) replay
    the earlier steps, with the changes applied from the first one. Random numbers are those of the run. Without
    changes, and with stored scores, both sides equal the recorded event. Raises StrategyError for strategies that
    decide several tokens at a time (beams), ParameterError for unknown settings and those that leave no token, and the
    errors of `stream`.
    """
    check_model(model)
    if not isinstance(changes, Mapping | None):
        raise ParameterError(
            tr("changes is {value}, which is not a mapping of settings by name.").format(value=short_repr(changes)),
            tr("Pass them as in {example}.").format(example='{"top_p": 0.5}'),
            "changes",
        )
    changes, step, sequence = to_plain_value(changes), to_plain_value(step), to_plain_value(sequence)
    check_score_cache(scores)
    known = token_ids(model, ids)
    _check_index("step", step, len(known) + 1)
    replay = partial(_replay_both_sides, model, request, known, step, changes or {}, sequence, scores)
    make_iterator = partial(translate_iterator_errors, model, replay)
    (found,) = iterate_guarded(make_iterator) if used_plugins(request, changes or {}) else make_iterator()
    return found


what_if = replay_step
"""The name of `replay_step` in the contract of the public API."""


def _check_index(name: str, value: object, count: int) -> None:
    """Raise ParameterError unless `value` is an index from 0 to `count` − 1."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < count:
        raise ParameterError(
            tr("{name} is {value}; it can be 0 to {last:,}.").format(
                name=name, value=short_repr(value), last=count - 1
            ),
            tr("Use one of these values."),
            name,
        )


def _replay_both_sides(
    model: LoadedModel, request: Request, ids: list[int], step: int, changes: Settings, sequence: int,
    scores: ScoreCache | None,
) -> Iterator[StepCounterfactual]:  # fmt: skip
    check_request(request)
    with model.adapters.using(request.adapters):
        yield _replay_adapted(model, request, ids, step, changes, sequence, scores)


def _replay_adapted(
    model: LoadedModel, request: Request, ids: list[int], step: int, changes: Settings, sequence: int,
    scores: ScoreCache | None,
) -> StepCounterfactual:  # fmt: skip
    strategy, settings = resolve_settings(model, request)
    rows = int(settings.get("num_return_sequences") or 1)
    _check_index("sequence", sequence, rows)
    if unknown := sorted(set(changes) - {*strategy.parameter_names}, key=str):
        raise unknown_setting_error(strategy, str(unknown[0]))
    before, after = (_ReplaySide(model, each) for each in (request, request.with_settings(changes)))
    whole = before.has_stateful_stages or after.has_stateful_stages
    entering, is_kept = _entering_scores(before, ids, step, sequence, scores, whole)
    others = entering
    if not after.replayer.has_same_input(before.replayer):
        others, is_kept = list(replay_inputs(after.replayer, ids, step, all_steps=whole)), False
    dice = before.replayer.replay_rng(rows, sequence)
    for place in range(step):
        dies = (dice.next_step(), dice.same_step()) if dice is not None else (None, None)
        if whole:
            before.trace_scores(entering[place], ids[:place], dies[0])
            after.trace_scores(others[place], ids[:place], dies[1])
    dies = (dice.next_step(), dice.same_step()) if dice is not None else (None, None)
    judged = [before.replay_step(entering[-1], ids[:step], dies[0]), after.replay_step(others[-1], ids[:step], dies[1])]
    return _counterfactual(before, after, judged, ids, step, is_kept)


class _ReplaySide:
    """One side of the comparison: its settings, and how they process a step."""

    def __init__(self, model: LoadedModel, request: Request) -> None:
        alone = request.with_settings({"num_return_sequences": 1})
        strategy, settings = resolve_settings(model, alone)
        self.run = run = DecodingRun(model, alone, strategy, settings, threading.Event())
        _check_replayable(run, tr(strategy.title))
        self.replayer = strategy.make_replayer(run)
        self.replayer.check()
        self._step_rng: StepRng | None = None
        self._funnel = build_pipeline(run.context._replace(rng=self._random_numbers))
        self.has_stateful_stages = is_stateful(self._funnel)

    def _random_numbers(self, rows: int) -> torch.Tensor:
        assert self._step_rng is not None, "what throws dice is refused where none are known"
        return self._step_rng.uniform(rows)

    def trace_scores(self, step_logits: StepLogits, ids: list[int], step_rng: StepRng | None) -> list[torch.Tensor]:
        """Return the scores of one step before the first stage and after each, [1, V]; `ids` are the tokens before
        it.
        """
        self._step_rng = step_rng
        scores = [step_logits.raw] if step_logits.contrasted is None else [step_logits.raw, step_logits.contrasted]
        text = torch.tensor([[*self.run.start_ids, *ids]], device=self.run.model.device)
        return [*scores, *self._funnel.trace(text, scores[-1])[1:]]

    def replay_step(self, step_logits: StepLogits, ids: list[int], step_rng: StepRng | None) -> _ReplayedStep:
        """Replay the requested step."""
        run = self.run
        scores = self.trace_scores(step_logits, ids, step_rng)
        run.check_scores(scores[-1], scores[0], len(ids), scores)
        return _ReplayedStep(scores, step_logits, self.replayer.pick(scores[-1], step_logits, step_rng))

    def token_chosen(self, replayed_step: _ReplayedStep, step: int, token: int, text: str) -> TokenChosen:
        """Build the event of the replayed token."""
        run, scores, again = self.run, replayed_step.scores, self.replayer
        top_n, chosen = run.request.top_n or _DEFAULT_TOP_N, torch.tensor([token], device=run.model.device)
        reading = compute_step_stats(scores, chosen, top_n, again.stage_headings(self._funnel), run.model.pieces)[0]
        reading = again.add_strategy_stats(
            add_stage_details(reading, scores, 0, self._funnel.observers()), scores, replayed_step.entering
        )
        note, choice = AppendedToken(step, token, text, 0.0, None), replayed_step.entering.choice
        return build_token_event(run.model.pieces, 0, note, reading, again.method, choice)


@dataclass(frozen=True, slots=True)
class _ReplayedStep:
    scores: list[torch.Tensor]
    """Scores before the first stage and after each, [1, V]."""
    entering: StepLogits
    picked: int | None
    """None if it cannot be determined."""


def _counterfactual(
    before: _ReplaySide,
    after: _ReplaySide,
    replayed_steps: list[_ReplayedStep],
    ids: list[int],
    step: int,
    is_kept: bool,
) -> StepCounterfactual:
    """Build the events of both sides. If the replay of the original settings does not give the recorded token, the
    comparison decides nothing.
    """
    was, would = replayed_steps
    written = ids[step] if step < len(ids) else was.picked
    is_known = was.picked is not None and was.picked == written
    first = written if written is not None else int(was.scores[-1][0].argmax())
    then = would.picked if is_known and would.picked is not None else first
    stream = before.run.text
    for token in ids[:step]:
        stream.push(token)
    sides = ((before, was, first), (after, would, then))
    tokens = [side.token_chosen(found, step, token, stream.copy().push(token)) for side, found, token in sides]
    return StepCounterfactual(tokens[0], tokens[1], is_known and would.picked is not None, is_kept)


def _entering_scores(
    side: _ReplaySide, ids: list[int], step: int, sequence: int, scores: ScoreCache | None, all_steps: bool
) -> tuple[list[StepLogits], bool]:
    """Return the scores entering the funnel at the step (with `all_steps`, also at every earlier one), and whether they
    are the run's own.
    """
    places = range(step + 1) if all_steps else (step,)
    if scores is not None:
        cached_scores = [scores.get(side.run.start_ids, ids, place, sequence) for place in places]
        found = [entering for entering in cached_scores if entering is not None]
        if len(found) == len(cached_scores):
            return found, True
    return list(replay_inputs(side.replayer, ids, step, all_steps=all_steps)), False


def _check_replayable(run: DecodingRun, title: str) -> None:
    """Raise StrategyError for runs that cannot be replayed."""
    if run.beams > 1:
        raise StrategyError(
            tr(
                "{strategy} compares continuations of several texts at each step, so a single step cannot be replayed."
            ).format(strategy=title),
            tr("Choose a strategy that generates one token at a time."),
        )
    if run.steps_back:
        raise StrategyError(
            tr("The run stepped back to avoid words, so its random numbers and what it had forbidden are unknown."),
            tr("Run again without “Step back to the beginning”."),
        )
    throwing = [stage.name for stage in run.pipeline.stages if stage.processor.uses_rng]
    if throwing and run.strategy.speculates:
        raise StrategyError(
            tr("{setting} draws a random number for every drafted token, and the one drawn here is unknown.").format(
                setting=throwing[0]
            ),
            tr("Run again with this setting, or inspect a run without drafts."),
        )
