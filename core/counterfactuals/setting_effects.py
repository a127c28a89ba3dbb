"""Effects of the settings of a finished run: the probability that a stage removed, and the tokens that depend on it.

Everything is computed from scores that the run stored, after the run's own text, without forward passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decodescope.core import processors
from decodescope.core.checks.arguments import check_integer
from decodescope.core.errors import ParameterError, StrategyError
from decodescope.core.events import Event, RunStarted, Stage, TokenChosen
from decodescope.core.events.run import HasEvents
from decodescope.core.explain import words
from decodescope.core.notebook.result_rows import ResultRows
from decodescope.core.parameter import Settings
from decodescope.core.processors.pipeline_stages import stage_label
from decodescope.resources.language import join_sentences, tr, trn

if TYPE_CHECKING:
    import torch

    from decodescope.core.decoding.keyed_noise import FloatArray
    from decodescope.core.decoding.processor_pipeline import ActiveStage
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.decoding.score_cache import ScoreCache, StepLogits
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request

MAX_SHAPLEY_STAGES = 6
"""Number of stages up to which all subsets are computed: 64 pipelines per token."""
_TAIL = 0.025
"""Probability on each side of the interval of differing tokens."""


class SettingEffect(NamedTuple):
    """The effect of one stage, averaged over the steps of a text. None: the data do not determine it."""

    name: str
    label: str
    steps: int
    """Number of tokens."""
    removed: float
    """Probability of the removed tokens in the distribution entering the stage."""
    moved: tuple[float, float]
    """Bounds on the total variation distance of the distributions entering and leaving the stage; equal if exact."""
    distance: float | None
    """Total variation distance of the final distribution with and without the stage, all others unchanged."""
    differing: float | None
    """Expected number of tokens that would differ without the stage, each after the same text and with the same noise:
    the average over all Gumbel noise that explains the token.
    """
    interval: tuple[int, int] | None
    """Interval that contains the number of differing tokens with at least 95 % probability."""
    share: float | None
    """Shapley value: the stage's part of the distance between the model's distribution and the final one."""

    @property
    def changed_nothing(self) -> bool:
        """Whether the stage certainly had no effect."""
        return self.removed == 0 and self.moved == (0.0, 0.0)

    @property
    def sentence(self) -> str:
        """The effect as a sentence or two."""
        if self.changed_nothing:
            return trn("{label} changed nothing in {count:,} token.", "{label} changed nothing in {count:,} tokens.",
                self.steps).format(label=self.label, count=self.steps)  # fmt: skip
        if self.removed:
            first = tr("{label} removed {amount} of the probability on average.")
            first = first.format(label=self.label, amount=words.percent(self.removed))
        elif self.moved[0] == self.moved[1]:
            first = tr("{label} moved {amount} of the probability on average.")
            first = first.format(label=self.label, amount=words.percent(self.moved[0]))
        else:
            first = tr("{label} moved {low} to {high} of the probability on average.")
            first = first.format(label=self.label, low=words.percent(self.moved[0]), high=words.percent(self.moved[1]))
        if self.differing is None or self.interval is None:
            return join_sentences(first, tr("This recording does not determine which tokens would differ without it."))
        if not self.differing:
            return join_sentences(first, tr("Without it, no token would differ."))
        if self.differing < 0.05:
            second = tr("Without it, fewer than 0.1 of {count:,} tokens would differ on average ({low:,} to {high:,}).")
            second = second.format(count=self.steps, low=self.interval[0], high=self.interval[1])
            return join_sentences(first, second)
        second = tr("Without it, about {number:.1f} of {count:,} tokens would differ ({low:,} to {high:,}).")
        low, high = self.interval
        return join_sentences(first, second.format(number=self.differing, count=self.steps, low=low, high=high))


class SettingEffects(ResultRows[SettingEffect]):
    """One row per stage, in the order in which they act; settings with neutral values last."""

    bar = "distance"
    missing: str = ""
    """What could not be computed and why, as a sentence; empty if nothing is missing."""

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        intervals = [one.interval or (None, None) for one in self]
        return {
            "setting": [one.label for one in self], "tokens": [one.steps for one in self],
            "removed": [one.removed for one in self],
            "moved_low": [one.moved[0] for one in self], "moved_high": [one.moved[1] for one in self],
            "distance": [one.distance for one in self], "differing": [one.differing for one in self],
            "differing_low": [low for low, _ in intervals], "differing_high": [high for _, high in intervals],
            "share": [one.share for one in self],
        }  # fmt: skip

    @property
    def sentences(self) -> list[str]:
        """One sentence or two per stage, and what is missing."""
        return [*(one.sentence for one in self), *([self.missing] if self.missing else [])]


def setting_effects(
    run: HasEvents | Iterable[Event],
    scores: ScoreCache | None = None,
    model: LoadedModel | None = None,
    request: Request | None = None,
    *,
    sequence: int = 0,
) -> SettingEffects:
    """Return what each setting did in a run: a `Result`, a captured run, or the events of a recording.

    With the `scores` that the run stored (`decodescope.run(…, scores=)`), its `model` and `request`, all values are
    exact; nothing is read by the model again. Without them, only what the recorded stages contain is known: the removed
    probability exactly, shifts within bounds, and no effect of cuts that removed nothing. Raises ParameterError for a
    run without recorded stages, StrategyError for strategies and stages whose scores are not stored.
    """
    events = list(run) if isinstance(run, Iterable) else list(run.events)
    check_integer("sequence", sequence, 0, 10**6)
    tokens = [event for event in events if isinstance(event, TokenChosen) and event.sequence == sequence]
    if not tokens:
        raise ParameterError(
            tr("The run has no tokens that were chosen one by one in its text number {number}.").format(
                number=sequence + 1
            ),
            tr("Pass a run of sampling or greedy decoding."),
            "run",
        )
    if scores is not None:
        if model is None or request is None:
            raise ParameterError(
                tr("Stored scores need the model and the request of their run."),
                tr("Pass model and request."),
                "scores",
            )
        return _exact_effects(tokens, scores, model, request, sequence)
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    settings = dict(started.settings) if started is not None else {}
    return _recorded_effects(tokens, settings)


# From the stages of a recording


def _recorded_effects(tokens: Sequence[TokenChosen], settings: Settings) -> SettingEffects:
    funnels = [token.funnel for token in tokens]
    if not all(funnels):
        raise ParameterError(
            tr("The run recorded no stages."),
            tr("Run again with top_n of at least 1, or pass the scores of the run."),
            "run",
        )
    names = list(dict.fromkeys(stage.name for funnel in funnels for stage in funnel[1:]))
    rows = [_recorded_effect(name, funnels) for name in names]
    found = SettingEffects([*rows, *_neutral_effects(settings, names, len(tokens))])
    shown = min(len(funnel[0].top) for funnel in funnels)
    if any(row.differing is None for row in rows):
        found.missing = tr(
            "The recording contains {shown:,} of {total:,} probabilities per step, too few to compute the distribution "
            "without a setting. For exact values, run again with scores=decodescope.ScoreCache()."
        ).format(shown=shown, total=max(funnel[0].survivors for funnel in funnels))
    return found


def _recorded_effect(name: str, funnels: Sequence[tuple[Stage, ...]]) -> SettingEffect:
    removed, lows, highs, flips, label = 0.0, 0.0, 0.0, list[float](), name
    for funnel in funnels:
        place = next((n for n, stage in enumerate(funnel) if n and stage.name == name), None)
        if place is None:
            flips.append(0.0)
            continue
        before, stage = funnel[place - 1], funnel[place]
        label = stage_label(stage)
        if stage.kind in ("cut", "ban"):
            gone = 0.0 if stage.survivors == before.survivors else 1.0 - stage.mass
            bounds, is_last = (gone, gone), place == len(funnel) - 1
            flips.append(gone if is_last or not gone else math.nan)
        else:
            gone, bounds = 0.0, _distance_bounds(before.top, stage.top)
            flips.append(math.nan)
        removed, lows, highs = removed + gone, lows + bounds[0], highs + bounds[1]
    steps = len(funnels)
    is_known = not any(map(math.isnan, flips))
    # Without the last cut, the token changes if a removed token wins: its probability does not depend on the choice.
    return SettingEffect(
        name, label, steps, removed / steps, (lows / steps, highs / steps),
        removed / steps if is_known else None, sum(flips) if is_known else None,
        count_interval(flips) if is_known else None, None,
    )  # fmt: skip


def _distance_bounds(before: Sequence[tuple[int, float]], after: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Return bounds on the total variation distance of two distributions of which only the likeliest tokens are
    known.
    """
    first, second = dict(before), dict(after)
    both = first.keys() & second.keys()
    known = sum(abs(first[token] - second[token]) for token in both)
    left, right = (max(0.0, 1.0 - sum(one[token] for token in both)) for one in (first, second))
    return (known + abs(left - right)) / 2, min(1.0, (known + left + right) / 2)


