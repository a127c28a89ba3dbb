"""Infer which settings wrote a text: the posterior of temperature, top-k, top-p and min-p, from one reading.

For each token, the sets of tokens that the three filters keep are nested in the order of the model's scores. One sum
over that order therefore gives the probability of the written token for all settings of a grid. A small part of each
distribution is the model's own, unfiltered one, so that a single token that no setting explains does not decide alone.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import torch

from decodescope.core.checks.arguments import argument_error, cancel_event_or_new
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.decoding.prompt import encode
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.run_preparation import check_scores
from decodescope.core.decoding.text_scoring import FullTextScores, GivenText, prepare_given_text
from decodescope.core.errors import DecodescopeError, ParameterError, PromptError
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.notebook.result_rows import ResultRows, table_html
from decodescope.core.parameter import Settings, short_repr
from decodescope.core.request import Request
from decodescope.core.settings import resolve_settings
from decodescope.resources.language import join_names, tr

Order = Literal["temperature_first", "temperature_last"]
"""Whether the filters act on probabilities at the temperature (transformers, vLLM) or before it (llama.cpp)."""
ORDERS: tuple[Order, ...] = ("temperature_first", "temperature_last")
EPSILON = 1e-3
"""Part of the model's unfiltered distribution in each token's probability."""
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.05, 3.0
TEMPERATURES = 64
"""Values of the temperature in a grid, at equal distances of the logarithm."""
TOP_K = (2, 3, 5, 8, 10, 15, 20, 30, 40, 50, 64, 80, 100, 150, 200, 300)
TOP_P = (0.99, 0.98, 0.97, 0.95, 0.92, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3)
MIN_P = (0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5)
SETTINGS = ("temperature", "top_k", "top_p", "min_p")
OFF: Mapping[str, float] = {"top_k": 0.0, "top_p": 1.0, "min_p": 0.0}
"""Values of the filters that keep every token. They have half of the prior probability, the others share the rest."""
MASS = 0.9
"""Posterior probability of the reported sets."""
_RIDGE = 0.3
"""Fraction of the temperature's variance that a filter must explain to be called a ridge."""
_MAX_KEPT = 2**26
"""Logits of a text up to this number are kept; a longer text is read again for each pass over the grid."""
_ZOOM = 14.0
"""Temperatures whose log-posterior is this far below the best one are left out of the finer grid."""
_SMOOTHED = 4
"""Cells on each side over which the density of the temperature is averaged."""
_DIP = 0.5
"""A set of temperatures has a gap only where the density is below this fraction of that at its ends."""
_NEARLY_GREEDY = 0.05
"""Probability of a text of first choices down to which a temperature counts as possible."""


class TokenEvidence(NamedTuple):
    """The evidence of one token about the settings. Values for filters hold at the likeliest temperature."""

    position: int
    id: int
    text: str
    rank: int
    """Rank in the model's distribution; a top-k below it would have forbidden the token."""
    probability: float
    """Probability without settings."""
    mass_before: float
    """Probability of the likelier tokens; a top-p up to it would have forbidden the token."""
    ratio: float
    """Probability as a fraction of the likeliest token's; a min-p above it would have forbidden the token."""
    unexplained: float
    """Posterior probability that no setting of the grid explains the token."""


class SettingValue(NamedTuple):
    """A value of a setting with its posterior probability."""

    value: float
    probability: float
    prior: float


class Ridge(NamedTuple):
    """A line of settings that explain the text about equally well."""

    setting: str
    points: tuple[tuple[float, float, float], ...]
    """Value of the setting, best temperature with it, and posterior probability of the value."""
    explained: float
    """Fraction of the variance of the temperature that the setting explains."""


class Reading(NamedTuple):
    """A way to read the prompt, and how well the text follows it."""

    name: str
    log_probability: float
    """Log-probability of the text at the best single temperature, in nats."""


class PosteriorProgress(NamedTuple):
    """The progress of an inference."""

    done: int
    """Tokens of all passes."""
    total: int


