"""Score a given text: every token is reported like a chosen one (GLTR: Gehrmann et al. 2019)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat

import torch

from decodescope.core import caches
from decodescope.core.checks.arguments import check_cancel
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.decoding.prompt import to_prompt_tokens
from decodescope.core.decoding.run_preparation import check_scores
from decodescope.core.decoding.sequences import AppendedToken, build_token_event
from decodescope.core.decoding.step_details import StepDetails
from decodescope.core.decoding.step_stats import StepStats, compute_step_stats
from decodescope.core.decoding.text_scoring import (
    SCORING_CACHE,
    ComparisonModel,
    FullTextScores,
    GivenText,
    WatermarkSearch,
    prepare_given_text,
)
from decodescope.core.errors import ComparisonError
from decodescope.core.events import (
    Event,
    Finished,
    Metrics,
    Prefilled,
    RunEnd,
    RunStarted,
    SequenceFinished,
    TokenChosen,
)
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.models.text import TextStream
from decodescope.core.notebook.result_rows import ResultRows
from decodescope.core.parameter import Settings
from decodescope.core.remote import remote_run as elsewhere
from decodescope.core.remote.remote_model import RemoteModel
from decodescope.core.settings import check_top_n, settings_by_name
from decodescope.resources.language import tr


class ScoredTokens(ResultRows[TokenChosen]):
    """The tokens of a scored text; `events` are those of `score_stream`."""

    events: tuple[Event, ...] = ()

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        from decodescope.core.notebook.tables import event_columns

        return event_columns(self)

    def _repr_html_(self) -> str:
        """Return the interactive page of the text, for notebooks."""
        from decodescope.core.notebook.inline_page import inline_page

        return inline_page(self.events)


def score(
    model: LoadedModel | RemoteModel, text_or_ids: object, top_n: int = 10, *, given: object = None
) -> ScoredTokens:
    """Score a text with `model`: probability, rank, entropy and alternatives of every token after the first.

    The text is a string, a chat or token ids, read in one pass (in chunks if its logits would take more than 256 MiB).
    Values are raw, as in a run without settings: the text of a greedy run has rank 1 throughout. `given`, in any of
    these forms, precedes the text and is not scored; then every token of the text is. For an encoder–decoder model, the
    text is its answer to `given`, or to an empty source; it is preceded by the decoder's start token, with which the
    ids of a text without a source may begin. Raises TextTooLongError beyond the model's context, PromptError and the
    other errors of `stream`.
    """
    events = tuple(score_stream(model, text_or_ids, top_n, given=given))
    scored = ScoredTokens(event for event in events if isinstance(event, TokenChosen))
    scored.events = events
    return scored


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
    """Score a text as the events of a run: RunStarted, Prefilled, a TokenChosen per token, SequenceFinished, Finished.

    With a `second` model, every token is followed by a TokenCompared. `cancel` is checked before every pass.
    `watermark`: settings of watermarks (keys of `Request.options`) to detect; each token's contribution is in its
    funnel (`StageDetail.sign`). Raises the errors of `score`, and ComparisonError if the models' vocabularies differ.
    """
    check_cancel(cancel)
    text_or_ids, top_n, given = to_plain_value(text_or_ids), to_plain_value(top_n), to_plain_value(given)
    watermark = to_plain_value(watermark)
    watermark = settings_by_name("watermark", watermark) if watermark is not None else {}
    if isinstance(model, RemoteModel):
        if second is not None or watermark:
            raise ComparisonError(
                tr("Remote scoring does not support a comparison model or watermark detection."),
                tr("Score the text with a local model."),
            )
        return elsewhere.score_stream(model, text_or_ids, top_n, cancel, text_or_ids=given)
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
    yield build_start_event(model, given, second.name if second is not None else "")
    yield from TextScorer(model, given, top_n, other, watermark).events(cancel)


def build_start_event(model: LoadedModel, given_text: GivenText, second: str) -> RunStarted:
    """Return the first event of a scored text."""
    return RunStarted(
        strategy="score",
        model=model.name,
        device=str(model.device),
        dtype=model.weights,
        cache=SCORING_CACHE,
        seed=0,
        prompt=to_prompt_tokens(given_text.prompt, model.pieces),
        settings=(),
        vocabulary=model.vocabulary,
        context=model.context,
        second=second,
        adapters=model.adapters.used(),
        thinking=model.thinking_marks,
    )


class TextScorer:
    """Scores one text with one or two models, token by token."""

    def __init__(
        self, model: LoadedModel, given_text: GivenText, top_n: int, other: ComparisonModel | None, watermark: Settings
    ) -> None:
        self._model, self._given, self._top_n, self._comparison = model, given_text, top_n, other
        self._text = FullTextScores(model, given_text)
        self._stream, self._texts = TextStream(model.tokenizer, given_text.start, model.pieces), list[str]()
        self._search = WatermarkSearch(model, watermark)
        self._start_time = self._last = time.perf_counter()
        self._first_pass_time: float | None = None
        """Time when the first pass was finished."""

    def events(self, cancel: threading.Event) -> Iterator[Event]:
        """Yield all events after RunStarted."""
        for rows, theirs in self._logits(cancel):
            if self._first_pass_time is None:
                self._first_pass_time = self._last = time.perf_counter()
                yield Prefilled(len(self._given.decoder_ids), self._first_pass_time - self._start_time)
            yield from self._token_events(rows, theirs)
        yield from self._final_events()

    def _logits(self, cancel: threading.Event) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
        """Yield the logits of the model and the comparison model for the same positions."""
        portions = self._text.max_chunks()
        if self._comparison is None:
            return zip(self._text.logits(portions, cancel), repeat(None), strict=False)
        portions = portions.minimum(self._comparison.scores.max_chunks())
        theirs = self._comparison.scores.logits(portions, cancel)
        return zip(
            self._text.logits(portions, cancel), theirs, strict=False
        )  # a cancellation may end one before the other

    def _token_events(self, rows: torch.Tensor, theirs: torch.Tensor | None) -> Iterator[Event]:
        """Yield the events of the tokens after logits [n, V]; `theirs` are the comparison model's."""
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

    def _token_chosen(self, stats: StepStats, seconds: float) -> TokenChosen:
        note = AppendedToken(len(self._texts), stats.token, self._stream.push(stats.token), seconds, None)
        self._texts.append(note.text)
        if self._search.is_active:
            stages = self._search.append_stages(stats.details.funnel(), stats.token)
            stats = stats._replace(details=StepDetails(stats.details.alternatives(), stages))
        return build_token_event(self._model.pieces, 0, note, stats, "scored")

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