def _neutral_effects(settings: Settings, active: Iterable[str], steps: int) -> list[SettingEffect]:
    """Return the rows of settings whose values switch their stage off."""
    on = set(active)
    return [
        SettingEffect(name, f"{name} {settings[name]}", steps, 0.0, (0.0, 0.0), 0.0, 0.0, (0, 0), 0.0)
        for name in settings
        if name in processors.registry and name not in on and settings[name] is not None
    ]


# From stored scores


@dataclass(slots=True)
class _StageSums:
    """Sums over the steps of a text."""

    removed: float = 0.0
    moved: float = 0.0
    distance: float = 0.0


def _exact_effects(
    tokens: Sequence[TokenChosen], scores: ScoreCache, model: LoadedModel, request: Request, sequence: int
) -> SettingEffects:
    from decodescope.core.decoding.score_cache import check_score_cache
    from decodescope.core.models.loaded_model import check_model
    from decodescope.core.request import check_request
    from decodescope.core.system.torch_state import isolated

    check_model(model)
    check_request(request)
    check_score_cache(scores)
    with model.adapters.using(request.adapters):
        compute = isolated(_compute_effects)
        return compute(tokens, scores, model, request, sequence)


def _compute_effects(
    tokens: Sequence[TokenChosen], scores: ScoreCache, model: LoadedModel, request: Request, sequence: int
) -> SettingEffects:
    from decodescope.core.decoding.keyed_noise import same_choice_probability

    replay = _StageReplay(model, request, sequence)
    names, ids = replay.names, [token.id for token in tokens]
    full, everything = tuple(range(len(names))), range(len(names))
    sums, flips = [_StageSums() for _ in names], [list[float]() for _ in names]
    values: dict[tuple[int, ...], float] = dict.fromkeys(replay.subsets, 0.0)
    for step, entering, found in replay.steps(scores, ids):
        final, own = found[full], found[()]
        if not np.isfinite(final[ids[step]]):
            raise ParameterError(
                tr("The stored scores exclude the token that was written at step {step}.").format(step=step + 1),
                tr("Pass the scores, the model and the request of the same run."),
                "scores",
            )
        for subset, distribution in found.items():
            values[subset] += _distance(own, distribution)
        for place in everything:
            without = found[tuple(one for one in everything if one != place)]
            before, after = entering[place], entering[place + 1]
            sums[place].removed += float(np.exp(before[np.isneginf(after) & ~np.isneginf(before)]).sum())
            sums[place].moved += _distance(before, after)
            sums[place].distance += _distance(final, without)
            flips[place].append(1.0 - same_choice_probability(final, without, ids[step]))
    steps = replay.step_count
    if not steps:
        raise ParameterError(
            tr("No scores of this text are stored."),
            tr("Pass the scores, the model and the request of the same run, or read the text with read_scores."),
            "scores",
        )
    shares = _shapley_values(values, len(names)) if len(names) <= MAX_SHAPLEY_STAGES else [None] * len(names)
    rows = [
        SettingEffect(
            name, replay.labels[place], steps, sums[place].removed / steps, (sums[place].moved / steps,) * 2,
            sums[place].distance / steps, sum(flips[place]), count_interval(flips[place]),
            None if (share := shares[place]) is None else share / steps,
        )
        for place, name in enumerate(names)
    ]  # fmt: skip
    result = SettingEffects([*rows, *_neutral_effects(request.settings, names, steps)])
    notes = []
    if steps < len(tokens):
        notes.append(
            tr("Scores are stored of {stored:,} of {total:,} tokens; the values are about these.").format(
                stored=steps, total=len(tokens)
            )
        )
    if len(names) > MAX_SHAPLEY_STAGES:
        notes.append(
            tr("Shapley values are computed for up to {most} stages, and the run has {count}.").format(
                most=MAX_SHAPLEY_STAGES, count=len(names)
            )
        )
    result.missing = join_sentences(*notes)
    return result


