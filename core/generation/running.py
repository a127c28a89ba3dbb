"""Run a request: stream its events, or collect them."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch

from decodescope.core.caches.plan import cache_notices
from decodescope.core.caches.prefixes.prefix_store import PrefixStore
from decodescope.core.checks.arguments import check_cancel, check_drafters, check_kind
from decodescope.core.code.script_model import settings_without_effect
from decodescope.core.common.hf_generation import (
    COMMON_FIELDS,
    DEFAULTS,
    METADATA_FIELDS,
    PROCESSOR_FIELDS,
    SPEECH_FIELDS,
    STRATEGY_FIELDS,
    WITHOUT_EFFECT,
    non_default,
)
from decodescope.core.common.run_settings import RunSettings
from decodescope.core.common.text import cut_short
from decodescope.core.decoding.media_inputs import media_inputs
from decodescope.core.decoding.prefill import PrefillStoppedError
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.score_cache import ScoreCache, check_score_cache
from decodescope.core.decoding.sequences import FinishedSequence
from decodescope.core.decoding.speculation.tree_support import supports_drafts
from decodescope.core.errors import AdapterError, ParameterError
from decodescope.core.events import (
    BeamStep,
    Event,
    Finished,
    Metrics,
    Notice,
    Prefilled,
    RunEnd,
    RunStarted,
    TokenChosen,
)
from decodescope.core.explain.call_facts import (
    expected_weights,
    explain_call_facts,
    inexact_facts,
    missing_facts,
)
from decodescope.core.explain.words import size
from decodescope.core.memory.out_of_memory import with_fallback
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.models.weight_samples import hash_weights
from decodescope.core.parameter import short_repr
from decodescope.core.plugins.guarded_thread import iterate_guarded
from decodescope.core.plugins.installation import used_plugins
from decodescope.core.remote import remote_run as elsewhere
from decodescope.core.remote.remote_model import RemoteModel
from decodescope.core.request import Request, captured_facts, check_request
from decodescope.core.setting_titles import title_and_name
from decodescope.core.settings import foreign_settings, resolve_settings
from decodescope.core.system.torch_state import isolated_construction
from decodescope.resources.depth import pick
from decodescope.resources.language import join_names, tr

if TYPE_CHECKING:
    import pandas as pd

    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request
    from decodescope.core.strategies.base import Strategy


@runtime_checkable
class Streamer(Protocol):
    """The streamer protocol of transformers."""

    def put(self, value: torch.Tensor) -> None:
        """Receive token ids: first the prompt [1, T], then [1] each."""

    def end(self) -> None:
        """Finish the stream."""


def feed_streamer(streamer: Streamer, events: Iterator[Event]) -> Iterator[Event]:
    """Pass events through, sending the prompt [1, T] and then every token of the first sequence [1] to `streamer`.

    Strategies that only have their text at the end (beams) send it there. `end` is always called.
    """
    streamed = 0
    try:
        for event in events:
            if isinstance(event, RunStarted):
                streamer.put(_host_ids([[token.id for token in (*event.prompt, *event.beginning)]]))
            elif isinstance(event, TokenChosen) and event.sequence == 0:
                streamed += 1
                streamer.put(_host_ids([event.id]))
            elif isinstance(event, Finished) and not streamed and event.sequences:
                for token in event.sequences[0]:
                    streamer.put(_host_ids([token]))
            yield event
    finally:
        streamer.end()


def _weight_notices(model: LoadedModel) -> Iterator[Notice]:
    """Yield, in the first run of a model, that its weights were unpacked."""
    if not model.unpacked_format or "weights_unpacked" in model.strategy_data:
        return
    model.strategy_data["weights_unpacked"] = True
    message = tr(
        "There is no native code for this computer. So that the model is not slow, its {format} weights were unpacked "
        "to {dtype}, which takes {size} of memory."
    )
    kind = str(model.dtype).removeprefix("torch.")
    yield Notice(
        "weights_unpacked", message.format(format=model.unpacked_format, dtype=kind, size=size(model.weight_bytes))
    )


@isolated_construction
def _host_ids(ids: Sequence[int] | Sequence[Sequence[int]]) -> torch.Tensor:
    """Return ids as a tensor in main memory, whatever the caller's default device is."""
    return torch.tensor(ids, dtype=torch.int64, device="cpu")


