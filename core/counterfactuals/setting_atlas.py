"""All texts that one seed gives while one setting takes every value of an interval.

With noise keyed by position and token, a text is a function of the setting, and constant on intervals. At every step
the choice is solved for all values at once (`score_bounds`); the interval branches where it changes. Texts with a
common beginning share its forward passes.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import torch

from decodescope.core import caches
from decodescope.core.caches.base import CacheOperation
from decodescope.core.checks.arguments import (
    argument_error,
    cancel_event_or_new,
    check_integer,
    check_kind,
    check_number,
    check_progress,
)
from decodescope.core.counterfactuals.score_bounds import CUT_RULES, FollowingStage, ScoreFamily, Segment, solve_step
from decodescope.core.counterfactuals.varied_settings import BIAS, PROBES, checked_limits, varied_processor, with_value
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.keyed_noise import FloatArray, KeyedNoise, token_keys
from decodescope.core.decoding.processor_pipeline import ActiveStage
from decodescope.core.decoding.prompt import encode_continuation
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.stopping import StopReason, StopTail
from decodescope.core.decoding.token_loop import KeyedPicker, TextKeyedPicker
from decodescope.core.errors import CacheError, StrategyError
from decodescope.core.events import Ending
from decodescope.core.interpretability.step_query import token_ids
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.models.text import TextStream
from decodescope.core.notebook.result_rows import ResultRows, table_html
from decodescope.core.plugins.guarded_thread import iterate_guarded
from decodescope.core.plugins.installation import used_plugins
from decodescope.core.request import Request, check_request
from decodescope.core.settings import resolve_settings
from decodescope.core.strategies.parameters import KEYED_NOISE, MAX_TIME
from decodescope.resources.language import tr

_GUIDANCE_PROBE, _BIAS_PROBE = 2.0, 1.0
_DEFAULT_PASSES = 2_000


class AtlasInterval(NamedTuple):
    """The text for low < value ≤ high."""

    low: float
    high: float
    text: str
    ids: tuple[int, ...]
    """New tokens."""
    difference: int | None
    """Index of the first token that differs from the text of the previous interval; None for the first interval."""
    log_probability: float
    """Of the text under the model itself, without settings, in nats."""
    ending: Ending | Literal["unfinished"]
    """Why the text ends; `unfinished`: the limit of work or a stop came first, and texts of this interval may differ
    from here on.
    """


class AtlasProgress(NamedTuple):
    """The progress of an atlas."""

    passes: int
    """Forward passes so far."""
    texts: int
    """Finished texts."""
    open_texts: int
    """Beginnings that are not finished."""
    covered: float
    """Fraction of the interval with finished texts."""


class SettingAtlas(ResultRows[AtlasInterval]):
    """The intervals of a setting in ascending order, without gaps, each with its text."""

    setting: str
    word: tuple[int, ...]
    """For `bias`: the tokens of the word."""
    request: Request
    passes: int
    """Forward passes; a run of each text would have needed `passes_of_runs`."""
    is_complete: bool
    """False if the limit of work was reached, or it was stopped."""

    @property
    def low(self) -> float:
        """Lower end, not included."""
        return self[0].low

    @property
    def high(self) -> float:
        """Upper end, included."""
        return self[-1].high

    @property
    def passes_of_runs(self) -> int:
        """Forward passes of one run per text."""
        return sum(map(len, {interval.ids for interval in self}))

    def at(self, value: float) -> AtlasInterval:
        """Return the interval of a value. Raises ParameterError outside the atlas."""
        check_number("value", value, self.low, self.high)
        return next(interval for interval in self if value <= interval.high)

    def request_at(self, value: float) -> Request:
        """Return the request whose run writes the text of a value."""
        check_number("value", value, self.low, self.high)
        return with_value(self.request, self.setting, self.word, value)

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        return {
            "low": [one.low for one in self], "high": [one.high for one in self], "text": [one.text for one in self],
            "tokens": [len(one.ids) for one in self], "difference": [one.difference for one in self],
            "log_probability": [one.log_probability for one in self], "ending": [one.ending for one in self],
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return table_html(self.columns())

    def __repr__(self) -> str:
        texts = len({one.ids for one in self})
        state = "" if self.is_complete else ", unfinished"
        return f"<{type(self).__name__}: {self.setting} {self.low:g} to {self.high:g}, {texts:,} texts{state}>"


def map_setting(
    model: LoadedModel,
    request: Request,
    setting: str = "temperature",
    low: float | None = None,
    high: float | None = None,
    *,
    word: str | Sequence[int] | None = None,
    max_passes: int = _DEFAULT_PASSES,
    progress: Callable[[AtlasProgress], object] | None = None,
    cancel: threading.Event | None = None,
) -> SettingAtlas:
    """Return the texts that sampling with the request's seed gives for low < `setting` ≤ high.

    `setting`: `temperature`, `guidance_scale`, a cut (`top_k`, `top_p`, `min_p`, `typical_p`, `epsilon_cutoff`,
    `eta_cutoff`, `top_n_sigma`), or `bias`, the amount added to the score of `word` (text or token ids; for several
    tokens, of the last one after the others). `low` and `high` default to the range of the setting. The texts are those
    of runs with keyed noise (`keyed_noise`), all other settings unchanged; the request need not turn sampling on.
    `max_passes` limits the forward passes; `progress` is called after each, and `cancel` checked before. What is then
    unfinished is marked as such, and the intervals still have no gaps.

    Boundaries are exact up to the rounding of a run's float32 scores. Raises StrategyError for strategies other than
    sampling and for stages whose effect on all values of the setting is unknown or depends on earlier draws (mirostat,
    SynthID), CacheError for caches that cannot be copied, ParameterError, and the errors of `stream`.
    """
    check_integer("max_passes", max_passes, 1, 10**9)
    check_progress(progress)
    return _explore(
        model, request, setting, (low, high), word, cancel, lambda explorer: explorer.explore(max_passes, progress)
    )


class FlipSegment(NamedTuple):
    """The token chosen for low < value ≤ high."""

    low: float
    high: float
    id: int
    text: str


class TokenFlips(NamedTuple):
    """A token of a text, and what is chosen in its place at other values of a setting."""

    position: int
    id: int
    text: str
    segments: tuple[FlipSegment, ...]
    """Without gaps, in ascending order."""

    def at(self, value: float) -> FlipSegment:
        """Return the segment of a value; the nearest one outside the range."""
        return next((one for one in self.segments if value <= one.high), self.segments[-1])

    def flips_at(self, value: float) -> bool:
        """Return whether another token is chosen at a value."""
        return self.at(value).id != self.id


class FlipMap(ResultRows[TokenFlips]):
    """The tokens of a text, each with the values of a setting at which the same noise chooses it after the same text.

    An atlas follows the texts that a change leads to; here the text stays, so that each flip was caused by the setting
    alone.
    """

    setting: str
    low: float
    """Lower end of the range, not included."""
    high: float
    is_complete: bool
    """False if it was stopped before the last token."""

    def flips_at(self, value: float) -> list[int]:
        """Return the indices of the tokens that flip at a value."""
        return [number for number, token in enumerate(self) if token.flips_at(value)]

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name: a row per segment."""
        rows = [(token, one) for token in self for one in token.segments]
        return {
            "position": [token.position for token, _ in rows], "token": [token.text for token, _ in rows],
            "low": [one.low for _, one in rows], "high": [one.high for _, one in rows],
            "chosen": [one.text for _, one in rows], "flips": [one.id != token.id for token, one in rows],
        }  # fmt: skip