class _StageReplay:
    """Applies subsets of a run's stages to its stored scores."""

    def __init__(self, model: LoadedModel, request: Request, sequence: int) -> None:
        """Prepare the pipelines. Raises StrategyError for runs whose stages cannot be applied again."""
        import threading

        from decodescope.core.decoding.processor_pipeline import build_pipeline
        from decodescope.core.decoding.run import DecodingRun
        from decodescope.core.decoding.step_replayer import is_stateful
        from decodescope.core.settings import resolve_settings

        strategy, settings = resolve_settings(model, request)
        self._rows, self._sequence = int(settings.get("num_return_sequences") or 1), sequence
        self._run = run = DecodingRun(
            model, request.with_settings({"num_return_sequences": 1}), strategy, settings, threading.Event()
        )
        self._samples = bool(settings.get("do_sample"))
        stages = run.pipeline.stages
        _check_repeatable(run, stages, tr(strategy.title))
        self.names = [stage.name for stage in stages]
        self.labels = [stage.heading.label for stage in stages]
        self._replayer = strategy.make_replayer(run)
        self._replayer.check()
        count = len(stages)
        sizes = range(count + 1) if count <= MAX_SHAPLEY_STAGES else (0, count - 1, count)
        self.subsets = [subset for size in sizes for subset in combinations(range(count), size)]
        keeps_state = is_stateful(run.pipeline) or any(stage.processor.needs_every_token for stage in stages)
        self._draws = {n: 0 for n, stage in enumerate(stages) if stage.processor.uses_rng}
        self._numbers: dict[int, torch.Tensor] = {}
        self._place = -1
        context = run.context._replace(rng=self._random_number)
        shared = build_pipeline(context).stages
        self._pipelines = {subset: build_pipeline(context).stages if keeps_state else shared for subset in self.subsets}
        self._shares_prefixes = not keeps_state
        self.step_count = 0
        """Number of steps with stored scores so far."""

    def _random_number(self, rows: int) -> torch.Tensor:
        """Return the random number that the stage used in the run, whichever other stages act."""
        return self._numbers[self._place]

    def steps(
        self, scores: ScoreCache, ids: Sequence[int]
    ) -> Iterator[tuple[int, list[FloatArray], dict[tuple[int, ...], FloatArray]]]:
        """Yield for each step with stored scores: its index, the log-probabilities [V] before the first stage and after
        each, and the final ones of each subset of stages.
        """
        import torch

        run = self._run
        dice = self._replayer.replay_rng(self._rows, self._sequence)
        for step in range(len(ids)):
            rng = dice.next_step() if dice is not None else None
            self._numbers = {place: rng.uniform(1) for place in self._draws} if rng is not None else {}
            stored = scores.get(run.start_ids, ids, step, self._sequence)
            if stored is None:
                continue
            _check_stored(stored)
            self.step_count += 1
            text = torch.tensor([[*run.start_ids, *ids[:step]]], device=run.device)
            raw = run.replace_invalid(stored.raw)
            known: dict[tuple[int, ...], torch.Tensor] = {}
            found = {subset: self._apply(subset, text, raw, known) for subset in self.subsets}
            full = tuple(range(len(self.names)))
            prefixes = [known.get(full[:length]) for length in range(len(full) + 1)]
            entering = [_log_probabilities(raw if one is None else one) for one in prefixes]
            yield step, entering, {subset: self._distribution(one) for subset, one in found.items()}

    def _apply(
        self, subset: tuple[int, ...], text: torch.Tensor, raw: torch.Tensor, known: dict[tuple[int, ...], torch.Tensor]
    ) -> torch.Tensor:
        scores, stages = raw, self._pipelines[subset]
        is_full = len(subset) == len(self.names)
        for length, place in enumerate(subset, 1):
            prefix = subset[:length]
            if self._shares_prefixes and prefix in known:
                scores = known[prefix]
                continue
            self._place = place
            scores = stages[place].process(text, scores)
            if self._shares_prefixes or is_full:
                known[prefix] = scores
        return scores

    def _distribution(self, scores: torch.Tensor) -> FloatArray:
        """Return the log-probabilities [V] of the choice: without sampling, the best token is certain."""
        if self._samples:
            return _log_probabilities(scores)
        found: FloatArray = np.full(scores.shape[-1], -math.inf)
        found[int(scores[0].argmax())] = 0.0
        return found