def unused_settings(
    model: LoadedModel, request: Request, strategy: Strategy, settings: RunSettings
) -> Iterator[Notice]:
    """Yield a notice for every reason why settings of the request's configuration have no effect.

    `settings` are those of the run. Settings equal to the model's or the library's defaults are omitted: they change
    nothing.
    """
    own = vars(model.generation_config)
    options = {parameter.name for parameter in strategy.parameters if parameter.option}
    given = {
        name: value
        for name, value in request.settings.items()
        if value is not None and (value is not False or name == "use_cache")
        if name not in METADATA_FIELDS and name not in options
        if value != DEFAULTS.get(name) and value != own.get(name)
    }
    foreign = foreign_settings(request, model)
    by_reason: dict[str, list[str]] = {}
    for name in given:
        if name not in foreign and (reason := _unused_reason(name, given[name], model, request, strategy, settings)):
            by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        titled = [title_and_name(name, strategy.name) for name in names]
        yield _notice(tr("No effect here: {names}. {reason}"), titled, reason)
    if names := sorted(foreign & given.keys()):
        yield _notice(tr("Unknown to transformers, no effect: {names}."), names)


def _notice(sentence: str, names: list[str], reason: str = "") -> Notice:
    return Notice("setting_ignored", sentence.format(names=join_names(names), reason=reason))


def _unused_reason(
    name: str, value: object, model: LoadedModel, request: Request, strategy: Strategy, settings: RunSettings
) -> str:
    """Return why the run does not use a setting, as a sentence; empty if it does."""
    title = tr(strategy.title)
    if name in WITHOUT_EFFECT:
        return tr("Reason: {reason}.").format(reason=tr(WITHOUT_EFFECT[name]))
    if name == "token_healing" and (model.is_encoder_decoder or request.media):
        return tr("Token healing only works for text prompts of decoder-only models.")
    if request.strategy and name in strategy.flags and strategy.flags[name] != value:
        return tr("The strategy set in the request takes precedence: {strategy}.").format(strategy=title)
    if (
        request.strategy
        and name in _SELECTING_FIELDS
        and name not in strategy.parameter_names
        and name not in strategy.flags
    ):
        return tr("The strategy set in the request takes precedence: {strategy}.").format(strategy=title)
    if name == "min_length" and settings.get("min_new_tokens") is not None:
        return tr("min_new_tokens takes precedence.")
    if name in settings_without_effect(strategy, settings):
        off = tr("Sampling is off.")
        return pick(off, off, tr("Sampling is off (do_sample)."))
    if name == "num_assistant_tokens_schedule":
        return "" if strategy.speculates else _not_used_sentence(title)
    if name in strategy.parameter_names or name in COMMON_FIELDS or name in PROCESSOR_FIELDS:
        return ""
    if name in SPEECH_FIELDS and media_inputs.has_start_tokens(model):
        return ""
    if name in STRATEGY_FIELDS or name in SPEECH_FIELDS:
        return _not_used_sentence(title)
    return tr("This version of the program does not support it.")


_SELECTING_FIELDS = ("use_mtp", "prompt_lookup_num_tokens", "assistant_early_exit", "force_words_ids", "constraints")
"""Fields that select a strategy if the request does not name one."""


def _not_used_sentence(title: str) -> str:
    return tr("{strategy} does not use it.").format(strategy=title)