class SettingPosterior(ResultRows[TokenEvidence]):
    """The evidence of each token, and the posterior of the settings."""

    bar = "unexplained"
    grids: Mapping[str, tuple[float, ...]]
    """Values of each setting; the temperatures are those of the finer grid."""
    weights: FloatArray
    """Posterior probability of each cell, [temperature, top-k, top-p, min-p]."""
    priors: Mapping[str, tuple[float, ...]]
    edges: tuple[float, ...]
    """Limits of the cells of the temperature: one more than its values."""
    density: tuple[float, ...]
    """Posterior probabilities of the temperatures, smoothed over the steps of the filters' grids."""
    intervals: tuple[tuple[float, float], ...]
    """Highest-density set of the temperature with 90 % of the posterior probability."""
    ridges: tuple[Ridge, ...]
    readings: tuple[Reading, ...]
    """Ways to read the prompt that were compared, the best first."""
    order: Order
    log_evidence: float
    """Log-probability of the text under the whole grid, in nats."""
    greedy_below: float | None
    """For a text of first choices only: it is greedy decoding, top-k 1, or any temperature up to this one."""
    was_retokenized: bool
    """Whether the tokens were made from text, so that the writer may have chosen others."""
    is_complete: bool
    """False if it was stopped: then only the tokens so far are used."""

    @property
    def best(self) -> dict[str, float]:
        """The likeliest cell."""
        place = np.unravel_index(int(self.weights.argmax()), self.weights.shape)
        return {name: self.grids[name][index] for name, index in zip(SETTINGS, place, strict=True)}

    def marginal(self, setting: str) -> list[SettingValue]:
        """Return the values of one setting with their posterior probabilities. Raises ParameterError."""
        axis = _axis(setting)
        sums = self.weights.sum(tuple(other for other in range(4) if other != axis))
        rows = zip(self.grids[setting], sums.tolist(), self.priors[setting], strict=True)
        return [SettingValue(*row) for row in rows]

    def joint(self, first: str, second: str) -> FloatArray:
        """Return the posterior probabilities of two settings, [first, second]. Raises ParameterError."""
        axes = (_axis(first), _axis(second))
        if axes[0] == axes[1]:
            raise argument_error("second", second, tr("Choose two different settings."))
        found: FloatArray = self.weights.sum(tuple(other for other in range(4) if other not in axes))
        return found if axes[0] < axes[1] else found.T

    def credible(self, setting: str) -> list[float]:
        """Return the values of a setting that hold 90 % of its posterior probability, in ascending order."""
        chosen, total = list[float](), 0.0
        for one in sorted(self.marginal(setting), key=lambda one: -one.probability):
            chosen.append(one.value)
            total += one.probability
            if total >= MASS:
                break
        return sorted(chosen)

    def contains_temperature(self, value: float) -> bool:
        """Return whether a temperature lies in the 90 % set."""
        return any(low <= value <= high for low, high in self.intervals)

    def forbidding(self, setting: str, value: float) -> list[TokenEvidence]:
        """Return the tokens that a value of a filter would have forbidden. Top-k 1 is greedy decoding."""
        _axis(setting)
        if setting == "top_k":
            return [one for one in self if value and one.rank > value]
        if setting == "top_p":
            return [one for one in self if value < 1 and one.mass_before >= value]
        return [one for one in self if setting == "min_p" and one.ratio < value]

    @property
    def unexplained(self) -> list[TokenEvidence]:
        """Tokens that no setting of the grid explains."""
        return [one for one in self if one.unexplained > 0.5]

    @property
    def is_greedy(self) -> bool:
        """Whether every token is the model's first choice."""
        return bool(len(self)) and all(one.rank == 1 for one in self)

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        return {name: [getattr(row, name) for row in self] for name in TokenEvidence._fields}

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return table_html(self.columns(), self.bar)

    def __repr__(self) -> str:
        low, high = self.intervals[0][0], self.intervals[-1][1]
        return f"<{type(self).__name__}: temperature {low:.3g} to {high:.3g}, {len(self):,} tokens>"


