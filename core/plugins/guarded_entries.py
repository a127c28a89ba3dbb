"""Check what plug-ins return: each entry of a plug-in is wrapped so that wrong values are named with file and line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from decodescope.core.caches.base import CacheBackend, CacheOperation
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.errors import DecodescopeError, PluginError, UnpredictableError
from decodescope.core.measures.base import Measure, MeasuredText
from decodescope.core.parameter import short_repr
from decodescope.core.plugins.guarded_thread import call_guarded
from decodescope.core.processors.base import Processor
from decodescope.core.strategies.base import Strategy, never, no_draft_sources, sequence_rows
from decodescope.core.system.plugin_code import PluginLocation, describe, make_plugin_error
from decodescope.resources.language import tr

if TYPE_CHECKING:
    import torch
    from transformers import GenerationConfig
    from transformers.cache_utils import Cache

    from decodescope.core.caches.measurement import CacheEstimate, RunShape
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.decoding.speculation.drafters.base import Drafter, DrafterKind, SpeculationText
    from decodescope.core.decoding.speculation.round_plan import RoundPlan
    from decodescope.core.decoding.speculation.tree import Branch
    from decodescope.core.events import Event
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.parameter import Settings
    from decodescope.core.processors.base import Context, StageObserver
    from decodescope.core.request import Request

R = TypeVar("R")
MEASURE_SECONDS = 1.0
"""Seconds that a measure may take: the window waits for it."""
_MAX_IDLE_EVENTS = 10_000
"""Consecutive events without a new token, after which a strategy counts as endless."""


def location_of(function: object, fallback: PluginLocation) -> PluginLocation:
    """Return the first line of a function or of an object's `__call__`; `fallback` if it is not in the plug-in."""
    code = getattr(function, "__code__", None) or getattr(vars(type(function)).get("__call__"), "__code__", None)
    if code is None or code.co_filename != fallback.path:
        return fallback
    return fallback._replace(line=code.co_firstlineno)


def _safely(function: Callable[..., R], fallback: R) -> Callable[..., R]:
    """Return `function` with `fallback` in place of exceptions; for callbacks outside a run."""

    def call(*given: object) -> R:
        try:
            return function(*given)
        except Exception:
            return fallback

    return call


class _CheckedTransform:
    """A plug-in's function on scores. It gets copies, and its result is checked."""

    def __init__(self, process: Callable[..., object], location: PluginLocation) -> None:
        self.process, self._location = process, location_of(process, location)

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        found = self.process(ids.clone(), scores.clone())
        if problem := scores_problem(found, scores):
            raise make_plugin_error(self._location, problem)
        import torch  # a run is in progress

        assert isinstance(found, torch.Tensor)
        return found.to(scores.dtype)


def scores_problem(found: object, scores: torch.Tensor) -> str:
    """Return why `found` cannot replace the scores [B, V]; empty if it can."""
    import torch

    if found is None:
        return tr("it returned None instead of the scores")
    if not isinstance(found, torch.Tensor):
        return tr("it returned {kind} instead of a tensor").format(kind=type(found).__name__)
    if found.shape != scores.shape:
        return tr("it returned scores of shape {got} instead of {wanted}").format(
            got=list(found.shape), wanted=list(scores.shape)
        )
    if not found.is_floating_point():
        return tr("it returned scores of type {kind}").format(kind=str(found.dtype).removeprefix("torch."))
    if found.device != scores.device:
        return tr("it returned scores on {device}, but the model is on {own}").format(
            device=found.device, own=scores.device
        )
    largest = found.amax(-1)
    if bool(torch.isnan(found).any()):
        return tr("it returned NaN")
    if bool((largest == math.inf).any()):
        return tr("it returned infinite scores")
    if bool(((largest == -math.inf) & (scores.amax(-1) != -math.inf)).any()):
        return tr("it removed every token")
    return ""


