"""Check what plug-ins return: each entry of a plug-in is wrapped so that wrong values are named with file and line."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

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
    from transformers.cache_utils import Cache, EncoderDecoderCache

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
        import torch  # a run is in progress

        from decodescope.core.system.torch_state import settings_undone

        with settings_undone():
            found = self.process(ids.clone(), scores.clone())
        if problem := scores_problem(found, scores):
            raise make_plugin_error(self._location, problem)
        assert isinstance(found, torch.Tensor)
        # A copy, because the plug-in may keep the tensor and change or free it later.
        return torch.empty_like(scores, memory_format=torch.contiguous_format).copy_(found.detach())


def scores_problem(found: object, scores: torch.Tensor) -> str:
    """Return why `found` cannot replace the scores [B, V]; empty if it can."""
    import torch

    from decodescope.core.native.tensor_address import unreadable_reason

    if found is None:
        return tr("it returned None instead of the scores")
    if not isinstance(found, torch.Tensor):
        return tr("it returned {kind} instead of a tensor").format(kind=type(found).__name__)
    if reason := unreadable_reason(found):
        return tr("it returned a tensor that cannot be read: {reason}").format(reason=reason)
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
        from decodescope.core.system.torch_state import settings_undone  # a run is in progress

        with settings_undone():
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
        from decodescope.core.system.torch_state import undo_settings_of_steps  # a run is in progress

        idle, tokens = 0, 0
        limit, events = run.stopping.max_new * max(run.sequences, 1), entry.decode(run)
        try:
            for event in undo_settings_of_steps(events):
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


@functools.cache
def _checked_cache_class(kind: Any, location: PluginLocation) -> Any:
    """Derive from a plug-in's class of caches one that checks the keys and values it returns to the model."""

    def update(self: Cache, keys: torch.Tensor, values: torch.Tensor, *args: Any, **kwargs: Any) -> object:
        from decodescope.core.system.torch_state import settings_undone

        with settings_undone():
            found: object = kind.update(self, keys, values, *args, **kwargs)
        for returned, given in zip(found, (keys, values), strict=True) if isinstance(found, tuple) else ():
            if problem := _states_problem(returned, given):
                raise make_plugin_error(location_of(kind.update, location), problem)
        return found

    return type(kind.__name__, (kind,), {"update": update, "__module__": kind.__module__})


def _has_halves(cache: Cache) -> TypeGuard[EncoderDecoderCache]:
    return hasattr(cache, "self_attention_cache")


def _states_problem(found: object, given: torch.Tensor) -> str:
    """Return why `found` cannot be keys or values [B, H, T, D] that include the new ones [B, H, n, D]; empty if it
    can.
    """
    import torch

    from decodescope.core.native.tensor_address import unreadable_reason

    if not isinstance(found, torch.Tensor):
        return tr("its cache returned {kind} instead of a tensor").format(kind=type(found).__name__)
    if reason := unreadable_reason(found):
        return tr("its cache returned a tensor that cannot be read: {reason}").format(reason=reason)
    if found.dim() != given.dim() or found.shape[0] != given.shape[0] or found.shape[-1] != given.shape[-1]:
        return tr("its cache returned states of shape {got} after {wanted}").format(
            got=list(found.shape), wanted=list(given.shape)
        )
    if found.dtype != given.dtype or found.device != given.device:
        return tr("its cache returned states of type {got} on {device}, but the model has {wanted} on {own}").format(
            got=str(found.dtype).removeprefix("torch."), device=found.device,
            wanted=str(given.dtype).removeprefix("torch."), own=given.device,
        )  # fmt: skip
    return ""


