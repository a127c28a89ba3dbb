"""Running a request: the stream of its events, or all of them collected."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from core.arguments import check_cancel, check_drafters, check_kind
from core.caches.notices import cache_notices
from core.caches.prefixes.prefix_store import PrefixStore
from core.decoding.prefill import PrefillStoppedError
from core.decoding.run import DecodingRun
from core.decoding.score_cache import KeptScores, check_score_cache
from core.decoding.sequences import FinishedSequence
from core.decoding.speculation.tree_support import supports_drafts
from core.defaults import non_default
from core.error_translation import translate_iterator_errors
from core.events import Event, Finished, Metrics, Prefilled, RunEnd
from core.memory.out_of_memory import with_fallback
from core.models.loaded_model import LoadedModel, check_model
from core.remote import remote_run as elsewhere
from core.remote.remote_model import RemoteModel
from core.request import Request, check_request
from core.settings import resolve_settings
from core.streamers import Streamer, feed_streamer
from core.unused_settings import unused_settings
from resources.language import tr


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run; best sequence first."""

    sequences: list[list[int]]
    """New tokens only: without the prompt, and without what the answer begins with."""
    texts: list[str]
    scores: list[float] | None
    """Beam scores."""
    events: list[Event]
    metrics: Metrics
    reason: RunEnd
    """completed or stopped."""


def stream(
    model: LoadedModel | RemoteModel,
    request: Request,
    cancel: threading.Event | None = None,
    streamer: Streamer | None = None,
    *,
    prefixes: PrefixStore | None = None,
    drafters: Sequence[LoadedModel] | None = None,
    scores: KeptScores | None = None,
) -> Iterator[Event]:
    """Decode `request` with `model`, yielding every event as it happens; the last one is `Finished`.

    `cancel` is looked at before every forward pass. `streamer` is any object with transformers' `put` and `end`.
    `prefixes` is where runs leave the caches they have filled, and find those of prompts that begin alike; `drafters`
    are the draft models, where the request itself holds none. `scores` is where the run leaves what came into its
    funnel, for `what_if`.
    A model on another machine keeps what it has read by itself, and no scores; drafts are its own.
    Raises a DecodescopeError with cause and remedy; what was yielded before stays valid.
    """
    check_request(request)
    _check_stream_arguments(cancel, streamer, prefixes, scores)
    if drafters is not None:
        check_drafters(drafters)
        request = replace(request, drafters=tuple(drafters))
    if isinstance(model, RemoteModel):
        events = elsewhere.stream(model, request, cancel)
    else:
        check_model(model)
        decode = partial(_decode, prefixes=prefixes, kept=scores)
        events = translate_iterator_errors(
            model, partial(with_fallback, model, request, cancel or threading.Event(), decode, prefixes)
        )
    return feed_streamer(streamer, events) if streamer is not None else events


def run(
    model: LoadedModel | RemoteModel,
    request: Request,
    cancel: threading.Event | None = None,
    streamer: Streamer | None = None,
    *,
    prefixes: PrefixStore | None = None,
    drafters: Sequence[LoadedModel] | None = None,
    scores: KeptScores | None = None,
) -> Result:
    """The same, collected. Raises what `stream` raises."""
    events = list(stream(model, request, cancel, streamer, prefixes=prefixes, drafters=drafters, scores=scores))
    last = events[-1]
    assert isinstance(last, Finished)
    return Result(
        sequences=[list(ids) for ids in last.sequences],
        texts=list(last.texts),
        scores=list(last.scores) if last.scores is not None else None,
        events=events,
        metrics=last.metrics,
        reason=last.reason,
    )


def _check_stream_arguments(cancel: object, streamer: object, prefixes: object, scores: object) -> None:
    """Raises ParameterError naming the argument."""
    check_cancel(cancel)
    if streamer is not None:
        check_kind("streamer", streamer, Streamer, tr("Give an object with transformers' put and end, or None."))
    if prefixes is not None:
        check_kind("prefixes", prefixes, PrefixStore, tr("Give a core.PrefixStore, or None."))
    check_score_cache(scores)


def effective_settings(model: LoadedModel, request: Request) -> dict[str, object]:
    """The settings a run of `request` would have that differ from the library's defaults, the model's included."""
    return non_default(resolve_settings(model, request)[1])


def _decode(
    model: LoadedModel, request: Request, cancel: threading.Event, prefixes: PrefixStore | None,
    kept: KeptScores | None,
) -> Iterator[Event]:  # fmt: skip
    strategy, config = resolve_settings(model, request)
    decoding = DecodingRun(model, request, strategy, config, cancel, prefixes)
    decoding.supports_chunked_prefill = supports_drafts
    if kept is not None:
        kept.start_run(decoding.start_ids)
        decoding.score_cache = kept
    yield decoding.build_start_event()
    yield from decoding.inputs.notices
    yield from cache_notices(model, decoding.backend, config, strategy.speculates)
    yield from unused_settings(model, request, strategy, config)
    if decoding.is_cancelled():
        decoding.results = [FinishedSequence((), "")]
    else:
        try:
            yield from _with_cache_plan(decoding, strategy.decode(decoding))
        except PrefillStoppedError:
            decoding.results = [FinishedSequence((), "")]
            decoding.store_partial_prompt()
    written = decoding.results
    scores = tuple(item.score for item in written if item.score is not None)
    yield Finished(
        reason="stopped" if decoding.stopped else "completed",
        sequences=tuple(item.ids for item in written),
        texts=tuple(item.text for item in written),
        metrics=decoding.metrics(),
        scores=scores if scores else None,
        order=tuple(item.number for item in written),
    )


def _with_cache_plan(decoding: DecodingRun, events: Iterator[Event]) -> Iterator[Event]:
    """The strategy's events, and behind `Prefilled` a `CachePlan`, where the model's layers can be told."""
    try:
        for event in events:
            yield event
            if isinstance(event, Prefilled) and (plan := decoding.plan_cache()) is not None:
                yield plan
    finally:
        if isinstance(events, Generator):  # however the run ends, the strategy tidies its caches now
            events.close()