def guard_processor(entry: Processor, location: PluginLocation) -> Processor:
    """Return the processor with checked scores."""

    def make(value: object, context: Context) -> _CheckedTransform:
        process: object = entry.make(value, context)
        if not callable(process):
            problem = tr("make returned {kind} instead of a function").format(kind=type(process).__name__)
            raise make_plugin_error(location_of(entry.make, location), problem)
        return _CheckedTransform(process, location)

    def observe(checked: _CheckedTransform) -> StageObserver:
        assert entry.observe is not None
        return entry.observe(checked.process)

    def reorder_rows(checked: _CheckedTransform, rows: torch.Tensor) -> None:
        assert entry.reorder_rows is not None
        entry.reorder_rows(checked.process, rows)

    return dataclasses.replace(
        entry,
        make=make,
        is_on=_safely(entry.is_on, False),
        observe=observe if entry.observe else None,
        reorder_rows=reorder_rows if entry.reorder_rows else None,
        progress=None,
        make_detector=None,
        end="",
        aliases=(),
    )


def guard_strategy(entry: Strategy, location: PluginLocation) -> Strategy:
    """Return the strategy with checked events; it is used only by requests that name it."""

    def decode(run: DecodingRun) -> Iterator[Event]:
        idle, tokens = 0, 0
        limit, events = run.stopping.max_new * max(run.sequences, 1), entry.decode(run)
        try:
            for event in events:
                problem, is_token = _event_problem(event, run.model.vocabulary)
                tokens, idle = tokens + is_token, 0 if is_token else idle + 1
                if not problem and tokens > limit:
                    problem = tr("it wrote more than the {count:,} tokens of the request").format(count=limit)
                if not problem and idle > _MAX_IDLE_EVENTS:
                    problem = tr("it does not end")
                if problem:
                    raise make_plugin_error(location_of(entry.decode, location), problem)
                yield event
        finally:
            if isinstance(events, Generator):  # else the traceback of an error would keep it open
                events.close()

    def rejection_reason(model: LoadedModel, request: Request | None) -> str | None:
        assert entry.rejection_reason is not None
        try:
            reason = entry.rejection_reason(model, request)
        except Exception as error:
            return make_plugin_error(location_of(entry.rejection_reason, location), describe(error)).cause
        return reason and str(reason)

    def rows(config: GenerationConfig, vocabulary: int) -> int:
        return _safely(entry.rows, sequence_rows(config, vocabulary))(config, vocabulary)

    missing = GenerateEquivalent(missing=tr("it does not have the strategy of the plug-in."))
    return dataclasses.replace(
        entry,
        decode=decode,
        aliases=(),
        selects=never,
        rejection_reason=rejection_reason if entry.rejection_reason else None,
        generate_equivalent=lambda request: missing,
        drafts_from=no_draft_sources if entry.drafts_from is no_draft_sources else _safely(entry.drafts_from, ()),
        rows=rows,
        is_compared_by_default=False,
    )


def _event_problem(event: object, vocabulary: int) -> tuple[str, bool]:
    """Return why a value is not an event of a run (empty if it is), and whether it is a new token."""
    from decodescope.core.events import (
        EVENTS,
        MAX_METHOD_LENGTH,
        Finished,
        RunStarted,
        TokenChosen,
        is_method_name,
    )

    if not isinstance(event, EVENTS) or isinstance(event, RunStarted | Finished):
        return tr("it yielded {kind} instead of an event").format(kind=type(event).__name__), False
    if not isinstance(event, TokenChosen):
        return "", False
    if not 0 <= event.id < vocabulary:
        return tr("it chose the unknown token id {id}").format(id=str(event.id)[:20]), True
    if not is_method_name(event.method):
        problem = tr("the picker's method is {value}, which is not a name of at most {count} characters")
        return problem.format(value=short_repr(event.method), count=MAX_METHOD_LENGTH), True
    return "", True