def map_flips(
    model: LoadedModel,
    request: Request,
    ids: Sequence[int],
    setting: str = "temperature",
    low: float | None = None,
    high: float | None = None,
    *,
    word: str | Sequence[int] | None = None,
    realign: bool = False,
    progress: Callable[[int], object] | None = None,
    cancel: threading.Event | None = None,
) -> FlipMap:
    """Return for each token of the text `ids` at which values of a setting the request's noise chooses it, or another.

    The settings, ranges and errors are those of `map_setting`. `ids` are the new tokens of a text, usually of a run
    with keyed noise, which at its own value flips nowhere. With `realign`, the noise is that of `twin(realign=True)`:
    keyed by the text's own last words. One forward pass per token; `progress` is called with the number of tokens after
    each, and `cancel` checked before.
    """
    check_model(model)
    check_progress(progress)
    check_kind("realign", realign, bool, tr("Pass True or False."))
    given = token_ids(model, ids)
    return _explore(
        model, request, setting, (low, high), word, cancel, lambda explorer: explorer.follow(given, progress, realign)
    )


Found = TypeVar("Found")


def _explore(
    model: LoadedModel, request: Request, setting: str, limits: tuple[float | None, float | None],
    word: str | Sequence[int] | None, cancel: threading.Event | None, explore: Callable[[_AtlasExplorer], Found],
) -> Found:  # fmt: skip
    """Return the result of `explore`, with the errors of a run."""
    check_model(model)
    check_request(request)
    cancel = cancel_event_or_new(cancel)

    def find() -> Iterator[Found]:
        with model.adapters.using(request.adapters):
            sampling = check_sampling(model, request)
            tokens = _word_ids(model, setting, word)
            explorer = _AtlasExplorer(model, sampling, setting, tokens, limits, cancel)
            try:
                yield explore(explorer)
            finally:
                explorer.run.forward.release_storages()

    make_iterator = partial(translate_iterator_errors, model, find)
    (found,) = iterate_guarded(make_iterator, cancel) if used_plugins(request) else make_iterator()
    return found


