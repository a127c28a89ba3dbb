"""Scoring a text that is given: nothing is chosen, and every token is told as if it had been (GLTR: Gehrmann et al.
2019)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat

import torch

from core import caches
from core.checks.arguments import check_cancel
from core.common.setting_values import to_plain_value
from core.decoding.prompt import to_prompt_tokens
from core.decoding.run_preparation import check_scores
from core.decoding.sequences import AppendedToken, build_token_event
from core.decoding.step_details import StepDetails
from core.decoding.step_stats import StepStats, compute_step_stats
from core.decoding.text_scoring import (
    SCORING_CACHE,
    ComparisonModel,
    FullTextScores,
    GivenText,
    WatermarkSearch,
    prepare_given_text,
)
from core.errors import ComparisonError
from core.events import Event, Finished, Metrics, Prefilled, RunEnd, RunStarted, SequenceFinished, TokenChosen
from core.models.error_translation import translate_iterator_errors
from core.models.loaded_model import LoadedModel, check_model
from core.models.text import TextStream
from core.parameter import Settings
from core.remote import remote_run as elsewhere
from core.remote.remote_model import RemoteModel
from core.strategies.request_checks import check_top_n, settings_by_name
from resources.language import tr


def score(
    model: LoadedModel | RemoteModel, text_or_ids: object, top_n: int = 10, *, given: object = None
) -> tuple[TokenChosen, ...]:
    """What `model` holds of a text: probability, rank, entropy and alternatives of every token after the first.

    The text is a string, a chat or token ids, read in one pass (in pieces where its logits would take more than
    256 MiB). Figures are the model's own, those of a run without settings: a greedy run's text scored again has rank 1
    throughout.

    `given`, in any of these forms, stands before the text and is not scored; then every token of the text is. An
    encoder–decoder's text is its answer to `given`, or to an empty source where there is none; what stands before it is
    the decoder's own first token, with which the ids of a text without a source may begin.
    Raises TextTooLongError beyond the model's context, PromptError and the others of `stream`.
    """
    events = score_stream(model, text_or_ids, top_n, given=given)
    return tuple(event for event in events if isinstance(event, TokenChosen))


def score_stream(
    model: LoadedModel | RemoteModel,
    text_or_ids: object,
    top_n: int = 10,
    *,
    given: object = None,
    second: LoadedModel | None = None,
    cancel: threading.Event | None = None,
    watermark: Settings | None = None,
) -> Iterator[Event]:
    """The same as the events of a run: RunStarted, Prefilled, a TokenChosen each, SequenceFinished, Finished.

    With a `second` model every token is followed by a TokenCompared. `cancel` is looked at before every pass.
    `watermark`: settings of watermarks (keys of `Request.options`), searched for token by token: what each shows stands
    in its funnel (`StageDetail.sign`).
    Raises what `score` does, and ComparisonError where two models mean something else by a token.
    """
    check_cancel(cancel)
    text_or_ids, top_n, given = to_plain_value(text_or_ids), to_plain_value(top_n), to_plain_value(given)
    watermark = to_plain_value(watermark)
    watermark = settings_by_name("watermark", watermark) if watermark is not None else {}
    if isinstance(model, RemoteModel):
        if second is not None or watermark:
            raise ComparisonError(
                tr("A text that another machine scores is read by its model alone."),
                tr("Score it with a model in this machine's memory."),
            )
        return elsewhere.score_stream(model, text_or_ids, top_n, given, cancel)
    check_model(model)
    if second is not None:
        check_model(second)
    return translate_iterator_errors(model, partial(
        _score_events, model, text_or_ids, top_n, given, second, cancel or threading.Event(), watermark
    ))  # fmt: skip


def _score_events(
    model: LoadedModel, text: object, top_n: int, before: object, second: LoadedModel | None, cancel: threading.Event,
    watermark: Settings,
) -> Iterator[Event]:  # fmt: skip
    check_top_n(top_n)
    given = prepare_given_text(model, text, before)
    other = ComparisonModel(second, model, given, top_n) if second is not None else None
    yield _run_started(model, given, second.name if second is not None else "")
    yield from TextScorer(model, given, top_n, other, watermark).events(cancel)


def _run_started(model: LoadedModel, given: GivenText, second: str) -> RunStarted:
    return RunStarted(
        strategy="score",
        model=model.name,
        device=str(model.device),
        dtype=model.weights,
        cache=SCORING_CACHE,
        seed=0,
        prompt=to_prompt_tokens(given.prompt, model.pieces),
        settings=(),
        vocabulary=model.vocabulary,
        context=model.context,
        second=second,
    )


class TextScorer:
    """One text under the eyes of one model, or two, told token by token."""

    def __init__(
        self, model: LoadedModel, given: GivenText, top_n: int, other: ComparisonModel | None, watermark: Settings
    ) -> None:
        self._model, self._given, self._top_n, self._comparison = model, given, top_n, other
        self._text = FullTextScores(model, given)
        self._stream, self._texts = TextStream(model.tokenizer, given.start, model.pieces), list[str]()
        self._search = WatermarkSearch(model, watermark)
        self._start_time = self._last = time.perf_counter()
        self._first_pass_time: float | None = None
        """When the first pass was done."""

    def events(self, cancel: threading.Event) -> Iterator[Event]:
        """Everything behind RunStarted."""
        for rows, theirs in self._logits(cancel):
            if self._first_pass_time is None:
                self._first_pass_time = self._last = time.perf_counter()
                yield Prefilled(len(self._given.decoder_ids), self._first_pass_time - self._start_time)
            yield from self._token_events(rows, theirs)
        yield from self._final_events()

    def _logits(self, cancel: threading.Event) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
        """Those of the model and of the second one, place by place alike."""
        portions = self._text.max_chunks()
        if self._comparison is None:
            return zip(self._text.logits(portions, cancel), repeat(None), strict=False)
        portions = portions.minimum(self._comparison.scores.max_chunks())
        theirs = self._comparison.scores.logits(portions, cancel)
        return zip(self._text.logits(portions, cancel), theirs, strict=False)  # a stop ends one before the other

    def _token_events(self, rows: torch.Tensor, theirs: torch.Tensor | None) -> Iterator[Event]:
        """The tokens behind logits [n, V]; `theirs`: the second model's."""
        step = len(self._texts)
        tokens = self._given.tokens[step : step + len(rows)]
        check_scores(self._model, rows, rows, step)
        chosen = torch.tensor(tokens, device=rows.device)
        readings = compute_step_stats([rows], chosen, self._top_n, (), self._model.pieces)
        compared: Sequence[Event] = ()
        if self._comparison is not None and theirs is not None:
            compared = self._comparison.compare(step, rows, theirs, chosen)
        now = time.perf_counter()
        seconds, self._last = (now - self._last) / len(tokens), now
        for place, reading in enumerate(readings):
            yield self._token_chosen(reading, seconds)
            yield from compared[place : place + 1]

    def _token_chosen(self, reading: StepStats, seconds: float) -> TokenChosen:
        note = AppendedToken(len(self._texts), reading.token, self._stream.push(reading.token), seconds, None)
        self._texts.append(note.text)
        if self._search.is_active:
            stages = self._search.append_stages(reading.details.funnel(), reading.token)
            reading = reading._replace(details=StepDetails(reading.details.alternatives(), stages))
        return build_token_event(self._model.pieces, 0, note, reading, "scored")

    def _final_events(self) -> Iterator[Event]:
        tokens = tuple(self._given.tokens[: len(self._texts)])
        is_whole, tail = len(tokens) == len(self._given.tokens), self._stream.flush()
        yield SequenceFinished(0, "given" if is_whole else "stopped", tail=tail)
        reason: RunEnd = "completed" if is_whole else "stopped"
        yield Finished(reason, (tokens,), ("".join(self._texts) + tail,), self._metrics(), order=(0,))

    def _metrics(self) -> Metrics:
        reading, passes = (self._first_pass_time or self._start_time) - self._start_time, self._text.forward.passes
        held = caches.registry[SCORING_CACHE].measure(self._text.forward.cache).bytes
        return Metrics(
            prompt_tokens=len(self._given.start),
            new_tokens=len(self._texts),
            seconds=time.perf_counter() - self._start_time,
            time_to_first_token=reading or None,
            prefill_tokens_per_second=len(self._given.decoder_ids) / reading if reading and passes == 1 else None,
            target_passes=passes,
            cache_bytes=held,
            cache_peak_bytes=held,
        )