def infer_settings(
    model: LoadedModel,
    text: object,
    *,
    given: object = None,
    readings: Mapping[str, object] | None = None,
    known: Settings | None = None,
    order: Order = "temperature_first",
    progress: Callable[[PosteriorProgress], object] | None = None,
    cancel: threading.Event | None = None,
) -> SettingPosterior:
    """Return the posterior of the settings with which sampling from `model` wrote a text.

    `text`: a text, or the ids of the written tokens; with an end token, if one was written. `given`: what preceded it
    (text, chat or ids); without it, the text is judged from its second token on. `readings`: several ways to read what
    preceded it, by name; the one after which the text is likeliest is used (`prompt_readings`). `known`: other settings
    that are known, such as `repetition_penalty`; without the ones that were used, the result is wrong. `order`: whether
    the writer divided by the temperature before or after its filters.

    The prior is flat in the logarithm of the temperature between 0.05 and 3, and each filter is off with probability
    one half. Beam search cannot be recognized. Raises ParameterError, PromptError, and the errors of `score`.
    """
    check_model(model)
    text, given, readings = to_plain_value(text), to_plain_value(given), to_plain_value(readings)
    if order not in ORDERS:
        raise argument_error("order", order, tr("Choose one of: {names}.").format(names=join_names(ORDERS)))
    if readings is not None and (not isinstance(readings, Mapping) or not readings or given is not None):
        raise argument_error("readings", readings, tr("Pass prompts by name, and not `given` as well."))
    cancel = cancel_event_or_new(cancel)
    if progress is not None and not callable(progress):
        raise argument_error("progress", progress, tr("Pass a function, or None."))
    choices = {"": given} if readings is None else dict(readings)
    infer = partial(_infer, model, text, choices, dict(known or {}), order, progress, cancel)
    (found,) = translate_iterator_errors(model, infer)
    return found


def prompt_readings(model: LoadedModel, prompt: str) -> dict[str, object]:
    """Return the ways in which `model` may have read a prompt: as text, with or without its start tokens, or as the
    message of a chat.
    """
    ids = encode(model, prompt, unbounded=True)
    found: dict[str, object] = {"text": ids}
    if model.tokenizer is not None:
        plain = list(model.tokenizer(prompt, add_special_tokens=False)["input_ids"])
        if plain and plain != ids:
            found["without start token"] = plain
        try:
            chat = encode(model, [{"role": "user", "content": prompt}], unbounded=True)
        except DecodescopeError:  # the model has no chat template
            return found
        if chat not in found.values():
            found["chat"] = chat
    return found


def _infer(
    model: LoadedModel, text: object, choices: Mapping[str, object], known: Settings, order: Order,
    progress: Callable[[PosteriorProgress], object] | None, cancel: threading.Event,
) -> Iterator[SettingPosterior]:  # fmt: skip
    texts = {name: prepare_given_text(model, text, one) for name, one in choices.items()}
    for one in texts.values():
        if not one.tokens:
            raise PromptError(tr("There are no tokens to judge."), tr("Pass a longer text."))
    readings = _compare_readings(model, texts, cancel) if len(texts) > 1 else ()
    chosen = texts[readings[0].name] if readings else next(iter(texts.values()))
    steps = _Steps(model, chosen, known, cancel)
    found = _PosteriorGrid(model, steps, order, progress, cancel).infer()
    found.readings, found.was_retokenized = readings, isinstance(text, str)
    yield found


def _compare_readings(
    model: LoadedModel, texts: Mapping[str, GivenText], cancel: threading.Event
) -> tuple[Reading, ...]:
    """Return the readings with the log-probabilities of the text, best first."""
    temperatures = torch.tensor(_grid(LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE)[0], dtype=torch.float64)[:, None]
    found = []
    for name, given in texts.items():
        sums = torch.zeros(len(temperatures), dtype=torch.float64)
        for step in _Steps(model, given, {}, cancel).read():
            shares = torch.log_softmax(torch.from_numpy(step.scores)[None] / temperatures, -1)[:, step.token]
            sums += torch.logaddexp(
                math.log1p(-EPSILON) + shares, torch.tensor(math.log(EPSILON) + step.raw, dtype=torch.float64)
            )
        found.append(Reading(name, float(sums.max())))
    return tuple(sorted(found, key=lambda one: -one.log_probability))


class _TokenScores(NamedTuple):
    """The scores before one token of the text."""

    token: int
    scores: FloatArray
    """Scores [V] after the known settings."""
    raw: float
    """Log-probability of the token without settings."""