def check_sampling(model: LoadedModel, request: Request) -> Request:
    """Return the request with sampling and keyed noise for one text. Raises StrategyError for other strategies and for
    a time limit.
    """
    sampling = request.with_settings({"do_sample": True, "num_return_sequences": 1})
    strategy, settings = resolve_settings(model, sampling)
    if KEYED_NOISE.name not in strategy.parameter_names:
        raise StrategyError(
            tr("{strategy} does not choose each token by one random draw, so the same noise cannot be used.").format(
                strategy=tr(strategy.title)
            ),
            tr("Use plain sampling: one beam, no drafts, no contrast."),
        )
    if settings.get(MAX_TIME.name):
        raise StrategyError(
            tr("A time limit ends texts at different tokens each time."), tr("Limit the number of new tokens instead.")
        )
    return sampling.with_settings({KEYED_NOISE.name: True})


def check_no_step_back(run: DecodingRun) -> None:
    """Raise StrategyError for words to avoid, as noise that is keyed by the text cannot be withdrawn with them."""
    if run.steps_back:
        raise StrategyError(
            tr("Words to avoid are withdrawn after they were written, so the noise cannot follow the text."),
            tr("Remove the words to avoid, or keep the noise by position."),
        )


def _word_ids(model: LoadedModel, setting: str, word: object) -> tuple[int, ...]:
    if setting != BIAS:
        if word is not None:
            raise argument_error("word", word, tr("Only the setting {name} has a word.").format(name=BIAS))
        return ()
    ids = encode_continuation(model, (), word) if word is not None else []
    if not ids:
        raise argument_error("word", word, tr("Pass the word whose score is raised, with the space before it."))
    return tuple(ids)