def result_repr(result: Result, model: str) -> str:
    """Return a short description of a run: its class, model, length and the beginning of its text."""
    count, texts = sum(map(len, result.sequences)), result.texts
    text = short_repr(texts[0]) if texts else "no text"
    more = f" (1 of {len(texts)} texts)" if len(texts) > 1 else ""
    return f"<{type(result).__name__}: {short_name(model)}, {count:,} tokens, {result.reason}: {text}{more}>"


def short_name(name: str) -> str:
    """Return the name of a model, shortened for a description."""
    return cut_short(name, 60)


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run; best sequence first."""

    sequences: list[list[int]]
    """New tokens only: without the prompt and the given beginning of the answer."""
    texts: list[str]
    scores: list[float] | None
    """Beam scores of the sequences; None without beams."""
    events: list[Event]
    metrics: Metrics
    reason: RunEnd
    """"completed" or "stopped"."""

    def __repr__(self) -> str:
        name = next((event.model for event in self.events if isinstance(event, RunStarted)), "")
        return result_repr(self, name)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per token, or per candidate of a beam search. Raises ParameterError without pandas."""
        from decodescope.core.notebook.tables import events_table

        return events_table(self.events)

    def _repr_html_(self) -> str:
        """Return the interactive page of the run, for notebooks."""
        from decodescope.core.notebook.inline_page import inline_page

        return inline_page(self.events)


def stream(
    model: LoadedModel | RemoteModel,
    request: Request,
    cancel: threading.Event | None = None,
    streamer: Streamer | None = None,
    *,
    prefixes: PrefixStore | None = None,
    drafters: Sequence[LoadedModel] | None = None,
    scores: ScoreCache | None = None,
) -> Iterator[Event]:
    """Decode `request` with `model`, yielding every event as it happens; the last one is `Finished`.

    `cancel` is checked before every forward pass. `streamer` is any object with transformers' `put` and `end`.
    `prefixes` stores the caches of finished runs for prompts with the same beginning; `drafters` are the draft models,
    if the request itself contains none. `scores` stores the scores of each step for `replay_step`.
    A remote model uses its own cache and drafts and stores no scores. Raises a DecodescopeError with cause and remedy;
    events yielded before remain valid.
    """
    check_request(request)
    _check_call_facts(request)
    _check_stream_arguments(cancel, streamer, prefixes, scores)
    if drafters is not None:
        check_drafters(drafters)
        request = replace(request, drafters=tuple(drafters))
    if isinstance(model, RemoteModel):
        if request.adapters:
            raise AdapterError(
                tr("Adapters are not applied to models on another machine."),
                tr("Select a model on this computer, or start the engine with the adapter."),
            )
        events = elsewhere.stream(model, request, cancel)
    else:
        check_model(model)
        decode = partial(_decode, prefixes=prefixes, score_cache=scores)
        cancel = cancel or threading.Event()
        make_events = partial(
            translate_iterator_errors, model, partial(with_fallback, model, request, cancel, decode, prefixes)
        )
        events = iterate_guarded(make_events, cancel) if used_plugins(request) else make_events()
    return feed_streamer(streamer, events) if streamer is not None else events


def _check_call_facts(request: Request) -> None:
    """Raise ParameterError for a captured request that no run can repeat."""
    if missing := missing_facts(captured_facts(request)):
        raise ParameterError(
            tr("The captured call used what a request cannot contain. {facts}").format(
                facts=" ".join(explain_call_facts(missing))
            ),
            tr("Call generate in your own code. To run without them: dataclasses.replace(request, call_facts=())."),
            "call_facts",
        )


def _repetition_notices(model: LoadedModel, request: Request) -> Iterator[Notice]:
    """Yield why the run may not repeat the captured call that its request describes."""
    facts = captured_facts(request)
    reasons = explain_call_facts(inexact_facts(facts))
    expected = expected_weights(facts)
    if expected and expected != hash_weights(model.model):
        reasons.append(tr("The weights in memory are other than those of the captured call."))
    if reasons:
        yield Notice("not_repeatable", tr("The captured call cannot be repeated exactly. {reasons}").format(
            reasons=" ".join(reasons)
        ))  # fmt: skip