class _Steps:
    """The scores of a text, which are kept, or computed again for each pass if they are many."""

    def __init__(self, model: LoadedModel, given: GivenText, known: Settings, cancel: threading.Event) -> None:
        """Prepare the known settings. Raises ParameterError for those of sampling, which are inferred."""
        self._model, self._given, self._cancel = model, given, cancel
        self._kept: list[_TokenScores] | None = None
        self._keeps = len(given.tokens) * model.vocabulary <= _MAX_KEPT
        self.tokens, self.count = given.tokens, len(given.tokens)
        self._run: DecodingRun | None = None
        if known:
            self._run = _known_run(model, given, known, cancel)

    def read(self) -> Iterator[_TokenScores]:
        """Yield the steps until the text ends or the user stops."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[_TokenScores] = []
        for step in self._compute():
            if self._keeps:
                kept.append(step)
            yield step
        if self._keeps and len(kept) == self.count:
            self._kept = kept

    def _compute(self) -> Iterator[_TokenScores]:
        text, place = FullTextScores(self._model, self._given), 0
        for rows in text.logits(text.max_chunks(), self._cancel):
            check_scores(self._model, rows, rows, place)
            for row in rows:
                if self._cancel.is_set():
                    return
                token = self._given.tokens[place]
                raw = float(torch.log_softmax(row.double(), -1)[token])
                yield _TokenScores(token, self._processed(row, place).double().cpu().numpy(), raw)
                place += 1

    def _processed(self, row: torch.Tensor, place: int) -> torch.Tensor:
        """Return scores [V] after the known settings."""
        if self._run is None:
            return row
        ids = torch.tensor([[*self._given.start, *self._given.tokens[:place]]], device=row.device)
        return self._run.pipeline(ids, row[None])[0]


def _known_run(model: LoadedModel, given: GivenText, known: Settings, cancel: threading.Event) -> DecodingRun:
    inferred = [name for name in (*SETTINGS, "do_sample") if name in known]
    if inferred:
        raise ParameterError(
            tr("The setting {setting} is inferred.").format(setting=inferred[0]),
            tr("Pass only settings besides temperature, top-k, top-p and min-p."),
            inferred[0],
        )
    length = len(given.tokens)
    request = Request(given.prompt, {**known, "do_sample": False, "max_new_tokens": max(1, length)})
    strategy, settings = resolve_settings(model, request)
    run = DecodingRun(model, request, strategy, settings, cancel)
    for stage in run.pipeline.stages:
        one = stage.processor
        if one.reads or one.uses_rng or one.needs_every_token:
            raise ParameterError(
                tr("With {stage}, a token depends on more than the text before it.").format(stage=stage.name),
                tr("Leave it out; texts written with it cannot be judged."),
                stage.name,
            )
    return run


@dataclass(slots=True)
class _RankedStep:
    """A step with its scores in descending order."""

    scores: FloatArray
    """Differences to the highest score, [n]: 0, then negative; only tokens that can be chosen."""
    own: float
    """Difference of the written token."""
    likelier: int
    """Number of tokens with a higher score."""
    raw: float


def _sort(step: _TokenScores) -> _RankedStep:
    finite = step.scores[np.isfinite(step.scores)]
    ordered = -np.sort(-finite)
    own = float(step.scores[step.token])
    top = ordered[0] if len(ordered) else 0.0
    return _RankedStep(ordered - top, own - top, int((finite > own).sum()), step.raw)


def _grid(low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Return the values and edges of a grid of temperatures, at equal distances of the logarithm."""
    edges = np.exp(np.linspace(math.log(low), math.log(high), TEMPERATURES + 1))
    return np.sqrt(edges[:-1] * edges[1:]), edges


