"""A run on another machine as events: those of any run, without what the engine does not tell."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from core.defaults import DEFAULTS
from core.errors import EngineCutError
from core.events import (
    Ending,
    Event,
    Finished,
    Metrics,
    Notice,
    Prefilled,
    PromptToken,
    RunStarted,
    SequenceFinished,
)
from core.remote import engine_errors
from core.remote.backends import LLAMA_CPP
from core.remote.endpoints import stream_messages
from core.remote.event_builder import TokenEventBuilder
from core.remote.http_stream import CancelledError
from core.remote.prompt_tokens import PromptTokens, tokenize_prompt
from core.remote.remote_model import RemoteModel
from core.remote.request_builder import EngineRequest, build_request
from core.remote.responses import ResponseUsage, StreamedToken, TextDelta, read_choices, split_text
from core.remote.sglang import GenerateResponse, is_native_response
from core.remote.sse import Utf8Joiner
from core.remote.token_table import AnswerText, display_piece
from core.remote.withheld_tokens import WithheldTokenRecovery
from core.request import Request
from resources.language import tr

_ENDINGS: dict[str, Ending] = {"length": "length", "model_length": "context", "abort": "stopped"}
"""`finish_reason`: everything else is an end of the text's own."""

_PIECES_PER_TOKEN, _EXTRA_PIECES = 4, 1000
"""Pieces of a text that are read for each token that it may have; an engine that sends more has no end."""
_MAX_MESSAGES_AFTER_END = 256
"""Messages that are read behind the end of every text."""


def stream(model: RemoteModel, request: Request, cancel: threading.Event | None = None) -> Iterator[Event]:
    """The events of a run by `model`; the last one is `Finished`. Probabilities that the engine does not tell are NaN,
    ranks 0. Raises EngineErrors, and what any run raises for a request that cannot be."""
    asked = build_request(model, request)
    yield from _RemoteRun(model, asked, request, cancel or threading.Event()).events()


@dataclass(slots=True)
class _RemoteSequence:
    """One text as it is written."""

    number: int
    answer: AnswerText
    joiner: Utf8Joiner = field(default_factory=Utf8Joiner)
    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    last_time: float = field(default_factory=time.perf_counter)
    is_finished: bool = False

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def add(self, number: int, text: str) -> None:
        """Append one token."""
        self.ids.append(number)
        self.texts.append(text)
        self.answer.add(number, text)