def guard_cache(entry: CacheBackend, location: PluginLocation) -> CacheBackend:
    """Return the backend with a checked cache."""

    def build(model: LoadedModel, length: int, options: Settings) -> Cache | None:
        from transformers.cache_utils import Cache

        found: object = entry.build(model, length, options)
        if found is not None and not isinstance(found, Cache):
            problem = tr("build returned {kind} instead of a transformers Cache").format(kind=type(found).__name__)
            raise make_plugin_error(location_of(entry.build, location), problem)
        return found

    def describe_size(model: LoadedModel, run: RunShape) -> CacheEstimate:
        from decodescope.core.caches.measurement import CacheEstimate

        try:
            found: object = entry.describe(model, run)
        except DecodescopeError:
            raise
        except Exception as error:
            blamed = make_plugin_error(location_of(entry.describe, location), describe(error))
            raise UnpredictableError(blamed.cause, blamed.remedy) from error
        if not isinstance(found, CacheEstimate):
            raise UnpredictableError(tr("The plug-in does not describe the size of its cache."))
        return found

    def rejection_reason(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
        assert entry.rejection_reason is not None
        return _safely(entry.rejection_reason, None)(model, needs, options)

    missing = GenerateEquivalent(missing=tr("it does not have the cache of the plug-in."))
    return dataclasses.replace(
        entry,
        build=build,
        describe=describe_size,
        rejection_reason=rejection_reason if entry.rejection_reason else None,
        generate_equivalent=lambda options, needs, device: missing,
        variants=(),
        rescue=None,
        aliases=(),
    )


class _CheckedDrafter:
    """A plug-in's drafter; its proposals are checked."""

    def __init__(self, drafter: Drafter, vocabulary: int, location: PluginLocation) -> None:
        self._drafter, self._vocabulary, self._location = drafter, vocabulary, location
        self.name, self.parameter_count = drafter.name, drafter.parameter_count
        self.first_token_seconds = 0.0

    def max_length(self, length: int) -> int:
        return int(self._drafter.max_length(length))

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        from decodescope.core.decoding.speculation.tree import Branch

        branch: object = self._drafter.propose(text, plan)
        if branch is None:
            return None
        self.first_token_seconds = float(self._drafter.first_token_seconds)
        at = location_of(type(self._drafter).propose, self._location)
        if not isinstance(branch, Branch):
            raise make_plugin_error(
                at, tr("propose returned {kind} instead of a Branch").format(kind=type(branch).__name__)
            )
        for token in branch.ids:
            if not 0 <= token < self._vocabulary:
                raise make_plugin_error(at, tr("it proposed the unknown token id {id}").format(id=str(token)[:20]))
        return branch

    def commit(self, accepted: Sequence[int]) -> None:
        self._drafter.commit(accepted)

    def finish(self, length: int) -> None:
        self._drafter.finish(length)


def guard_drafter(entry: DrafterKind, location: PluginLocation) -> DrafterKind:
    """Return the drafter with checked proposals."""

    def build(run: DecodingRun, number: int) -> Drafter:
        return _CheckedDrafter(entry.build(run, number), run.model.vocabulary, location)

    return dataclasses.replace(entry, build=build, aliases=())


def guard_measure(entry: Measure, location: PluginLocation) -> Measure:
    """Return the measure with a time limit and a checked value."""

    interrupted: list[PluginError] = []

    def compute(text: MeasuredText) -> float | None:
        if interrupted:  # the window waits for a measure once, not for every text
            raise interrupted[0]
        try:
            value: object = call_guarded(lambda: entry.compute(text), MEASURE_SECONDS)
        except PluginError as error:
            interrupted.append(error)
            raise
        except Exception as error:
            raise make_plugin_error(location_of(entry.compute, location), describe(error)) from error
        item = getattr(value, "item", None)  # of a number of NumPy or torch
        value = item() if callable(item) else value
        if value is None:
            return None
        if not isinstance(value, int | float) or not math.isfinite(value):
            problem = tr("it returned {value} instead of a number").format(value=type(value).__name__)
            raise make_plugin_error(location_of(entry.compute, location), problem)
        return float(value)

    return dataclasses.replace(entry, compute=compute, aliases=())