class _PosteriorGrid:
    """Computes the posterior of one text."""

    def __init__(
        self, model: LoadedModel, steps: _Steps, order: Order,
        progress: Callable[[PosteriorProgress], object] | None, cancel: threading.Event,
    ) -> None:  # fmt: skip
        self._model, self._steps, self._order, self._progress, self._cancel = model, steps, order, progress, cancel
        self._top_k = np.array([*[k for k in TOP_K if k < model.vocabulary], 0], dtype=np.int64)
        self._top_p, self._min_p = np.array([*TOP_P, 1.0]), np.array([0.0, *MIN_P])
        self._priors = {
            "top_k": _filter_prior(len(self._top_k), -1), "top_p": _filter_prior(len(self._top_p), -1),
            "min_p": _filter_prior(len(self._min_p), 0),
        }  # fmt: skip
        log_priors = [np.log(self._priors[name]) for name in SETTINGS[1:]]
        self._log_prior = log_priors[0][:, None, None] + log_priors[1][:, None] + log_priors[2]
        self._done, self._is_whole = 0, True

    def infer(self) -> SettingPosterior:
        """Return the posterior: a coarse grid of temperatures, a finer one where the posterior is, then each token."""
        temperatures, edges = _grid(LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE)
        coarse = _log_sum(self._likelihood(temperatures), (1, 2, 3))
        kept = np.flatnonzero(coarse >= coarse.max() - _ZOOM)
        low, high = edges[max(0, kept[0] - 1)], edges[min(len(edges) - 1, kept[-1] + 2)]
        temperatures, edges = _grid(low, high)
        log_weights = self._likelihood(temperatures)
        total = float(_log_sum(log_weights, (0, 1, 2, 3)))
        weights = np.exp(log_weights - total)
        found = SettingPosterior(self._evidence(temperatures, weights))
        found.grids = {
            "temperature": tuple(temperatures.tolist()), "top_k": tuple(self._top_k.astype(float).tolist()),
            "top_p": tuple(self._top_p.tolist()), "min_p": tuple(self._min_p.tolist()),
        }  # fmt: skip
        width = math.log(high / low) / TEMPERATURES / math.log(HIGHEST_TEMPERATURE / LOWEST_TEMPERATURE)
        self._priors["temperature"] = np.full(TEMPERATURES, width)
        found.priors = {name: tuple(self._priors[name].tolist()) for name in SETTINGS}
        found.weights, found.edges, found.order = weights, tuple(edges.tolist()), self._order
        found.log_evidence = total + math.log(width)
        density = _smooth(weights.sum((1, 2, 3)))
        found.density, found.intervals = tuple(density.tolist()), _density_set(density, edges)
        found.ridges = tuple(_ridges(found))
        found.greedy_below = self._greedy_limit() if found.is_greedy else None
        found.is_complete = self._is_whole
        return found

    def _read(self) -> Iterator[_RankedStep]:
        """Yield the steps of one pass over the text."""
        number = 0
        for number, step in enumerate(self._steps.read(), 1):
            if self._progress is not None:
                self._progress(PosteriorProgress(self._done + number, 3 * self._steps.count))
            yield _sort(step)
        self._done += self._steps.count
        self._is_whole = self._is_whole and number == self._steps.count

    def _likelihood(self, temperatures: FloatArray) -> FloatArray:
        """Return the log-posterior [T, K, P, M] of a grid, not normalized."""
        shape = (len(temperatures), *self._log_prior.shape)
        sums = np.broadcast_to(self._log_prior, shape).copy()
        for step in self._read():
            shares = self._probabilities(step, temperatures)
            sums += np.log((1 - EPSILON) * shares + EPSILON * max(math.exp(step.raw), 1e-300))
        return sums

    def _probabilities(self, step: _RankedStep, temperatures: FloatArray) -> FloatArray:
        """Return the probability [T, K, P, M] of the written token with all settings of the grid."""
        scores = step.scores / temperatures[:, None]
        sums = np.cumsum(np.exp(scores), axis=1)
        sizes = (
            self._kept_counts(scores, sums)
            if self._order == "temperature_first"
            else self._kept_counts(step.scores[None], np.cumsum(np.exp(step.scores))[None])
        )
        sizes = np.broadcast_to(sizes, (len(temperatures), *sizes.shape[1:]))
        rows = np.arange(len(temperatures))[:, None, None, None]
        own = np.exp(step.own / temperatures)[:, None, None, None] if math.isfinite(step.own) else 0.0
        found: FloatArray = np.where(step.likelier < sizes, own / sums[rows, sizes - 1], 0.0)
        return found

    def _kept_counts(self, scores: FloatArray, sums: FloatArray) -> np.typing.NDArray[np.int64]:
        """Return the number of tokens that the filters keep, [T, K, P, M], for scores and their sums [T, n]."""
        count = scores.shape[1]
        top_k = np.where(self._top_k == 0, count, np.minimum(self._top_k, count))
        limits = sums[:, top_k - 1][:, :, None] * self._top_p
        rows = range(len(scores))
        before = np.stack([np.searchsorted(sums[row], limits[row], side="left") + 1 for row in rows])
        by_mass = np.minimum(np.where(self._top_p >= 1.0, count, before), top_k[:, None])
        with np.errstate(divide="ignore"):
            thresholds = -np.log(self._min_p)
        by_ratio = np.stack([np.searchsorted(-scores[row], thresholds, side="right") for row in rows])
        found: np.typing.NDArray[np.int64] = np.minimum(by_mass[..., None], by_ratio[:, None, None, :])
        return found

    def _evidence(self, temperatures: FloatArray, weights: FloatArray) -> list[TokenEvidence]:
        best = temperatures[int(weights.sum((1, 2, 3)).argmax())]
        base = best if self._order == "temperature_first" else 1.0
        given = self._steps
        rows: list[TokenEvidence] = []
        texts = self._model.pieces.texts(given.tokens)
        for place, step in enumerate(self._read()):
            shares = self._probabilities(step, temperatures)
            rest = EPSILON * max(math.exp(step.raw), 1e-300)
            unexplained = float((weights * (rest / ((1 - EPSILON) * shares + rest))).sum())
            shapes = np.exp(step.scores / base)
            before = float(shapes[: step.likelier].sum() / shapes.sum())
            ratio = math.exp(step.own / base) if math.isfinite(step.own) else 0.0
            rows.append(
                TokenEvidence(
                    place, given.tokens[place], texts[place], step.likelier + 1, math.exp(step.raw), before, ratio,
                    unexplained,
                )
            )  # fmt: skip
        return rows

    def _greedy_limit(self) -> float:
        """Return the highest temperature at which a text of first choices is not surprising."""
        temperatures, _ = _grid(1e-3, HIGHEST_TEMPERATURE)
        sums = np.zeros(len(temperatures))
        for step in self._steps.read():
            ordered = _sort(step)
            sums -= np.log(np.exp(ordered.scores / temperatures[:, None]).sum(1))
        possible = np.flatnonzero(sums >= math.log(_NEARLY_GREEDY))
        return float(temperatures[possible[-1]]) if len(possible) else 0.0