def run(
    model: LoadedModel | RemoteModel,
    request: Request,
    cancel: threading.Event | None = None,
    streamer: Streamer | None = None,
    *,
    prefixes: PrefixStore | None = None,
    drafters: Sequence[LoadedModel] | None = None,
    scores: ScoreCache | None = None,
    progress: bool = False,
) -> Result:
    """Run a request and collect its events; `progress` shows a bar, in notebooks as a widget. Raises the errors of
    `stream`.
    """
    stream_of_events = stream(model, request, cancel, streamer, prefixes=prefixes, drafters=drafters, scores=scores)
    events = list(_with_progress_bar(stream_of_events) if progress else stream_of_events)
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


def _with_progress_bar(events: Iterator[Event]) -> Iterator[Event]:
    """Pass events through and count tokens, or steps of a beam search, in a progress bar."""
    from tqdm.auto import tqdm  # a notebook's bar is imported only where there is one

    with tqdm(unit=" tokens", disable=False) as bar:
        for event in events:
            if isinstance(event, RunStarted):
                limit = dict(event.settings).get("max_new_tokens")
                is_beam_search = bool(dict(event.settings).get("num_beams"))
                bar.reset(total=limit * (1 if is_beam_search else event.sequences) if isinstance(limit, int) else None)
            elif isinstance(event, TokenChosen | BeamStep):
                bar.update()
            yield event


def _check_stream_arguments(cancel: object, streamer: object, prefixes: object, scores: object) -> None:
    """Check the other arguments of `stream`. Raises ParameterError naming the argument."""
    check_cancel(cancel)
    if streamer is not None:
        check_kind("streamer", streamer, Streamer, tr("Pass an object with transformers' put and end, or None."))
    if prefixes is not None:
        check_kind("prefixes", prefixes, PrefixStore, tr("Pass a decodescope.PrefixStore, or None."))
    check_score_cache(scores)


def effective_settings(model: LoadedModel, request: Request) -> dict[str, object]:
    """Return the settings of a run of `request` that differ from the library's defaults, including the model's."""
    check_model(model)
    return non_default(resolve_settings(model, request)[1].config)


def _decode(
    model: LoadedModel, request: Request, cancel: threading.Event, prefixes: PrefixStore | None,
    score_cache: ScoreCache | None,
) -> Iterator[Event]:  # fmt: skip
    with model.adapters.using(request.adapters):
        yield from _decode_adapted(model, request, cancel, prefixes, score_cache)


def _decode_adapted(
    model: LoadedModel, request: Request, cancel: threading.Event, prefixes: PrefixStore | None,
    score_cache: ScoreCache | None,
) -> Iterator[Event]:  # fmt: skip
    strategy, settings = resolve_settings(model, request)
    decoding = DecodingRun(model, request, strategy, settings, cancel, prefixes)
    decoding.supports_chunked_prefill = supports_drafts
    if score_cache is not None:
        score_cache.start_run(decoding.start_ids)
        decoding.score_cache = score_cache
    yield decoding.build_start_event()
    yield from _weight_notices(model)
    yield from decoding.inputs.notices
    yield from _repetition_notices(model, request)
    yield from (Notice("not_told", text) for text in getattr(model.tokenizer, "notices", ()))
    yield from cache_notices(model, decoding.backend, settings, strategy.speculates)
    yield from unused_settings(model, request, strategy, settings)
    for name, reason in settings.ignored.items():
        yield _notice(tr("The model's own generation_config has a value that is ignored: {reason}"), [name], reason)
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
    """Yield the strategy's events, and a `CachePlan` after `Prefilled` if the model's layers are known."""
    try:
        for event in events:
            yield event
            if isinstance(event, Prefilled) and (plan := decoding.plan_cache()) is not None:
                yield plan
    finally:
        if isinstance(events, Generator):  # lets the strategy clean up its caches now, however the run ends
            events.close()
        decoding.forward.release_storages()