class _RemoteRun:
    """One run; `events` once."""

    def __init__(self, model: RemoteModel, asked: EngineRequest, request: Request, cancel: threading.Event) -> None:
        self._model, self._engine_request, self._request, self._cancel = model, asked, request, cancel
        self._texts = [_RemoteSequence(number, model.words.new_answer()) for number in range(asked.sequence_count)]
        self._withheld = WithheldTokenRecovery(model, cancel) if model.kind is LLAMA_CPP else None
        self._counts = ResponseUsage()
        self._generated = GenerateResponse(model.place)
        self._event_builder = TokenEventBuilder(
            model, asked.alternatives, asked.active_settings, "sampled" if asked.is_sampling else "greedy"
        )
        self._max_pieces = _PIECES_PER_TOKEN * asked.max_new_tokens + _EXTRA_PIECES
        self._start_time = time.perf_counter()
        self._first_token_time: float | None = None
        self._is_stopped = False
        self._messages_after_end = 0

    def events(self) -> Iterator[Event]:
        yield self._run_started(self._read_prompt(self._cancel))
        try:
            for message in stream_messages(self._model, self._engine_request, self._cancel):
                yield from self._handle_message(message)
                if self._exceeds_trailing_messages():
                    break
                if self._is_over_time():
                    yield from self._finish_all("time", self._engine_request.max_seconds)
                    break
        except CancelledError:
            self._is_stopped = True
            yield from self._finish_all("stopped")
        except EngineCutError:
            if not all(text.is_finished for text in self._texts):  # figures behind a whole text may be missing
                raise
        if not all(text.is_finished for text in self._texts):
            raise engine_errors.interrupted_error(None, self._model.place)
        if self._withheld is not None and self._withheld.missing_count:
            yield Notice("not_told", tr(
                "The tokens are not complete: {engine} sends whole characters only, and does not report every token of "
                "one. Tokens of this answer without an id: {count}."
            ).format(engine=self._model.kind.title, count=self._withheld.missing_count))  # fmt: skip
        yield self._finished()

    def _read_prompt(self, cancel: threading.Event) -> PromptTokens | None:
        """The tokens of the prompt, where the engine tells them; that takes no time of the run's own."""
        read = tokenize_prompt(self._model, self._engine_request, cancel)
        self._counts.prompt = read.count if read else None
        self._start_time = time.perf_counter()
        for text in self._texts:
            text.last_time = self._start_time
        return read

    def _run_started(self, read: PromptTokens | None) -> RunStarted:
        model, asked = self._model, self._engine_request
        beginning = read.beginning if read and read.prompt else self._as_single_token(asked.beginning)
        for text in self._texts:
            for token in beginning:
                text.answer.add(token.id, token.text)
        settings = {**asked.settings, "do_sample": asked.is_sampling}
        return RunStarted(
            strategy=asked.strategy.name,
            model=model.name,
            device=model.place,
            dtype="",
            cache="",
            seed=self._request.seed,
            prompt=read.prompt if read and read.prompt else self._as_single_token(asked.prompt_text),
            settings=tuple(sorted((name, _plain(value)) for name, value in settings.items()
                                  if DEFAULTS.get(name) != value)),
            sequences=asked.sequence_count,
            vocabulary=model.vocabulary,
            context=model.context,
            beginning=beginning,
            identity=model.identity,
            engine=model.kind.title,
        )  # fmt: skip

    def _as_single_token(self, text: str) -> tuple[PromptToken, ...]:
        """A text whose tokens nobody tells, as one."""
        return (PromptToken(self._model.words.id_of(text), text),) if text else ()

    def _handle_message(self, message: dict[str, object]) -> Iterator[Event]:
        with engine_errors.parsing_message(message, self._model.place):
            self._counts.update(message)
        for part in read_deltas(message, self._model.place, self._generated):
            if 0 <= part.sequence < len(self._texts):
                yield from self._add_delta(self._texts[part.sequence], part)

    def _add_delta(self, text: _RemoteSequence, part: TextDelta) -> Iterator[Event]:
        if text.is_finished:
            return
        if self._withheld is not None:
            part = self._withheld.fill_gap(part, self._counts.decoded)
        added = text.joiner.push(part.text)
        if part.tokens:
            tellings, told = split_text(added, [token.piece for token in part.tokens]), part.tokens
        else:
            tellings, told = ([added], (StreamedToken(display_piece(added, None)),)) if added else ([], ())
        if told and self._first_token_time is None:
            yield from self._first_token_events(with_tokens=bool(part.tokens))
        now = time.perf_counter()
        seconds, text.last_time = (now - text.last_time) / max(len(told), 1), now
        for token, piece in zip(told, tellings, strict=True):
            if len(text.ids) >= self._max_pieces:
                yield self._finish_sequence(text, "length", limit=self._engine_request.max_new_tokens)
                return
            yield self._event_builder.build(token, piece, len(text.ids), text.number, seconds)
            text.add(self._event_builder.token_id(token), piece)
        if part.finish:
            rest = self._withheld.remaining_text(part) if self._withheld is not None else ""
            yield self._finish_sequence(text, *self._ending_of(part), rest=rest)

    def _first_token_events(self, with_tokens: bool) -> Iterator[Event]:
        """With the first token: what is known of the prompt, and what will not be told."""
        self._first_token_time = time.perf_counter()
        if self._counts.prompt is not None:
            yield Prefilled(self._counts.prompt, self._counts.prompt_seconds or self._first_token_time - self._start_time,
                            self._counts.cached or 0)  # fmt: skip
        if not with_tokens:
            yield Notice("not_told", tr(
                "{engine} tells text only: what stands here as a token is a piece of text as it came, and nobody tells "
                "how likely it was."
            ).format(engine=self._model.kind.title))  # fmt: skip
        model = self._model
        if model.kind.fails_at_probabilities and not (with_tokens or model.tells or self._engine_request.is_chat):
            yield Notice("not_told", tr(
                "It was started without log-probabilities. Start it with --logits_all true, and it tells them."
            ))  # fmt: skip
        if "grammar" in self._engine_request.settings:
            yield Notice("not_told", tr(
                "{engine} keeps to the grammar by itself. Which tokens that forbade, it does not tell."
            ).format(engine=self._model.kind.title))  # fmt: skip

    def _ending_of(self, part: TextDelta) -> tuple[Ending, str, float | None]:
        if part.stop:
            return "stop_string", part.stop, None
        reason = _ENDINGS.get(part.finish, "eos")
        limits = {"length": self._engine_request.max_new_tokens, "context": self._model.context}
        return reason, "", limits.get(reason)

    def _finish_sequence(
        self, text: _RemoteSequence, reason: Ending, stop: str = "", limit: float | None = None, rest: str = ""
    ) -> SequenceFinished:
        tail = text.joiner.flush() + rest
        text.texts.append(tail)
        text.is_finished = True
        return SequenceFinished(text.number, reason, stop, limit, tail)

    def _finish_all(self, reason: Ending, limit: float | None = None) -> Iterator[Event]:
        for text in self._texts:
            if not text.is_finished:
                yield self._finish_sequence(text, reason, limit=limit)

    def _exceeds_trailing_messages(self) -> bool:
        """Whether an engine goes on behind the end of every text; a few messages with figures may follow it."""
        if not all(text.is_finished for text in self._texts):
            return False
        self._messages_after_end += 1
        return self._messages_after_end > _MAX_MESSAGES_AFTER_END

    def _is_over_time(self) -> bool:
        seconds = self._engine_request.max_seconds
        return seconds is not None and time.perf_counter() - self._start_time > seconds

    def _finished(self) -> Finished:
        return Finished(
            reason="stopped" if self._is_stopped else "completed",
            sequences=tuple(tuple(text.ids) for text in self._texts),
            texts=tuple(text.text for text in self._texts),
            metrics=self._metrics(),
            order=tuple(text.number for text in self._texts),
        )

    def _metrics(self) -> Metrics:
        now, counts = time.perf_counter(), self._counts
        written = counts.written if counts.written is not None else sum(len(text.ids) for text in self._texts)
        decoding = max((text.last_time for text in self._texts), default=now) - (self._first_token_time or now)
        later = written - len(self._texts)
        return Metrics(
            prompt_tokens=counts.prompt or 0,
            new_tokens=written,
            seconds=now - self._start_time,
            time_to_first_token=self._first_token_time - self._start_time if self._first_token_time else None,
            prefill_tokens_per_second=counts.prefill_speed,
            decode_tokens_per_second=later / decoding if later > 0 and decoding > 0 else None,
            target_passes=counts.passes or 0,
            tokens_per_target_pass=written / counts.passes if counts.passes else None,
            acceptance_rate=counts.acceptance_rate,
        )


def read_deltas(message: dict[str, object], place: str, native_response: GenerateResponse) -> tuple[TextDelta, ...]:
    """The parts of a message. Raises EngineReplyError where it is JSON of another shape."""
    with engine_errors.parsing_message(message, place):
        return (native_response.delta(message),) if is_native_response(message) else tuple(read_choices(message))


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