def _filter_prior(count: int, off: int) -> FloatArray:
    found = np.full(count, 0.5 / (count - 1))
    found[off] = 0.5
    return found


def _axis(setting: object) -> int:
    if setting not in SETTINGS:
        raise ParameterError(
            tr("{value} is not inferred.").format(value=short_repr(setting)),
            tr("Choose one of: {names}.").format(names=join_names(SETTINGS)),
            "setting",
        )
    return SETTINGS.index(setting)


def _log_sum(values: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    top = values.max()
    with np.errstate(divide="ignore"):
        found: FloatArray = np.log(np.exp(values - top).sum(axes)) + top
    return found


def _smooth(density: FloatArray) -> FloatArray:
    """Return a density averaged over neighbouring cells: the steps of the filters' grids make it jagged."""
    offsets = np.arange(-_SMOOTHED, _SMOOTHED + 1)
    shape = np.exp(-0.5 * (offsets / (_SMOOTHED / 2)) ** 2)
    padded = np.pad(density, _SMOOTHED, mode="symmetric")
    sums = np.convolve(padded, shape, mode="valid")
    found: FloatArray = sums / sums.sum()
    return found


def _density_set(density: FloatArray, edges: FloatArray) -> tuple[tuple[float, float], ...]:
    """Return the intervals of the cells of highest density that hold 90 % together; cells have equal widths.

    The intervals on both sides of a shallow dip are joined: the steps of the filters' grids cause such dips, which
    finer grids do not have. The set holds 90 % with the cells of the dips.
    """
    chosen = np.zeros(len(density), dtype=bool)
    runs: list[tuple[int, int]] = []
    for cell in np.argsort(-density):
        chosen[cell] = True
        runs = _join_shallow_dips(_runs(chosen), density, _DIP * float(density[cell]))
        if sum(float(density[first:last].sum()) for first, last in runs) >= MASS:
            break
    return tuple((float(edges[first]), float(edges[last])) for first, last in runs)


def _runs(chosen: np.typing.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first cell and end of each run of chosen cells."""
    borders = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).tolist()
    return list(zip(borders[::2], borders[1::2], strict=True))


def _join_shallow_dips(runs: Iterable[tuple[int, int]], density: FloatArray, limit: float) -> list[tuple[int, int]]:
    """Return the runs, those joined between which no cell is below a density."""
    found: list[tuple[int, int]] = []
    for first, last in runs:
        if found and float(density[found[-1][1] : first].min()) >= limit:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found


def _ridges(posterior: SettingPosterior) -> Iterable[Ridge]:
    """Yield the filters with which the best temperature moves."""
    temperatures = np.log(np.array(posterior.grids["temperature"]))
    own = posterior.weights.sum((1, 2, 3))
    mean = float((own * temperatures).sum())
    variance = float((own * (temperatures - mean) ** 2).sum())
    for setting in SETTINGS[1:]:
        joint = posterior.joint("temperature", setting)
        shares = joint.sum(0)
        means = (joint * temperatures[:, None]).sum(0) / np.maximum(shares, 1e-300)
        explained = float((shares * (means - mean) ** 2).sum() / variance) if variance > 0 else 0.0
        if explained >= _RIDGE:
            rows = zip(posterior.grids[setting], np.exp(means).tolist(), shares.tolist(), strict=True)
            yield Ridge(setting, tuple(row for row in rows if row[2] >= 1e-3), explained)