def guard_cache(entry: CacheBackend, location: PluginLocation) -> CacheBackend:
    """Return the backend with a checked cache."""

    def build(model: LoadedModel, length: int, options: Settings) -> Cache | None:
        from transformers.cache_utils import Cache

        from decodescope.core.system.torch_state import settings_undone  # a run is in progress

        with settings_undone():
            found: object = entry.build(model, length, options)
        if found is None:
            return None
        if not isinstance(found, Cache):
            problem = tr("build returned {kind} instead of a transformers Cache").format(kind=type(found).__name__)
            raise make_plugin_error(location_of(entry.build, location), problem)
        halves = (found.self_attention_cache, found.cross_attention_cache) if _has_halves(found) else (found,)
        for half in cast("tuple[Any, ...]", halves):
            kind: Any = type(half)
            half.__class__ = _checked_cache_class(kind, location)
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
        from decodescope.core.system.torch_state import settings_undone

        with settings_undone():
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
        if problem := _branch_problem(branch, self._vocabulary):
            raise make_plugin_error(at, problem)
        return branch

    def commit(self, accepted: Sequence[int]) -> None:
        self._drafter.commit(accepted)

    def finish(self, length: int) -> None:
        self._drafter.finish(length)


_MAX_SUM_ERROR = 1e-3
"""How far the sum of a distribution may be from 1."""


def _branch_problem(branch: Branch, vocabulary: int) -> str:
    """Return why a proposal with known tokens cannot be verified; empty if it can."""
    import torch

    from decodescope.core.native.tensor_address import unreadable_reason

    count = len(branch.ids)
    if len(branch.parents) != count or any(not 0 <= one <= place for place, one in enumerate(branch.parents)):
        return tr("a node of its proposal has no parent before it")
    if len(branch.probabilities) != count or any(not 1 <= node <= count for node in branch.trials):
        return tr("its proposal has probabilities or trials of other nodes")
    distributions: dict[int, object] = {**branch.q}
    for parent, shares in distributions.items():
        if shares is None:
            continue
        if not isinstance(shares, torch.Tensor):
            return tr("it returned {kind} instead of a tensor").format(kind=type(shares).__name__)
        if reason := unreadable_reason(shares):
            return tr("it returned a tensor that cannot be read: {reason}").format(reason=reason)
        if shares.shape != (vocabulary,) or not shares.is_floating_point() or not 0 <= parent <= count:
            return tr("its distribution has the shape {got} instead of {wanted}").format(
                got=list(shares.shape), wanted=[vocabulary]
            )
        if not bool((shares >= 0).all()) or abs(float(shares.double().sum()) - 1) > _MAX_SUM_ERROR:
            return tr("its distribution is not one: probabilities are at least 0 and have the sum 1")
    return ""


def guard_drafter(entry: DrafterKind, location: PluginLocation) -> DrafterKind:
    """Return the drafter with checked proposals."""

    def build(run: DecodingRun, number: int) -> Drafter:
        return _CheckedDrafter(entry.build(run, number), run.model.vocabulary, location)

    return dataclasses.replace(entry, build=build, aliases=())


def _measured_value(entry: Measure, text: MeasuredText) -> object:
    """Return what a measure computes, a number of NumPy or torch as Python's."""
    from decodescope.core.native.tensor_address import unreadable_reason
    from decodescope.core.system.torch_state import library_settings, settings_undone

    with library_settings(), settings_undone():
        value: Any = entry.compute(text)
        if hasattr(value, "layout") and (reason := unreadable_reason(value)):
            raise ValueError(tr("it returned a tensor that cannot be read: {reason}").format(reason=reason))
        item = getattr(value, "item", None)
        return item() if callable(item) else value


def guard_measure(entry: Measure, location: PluginLocation) -> Measure:
    """Return the measure with a time limit and a checked value."""

    interrupted: list[PluginError] = []

    def compute(text: MeasuredText) -> float | None:
        if interrupted:  # the window waits for a measure once, not for every text
            raise interrupted[0]
        try:
            value: object = call_guarded(lambda: _measured_value(entry, text), MEASURE_SECONDS)
        except PluginError as error:
            interrupted.append(error)
            raise
        except Exception as error:
            raise make_plugin_error(location_of(entry.compute, location), describe(error)) from error
        if value is None:
            return None
        if not isinstance(value, int | float) or not math.isfinite(value):
            problem = tr("it returned {value} instead of a number").format(value=type(value).__name__)
            raise make_plugin_error(location_of(entry.compute, location), problem)
        return float(value)

    return dataclasses.replace(entry, compute=compute, aliases=())