class _ModelReader:
    """A text that the model has read, and for guidance the same text after the negative prompt."""

    def __init__(self, run: DecodingRun, guided: bool) -> None:
        self._device, self._run, self.forward = run.device, run, run.forward
        self._guide: Forward | None = None
        if guided:
            length = run.cache_capacity + 1
            self._guide = Forward(run.model, caches.registry[_GUIDE_CACHE].build(run.model, length, {}))

    def start(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Read the prompt; return the logits [1, V] after it, and those without the prompt."""
        output, _ = self._run.prefill()
        negative = self._run.context.negative_ids
        if negative is None:
            negative = torch.tensor([self._run.start_ids[-1:]], device=self._device)
        return output.last, self._guide(negative).last if self._guide is not None else None

    def feed(self, token: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Read a token; return the logits [1, V] after it."""
        ids = torch.tensor([[token]], device=self._device)
        return self.forward(ids).last, self._guide(ids).last if self._guide is not None else None

    def fork(self) -> _ModelReader:
        """Return an independent reader of the same text."""
        twin = copy(self)
        twin.forward = self.forward.fork()
        twin._guide = self._guide.fork() if self._guide is not None else None
        return twin


_GUIDE_CACHE = "dynamic"
_COPY: frozenset[CacheOperation] = frozenset({"copy"})


@dataclass(slots=True)
class _SharedReader:
    """A reader from which several branches continue."""

    reader: _ModelReader
    users: int

    def take(self) -> _ModelReader:
        """Return a reader for one of the branches; the last one takes the reader itself."""
        self.users -= 1
        return self.reader.fork() if self.users else self.reader


@dataclass(slots=True)
class _TextBranch:
    """A text and the values for which it is written."""

    domain: list[tuple[float, float]]
    stream: TextStream
    tail: StopTail
    ids: tuple[int, ...] = ()
    text: str = ""
    log_probability: float = 0.0
    shared: _SharedReader | None = None
    """Has read all tokens but the last one."""
    stop: StopReason | None = None

    @property
    def width(self) -> float:
        """Total width of its intervals."""
        return sum(high - low for low, high in self.domain)


@dataclass(slots=True)
class _Texts:
    """Finished texts, and branches to continue, the widest first."""

    finished: list[_TextBranch] = field(default_factory=list)
    waiting: list[tuple[float, int, _TextBranch]] = field(default_factory=list)
    covered: float = 0.0
    _numbers: Iterator[int] = field(default_factory=count)

    def add(self, branch: _TextBranch) -> None:
        """Add a branch."""
        if branch.stop is None:
            heapq.heappush(self.waiting, (-branch.width, next(self._numbers), branch))
        else:
            self.finished.append(branch)
            self.covered += branch.width

    def next(self) -> _TextBranch:
        """Remove and return the branch with the widest intervals."""
        return heapq.heappop(self.waiting)[-1]


class _AtlasExplorer:
    """Follows all texts of one request."""

    def __init__(
        self, model: LoadedModel, request: Request, setting: str, word: tuple[int, ...],
        limits: tuple[float | None, float | None], cancel: threading.Event,
    ) -> None:  # fmt: skip
        self._model, self._request, self._setting, self._word = model, request, setting, word
        self._varied = varied_processor(setting)
        self._is_whole = self._varied.score_rule == "count"
        self._low, self._high = checked_limits(self._varied, setting, limits, model.vocabulary)
        probe = with_value(request, setting, word, self._probe())
        strategy, settings = resolve_settings(model, probe)
        self.run = run = DecodingRun(model, probe, strategy, settings, cancel)
        if reason := run.backend.unsupported_reason(model, _COPY, request.cache_options):
            raise CacheError(
                tr("The texts cannot branch: {reason}").format(reason=reason), tr("Choose another cache or model.")
            )
        self._picker = KeyedPicker(run, [request.seed])
        run.rng = self._picker.uniform
        self._noise = KeyedNoise(request.seed, token_keys(model))
        stages = run.pipeline.stages
        place = next(n for n, stage in enumerate(stages) if stage.processor is self._varied)
        self._guidance = next((stage for stage in stages if stage.processor.reads), None)
        self._before = [stage for stage in stages[:place] if stage is not self._guidance]
        self._own, self._after = stages[place], stages[place + 1 :]
        self._check_stages()

    def _probe(self) -> float:
        if self._setting == BIAS:
            return _BIAS_PROBE
        return _GUIDANCE_PROBE if self._varied.reads else PROBES[self._varied.score_rule]

    def _check_stages(self) -> None:
        """Raise StrategyError for stages that cannot be followed."""
        for stage in self._before:
            one = stage.processor
            if one.needs_every_token or (one.reorder_rows is not None and one.progress is None):
                raise self._stage_error(stage, tr("it depends on how the tokens before were drawn"))
        divides, has_cut = self._varied.score_rule == "division", self._varied.score_rule in CUT_RULES
        for stage in self._after:
            rule = stage.processor.score_rule
            if not rule:
                raise self._stage_error(stage, tr("what it does for all values of the setting is not known"))
            if rule == "token" and (divides or has_cut) and stage.heading.kind != "ban":
                raise self._stage_error(stage, tr("it changes scores after they were divided or cut"))
            has_cut = has_cut or rule in CUT_RULES

    def _stage_error(self, stage: ActiveStage, reason: str) -> StrategyError:
        return StrategyError(
            tr("{stage} prevents following all values of {setting}: {reason}.").format(
                stage=stage.name, setting=self._setting, reason=reason
            ),
            tr("Turn off {stage}, or change the order of the stages.").format(stage=stage.name),
        )

    def explore(self, max_passes: int, progress: Callable[[AtlasProgress], object] | None) -> SettingAtlas:
        """Follow the texts until all are finished, or up to a limit."""
        run, texts, passes = self.run, _Texts(), 0
        texts.add(_TextBranch([(self._low, self._high)], run.text.copy(), run.stopping.tail))
        total = self._high - self._low
        while texts.waiting and passes < max_passes and not run.is_cancelled():
            branch: _TextBranch | None = texts.next()
            reader = branch.shared.take() if branch and branch.shared else _ModelReader(run, self._guidance is not None)
            while branch is not None:
                logits = reader.feed(branch.ids[-1]) if branch.ids else reader.start()
                passes += 1
                going_on = list[_TextBranch]()
                for child in self._children(branch, *logits):
                    if child.stop is None:
                        going_on.append(child)
                    else:
                        texts.add(child)
                if progress is not None:
                    open_texts = len(texts.waiting) + len(going_on)
                    progress(AtlasProgress(passes, len(texts.finished), open_texts, texts.covered / total))
                going_on.sort(key=lambda one: one.width)
                branch = going_on.pop() if going_on and passes < max_passes and not run.is_cancelled() else None
                shared = _SharedReader(reader.fork(), len(going_on)) if going_on and branch is not None else None
                for child in going_on:
                    child.shared = shared
                    texts.add(child)
        return self._atlas(texts, passes)

    def follow(self, ids: Sequence[int], progress: Callable[[int], object] | None, realign: bool) -> FlipMap:
        """Find the choices at each token of one text. `realign`: with noise that is keyed by the text before it."""
        if realign:
            check_no_step_back(self.run)
            self._picker = TextKeyedPicker(self.run, self._request.seed)
            self.run.rng = self._picker.uniform
        reader, rows = _ModelReader(self.run, self._guidance is not None), list[TokenFlips]()
        pieces = self._model.pieces
        for step, token in enumerate(ids):
            if self.run.is_cancelled():
                break
            logits = reader.feed(ids[step - 1]) if step else reader.start()
            _, parts = self._choices(tuple(ids[:step]), [(self._low, self._high)], *logits)
            segments = tuple(FlipSegment(part.low, part.high, part.token, pieces[part.token]) for part in parts)
            rows.append(TokenFlips(step, token, pieces[token], segments))
            if isinstance(self._picker, TextKeyedPicker):
                self._picker.add(token)
            if progress is not None:
                progress(len(rows))
        found = FlipMap(rows)
        found.setting, found.low, found.high = self._setting, self._low, self._high
        found.is_complete = len(rows) == len(ids)
        return found

    def _choices(
        self, ids: tuple[int, ...], domain: Sequence[tuple[float, float]], logits: torch.Tensor,
        guide: torch.Tensor | None,
    ) -> tuple[torch.Tensor, list[Segment]]:  # fmt: skip
        """Return the model's scores [1, V] after the new tokens `ids`, and the choice for all values."""
        run, step = self.run, len(ids)
        raw = run.replace_invalid(logits)
        run.check_scores(raw, raw, step)
        noise, position = self._noise, self._picker.first_position + step
        if isinstance(self._picker, TextKeyedPicker):
            noise, position = self._picker.step_noise, 0
        else:
            self._picker.move_to(position)
        text = torch.tensor([[*run.start_ids, *ids]], device=run.device)
        family = self._family(text, raw, guide)
        if not np.isfinite(family.intercepts).any():
            run.check_scores(torch.from_numpy(family.intercepts)[None], raw, step)
        following, drawn = self._following(text), noise.gumbel(position)
        return raw, [part for low, high in domain for part in self._solve(family, following, drawn, low, high)]

    def _children(self, branch: _TextBranch, logits: torch.Tensor, guide: torch.Tensor | None) -> list[_TextBranch]:
        """Return the texts with one more token, each with its values."""
        raw, parts = self._choices(branch.ids, branch.domain, logits, guide)
        domains: dict[int, list[tuple[float, float]]] = {}
        for part in parts:
            domains.setdefault(part.token, []).append((part.low, part.high))
        shares = torch.log_softmax(raw[0].double(), -1)
        return [self._child(branch, token, domain, float(shares[token])) for token, domain in domains.items()]

    def _solve(
        self, family: ScoreFamily, following: list[FollowingStage], noise: FloatArray, low: float, high: float
    ) -> list[Segment]:
        if self.run.is_cancelled():
            return [Segment(low, high, int(noise.argmax()))]  # the branch is dropped
        return solve_step(family, following, noise, low, high, self._is_whole)

    def _child(
        self, branch: _TextBranch, token: int, domain: list[tuple[float, float]], log_probability: float
    ) -> _TextBranch:
        run, stream = self.run, branch.stream.copy()
        ids, text = (*branch.ids, token), branch.text + stream.push(token)
        stop, tail = run.stopping.natural_end(token, branch.tail)
        stop = run.apply_grammar(stop or run.stopping.reached_limit(len(ids)), ids)
        if stop is not None:
            text += stream.flush()
        return _TextBranch(domain, stream, tail, ids, text, branch.log_probability + log_probability, None, stop)

    def _family(self, text: torch.Tensor, raw: torch.Tensor, guide: torch.Tensor | None) -> ScoreFamily:
        """Return the scores as a function of the setting; `text` [1, T] are all tokens."""
        scores = raw
        if self._guidance is not None and guide is not None:
            own, other = torch.log_softmax(raw, -1), torch.log_softmax(guide, -1)
            if self._guidance is self._own:
                first, second = _to_numpy(other), _to_numpy(own)
                return ScoreFamily(first, second - first)
            scale = self._guidance.heading.value
            assert scale is not None
            scores = scale * (own - other) + other
        for stage in self._before:
            scores = stage.process(text, scores)
        if self._setting != BIAS:
            constant = _to_numpy(scores)
            return ScoreFamily(constant, np.zeros_like(constant), self._varied.score_rule == "division")
        constant = _to_numpy(self._own.process(text, scores))
        slopes, before = np.zeros_like(constant), self._word[:-1]
        if text.shape[1] >= len(before) and text[0, text.shape[1] - len(before) :].tolist() == list(before):
            constant[self._word[-1]] -= _BIAS_PROBE
            slopes[self._word[-1]] = 1.0
        return ScoreFamily(constant, slopes)

    def _following(self, text: torch.Tensor) -> list[FollowingStage]:
        """Return the stages that act on scores that depend on the setting."""
        found = [FollowingStage(self._own.name, self._varied.score_rule, None)] if self._is_cut else []
        for stage in self._after:
            process = partial(_process_numpy, stage, text) if stage.processor.score_rule == "token" else None
            found.append(FollowingStage(stage.name, stage.processor.score_rule, stage.heading.value, process))
        return found

    @property
    def _is_cut(self) -> bool:
        return self._varied.score_rule in CUT_RULES

    def _atlas(self, texts: _Texts, passes: int) -> SettingAtlas:
        branches = [*texts.finished, *(branch for _, _, branch in texts.waiting)]
        parts = sorted((low, high, number) for number, one in enumerate(branches) for low, high in one.domain)
        rows: list[AtlasInterval] = []
        for low, high, number in parts:
            branch = branches[number]
            if rows and rows[-1].ids == branch.ids:
                rows[-1] = rows[-1]._replace(high=high)
                continue
            difference = first_difference(rows[-1].ids, branch.ids) if rows else None
            ending = branch.stop.reason if branch.stop is not None else "unfinished"
            rows.append(AtlasInterval(low, high, branch.text, branch.ids, difference, branch.log_probability, ending))
        found = SettingAtlas(rows)
        found.setting, found.word, found.request = self._setting, self._word, self._request
        found.passes, found.is_complete = passes, not texts.waiting
        return found


def first_difference(first: Sequence[int], second: Sequence[int]) -> int | None:
    """Return the index of the first token that differs; the length of the shorter text if it begins the other one, and
    None for equal texts.
    """
    if list(first) == list(second):
        return None
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(second)))


def _to_numpy(scores: torch.Tensor) -> FloatArray:
    found: FloatArray = scores[0].double().cpu().numpy().copy()
    return found


def _process_numpy(stage: ActiveStage, text: torch.Tensor, scores: FloatArray) -> FloatArray:
    given = torch.from_numpy(np.ascontiguousarray(scores))[None].to(text.device)
    return _to_numpy(stage.process(text, given))