def _check_repeatable(run: DecodingRun, stages: Sequence[ActiveStage], title: str) -> None:
    if run.beams > 1 or run.strategy.speculates:
        raise StrategyError(
            tr("{strategy} does not choose its tokens one by one, so the effect of a setting is not known.").format(
                strategy=title
            ),
            tr("Use greedy decoding or sampling."),
        )
    if reading := next((stage for stage in stages if stage.processor.reads), None):
        raise StrategyError(
            tr("{stage} reads the model a second time, and those scores are not stored.").format(stage=reading.name),
            tr("Pass the run without scores: the recorded stages give bounds."),
        )


def _check_stored(stored: StepLogits) -> None:
    if stored.contrasted is not None or stored.penalties:
        raise StrategyError(
            tr("The strategy changes scores in its own way, which no stage repeats."),
            tr("Use greedy decoding or sampling."),
        )


def _log_probabilities(scores: torch.Tensor) -> FloatArray:
    import torch

    found: FloatArray = torch.log_softmax(scores[0].double(), -1).cpu().numpy()
    return found


def _distance(first: FloatArray, second: FloatArray) -> float:
    """Return the total variation distance of two distributions from their log-probabilities [V]."""
    if np.array_equal(first, second):
        return 0.0
    return float(np.abs(np.exp(first) - np.exp(second)).sum() / 2)


def _shapley_values(values: Mapping[tuple[int, ...], float], count: int) -> list[float | None]:
    """Return each stage's Shapley value of `values` by subset (Shapley 1953): the mean of what it adds over all orders
    in which the stages can be switched on.
    """
    found = [0.0] * count
    for subset, value in values.items():
        size = len(subset)
        for place in range(count):
            if place in subset:
                rest = tuple(one for one in subset if one != place)
                weight = math.factorial(size - 1) * math.factorial(count - size) / math.factorial(count)
                found[place] += weight * (value - values[rest])
    return list(found)


def count_interval(probabilities: Sequence[float]) -> tuple[int, int]:
    """Return an interval that contains the number of independent events of these probabilities with at least 95 %
    probability.
    """
    counts = np.ones(1)
    for probability in probabilities:
        if probability > 0:
            counts = np.convolve(counts, (1 - probability, probability))
    cumulative = np.cumsum(counts)
    low = int(np.searchsorted(cumulative, _TAIL, side="right"))
    high = int(np.searchsorted(cumulative, 1 - _TAIL - 1e-12, side="left"))
    return low, min(high, len(counts) - 1)
