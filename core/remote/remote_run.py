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
from core.remote.endpoints import messages
from core.remote.event_builder import TokenEventBuilder
from core.remote.http_stream import StoppedError
from core.remote.prompt_tokens import PromptTokens, read_prompt
from core.remote.remote_model import RemoteModel
from core.remote.request_builder import EngineRequest, ask
from core.remote.responses import Counts, StreamedToken, TextDelta, parts, shared_out
from core.remote.sglang import GenerateResponse, is_own
from core.remote.sse import Utf8Joiner
from core.remote.token_table import AnswerText, shown
from core.remote.withheld_tokens import WithheldTokens
from core.request import Request
from resources.language import tr

_ENDINGS: dict[str, Ending] = {"length": "length", "model_length": "context", "abort": "stopped"}
"""`finish_reason`: everything else is an end of the text's own."""

_PIECES_PER_TOKEN, _MORE_PIECES = 4, 1000
"""Pieces of a text that are read for each token that it may have; an engine that sends more has no end."""
_MOST_AFTER_END = 256
"""Messages that are read behind the end of every text."""


def stream(model: RemoteModel, request: Request, cancel: threading.Event | None = None) -> Iterator[Event]:
    """The events of a run by `model`; the last one is `Finished`. Probabilities that the engine does not tell are NaN,
    ranks 0. Raises EngineErrors, and what any run raises for a request that cannot be."""
    asked = ask(model, request)
    yield from _RemoteRun(model, asked, request, cancel or threading.Event()).events()


@dataclass(slots=True)
class _RemoteText:
    """One text as it is written."""

    number: int
    shown: AnswerText
    joiner: Utf8Joiner = field(default_factory=Utf8Joiner)
    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    last: float = field(default_factory=time.perf_counter)
    is_over: bool = False

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def add(self, number: int, text: str) -> None:
        """Append one token."""
        self.ids.append(number)
        self.texts.append(text)
        self.shown.add(number, text)


class _RemoteRun:
    """One run; `events` once."""

    def __init__(self, model: RemoteModel, asked: EngineRequest, request: Request, cancel: threading.Event) -> None:
        self._model, self._asked, self._request, self._cancel = model, asked, request, cancel
        self._texts = [_RemoteText(number, model.words.answer()) for number in range(asked.texts)]
        self._withheld = WithheldTokens(model, cancel) if model.kind is LLAMA_CPP else None
        self._counts = Counts()
        self._generated = GenerateResponse(model.place)
        self._teller = TokenEventBuilder(
            model, asked.alternatives, asked.acting, "sampled" if asked.samples else "greedy"
        )
        self._most_pieces = _PIECES_PER_TOKEN * asked.max_new + _MORE_PIECES
        self._begun = time.perf_counter()
        self._first: float | None = None
        self._stopped = False
        self._messages_after_end = 0

    def events(self) -> Iterator[Event]:
        yield self._started(self._read(self._cancel))
        try:
            for message in messages(self._model, self._asked, self._cancel):
                yield from self._hear(message)
                if self._is_enough():
                    break
                if self._is_late():
                    yield from self._end_all("time", self._asked.seconds)
                    break
        except StoppedError:
            self._stopped = True
            yield from self._end_all("stopped")
        except EngineCutError:
            if not all(text.is_over for text in self._texts):  # figures behind a whole text may be missing
                raise
        if not all(text.is_over for text in self._texts):
            raise engine_errors.cut(None, self._model.place)
        if self._withheld is not None and self._withheld.missing:
            yield Notice("not_told", tr(
                "The tokens are not complete: {engine} sends whole characters only, and does not report every token of "
                "one. Tokens of this answer without an id: {count}."
            ).format(engine=self._model.kind.title, count=self._withheld.missing))  # fmt: skip
        yield self._finished()

    def _read(self, cancel: threading.Event) -> PromptTokens | None:
        """The tokens of the prompt, where the engine tells them; that takes no time of the run's own."""
        read = read_prompt(self._model, self._asked, cancel)
        self._counts.prompt = read.count if read else None
        self._begun = time.perf_counter()
        for text in self._texts:
            text.last = self._begun
        return read

    def _started(self, read: PromptTokens | None) -> RunStarted:
        model, asked = self._model, self._asked
        beginning = read.beginning if read and read.prompt else self._as_told(asked.before)
        for text in self._texts:
            for token in beginning:
                text.shown.add(token.id, token.text)
        settings = {**asked.settings, "do_sample": asked.samples}
        return RunStarted(
            strategy=asked.strategy.name,
            model=model.name,
            device=model.place,
            dtype="",
            cache="",
            seed=self._request.seed,
            prompt=read.prompt if read and read.prompt else self._as_told(asked.shown),
            settings=tuple(sorted((name, _plain(value)) for name, value in settings.items()
                                  if DEFAULTS.get(name) != value)),
            sequences=asked.texts,
            vocabulary=model.vocabulary,
            context=model.context,
            beginning=beginning,
            identity=model.identity,
            engine=model.kind.title,
        )  # fmt: skip

    def _as_told(self, text: str) -> tuple[PromptToken, ...]:
        """A text whose tokens nobody tells, as one."""
        return (PromptToken(self._model.words.number(text), text),) if text else ()

    def _hear(self, message: dict[str, object]) -> Iterator[Event]:
        with engine_errors.readable(message, self._model.place):
            self._counts.hear(message)
        for part in read(message, self._model.place, self._generated):
            if 0 <= part.sequence < len(self._texts):
                yield from self._add(self._texts[part.sequence], part)

    def _add(self, text: _RemoteText, part: TextDelta) -> Iterator[Event]:
        if text.is_over:
            return
        if self._withheld is not None:
            part = self._withheld.complete(part, self._counts.decoded)
        added = text.joiner.push(part.text)
        if part.tokens:
            tellings, told = shared_out(added, [token.piece for token in part.tokens]), part.tokens
        else:
            tellings, told = ([added], (StreamedToken(shown(added, None)),)) if added else ([], ())
        if told and self._first is None:
            yield from self._begin(with_tokens=bool(part.tokens))
        now = time.perf_counter()
        seconds, text.last = (now - text.last) / max(len(told), 1), now
        for token, piece in zip(told, tellings, strict=True):
            if len(text.ids) >= self._most_pieces:
                yield self._ended(text, "length", limit=self._asked.max_new)
                return
            yield self._teller.chosen(token, piece, len(text.ids), text.number, seconds)
            text.add(self._teller.number(token), piece)
        if part.finish:
            rest = self._withheld.rest(part) if self._withheld is not None else ""
            yield self._ended(text, *self._ending(part), rest=rest)

    def _begin(self, with_tokens: bool) -> Iterator[Event]:
        """With the first token: what is known of the prompt, and what will not be told."""
        self._first = time.perf_counter()
        if self._counts.prompt is not None:
            yield Prefilled(self._counts.prompt, self._counts.prompt_seconds or self._first - self._begun,
                            self._counts.cached or 0)  # fmt: skip
        if not with_tokens:
            yield Notice("not_told", tr(
                "{engine} tells text only: what stands here as a token is a piece of text as it came, and nobody tells "
                "how likely it was."
            ).format(engine=self._model.kind.title))  # fmt: skip
        model = self._model
        if model.kind.fails_at_probabilities and not (with_tokens or model.tells or self._asked.is_chat):
            yield Notice("not_told", tr(
                "It was started without log-probabilities. Start it with --logits_all true, and it tells them."
            ))  # fmt: skip
        if "grammar" in self._asked.settings:
            yield Notice("not_told", tr(
                "{engine} keeps to the grammar by itself. Which tokens that forbade, it does not tell."
            ).format(engine=self._model.kind.title))  # fmt: skip

    def _ending(self, part: TextDelta) -> tuple[Ending, str, float | None]:
        if part.stop:
            return "stop_string", part.stop, None
        reason = _ENDINGS.get(part.finish, "eos")
        limits = {"length": self._asked.max_new, "context": self._model.context}
        return reason, "", limits.get(reason)

    def _ended(
        self, text: _RemoteText, reason: Ending, stop: str = "", limit: float | None = None, rest: str = ""
    ) -> SequenceFinished:
        tail = text.joiner.flush() + rest
        text.texts.append(tail)
        text.is_over = True
        return SequenceFinished(text.number, reason, stop, limit, tail)

    def _end_all(self, reason: Ending, limit: float | None = None) -> Iterator[Event]:
        for text in self._texts:
            if not text.is_over:
                yield self._ended(text, reason, limit=limit)

    def _is_enough(self) -> bool:
        """Whether an engine goes on behind the end of every text; a few messages with figures may follow it."""
        if not all(text.is_over for text in self._texts):
            return False
        self._messages_after_end += 1
        return self._messages_after_end > _MOST_AFTER_END

    def _is_late(self) -> bool:
        seconds = self._asked.seconds
        return seconds is not None and time.perf_counter() - self._begun > seconds

    def _finished(self) -> Finished:
        return Finished(
            reason="stopped" if self._stopped else "completed",
            sequences=tuple(tuple(text.ids) for text in self._texts),
            texts=tuple(text.text for text in self._texts),
            metrics=self._metrics(),
            order=tuple(text.number for text in self._texts),
        )

    def _metrics(self) -> Metrics:
        now, counts = time.perf_counter(), self._counts
        written = counts.written if counts.written is not None else sum(len(text.ids) for text in self._texts)
        decoding = max((text.last for text in self._texts), default=now) - (self._first or now)
        later = written - len(self._texts)
        return Metrics(
            prompt_tokens=counts.prompt or 0,
            new_tokens=written,
            seconds=now - self._begun,
            time_to_first_token=self._first - self._begun if self._first else None,
            prefill_tokens_per_second=counts.prompt_speed,
            decode_tokens_per_second=later / decoding if later > 0 and decoding > 0 else None,
            target_passes=counts.passes or 0,
            tokens_per_target_pass=written / counts.passes if counts.passes else None,
            acceptance_rate=counts.acceptance,
        )


def read(message: dict[str, object], place: str, own: GenerateResponse) -> tuple[TextDelta, ...]:
    """The parts of a message. Raises EngineReplyError where it is JSON of another shape."""
    with engine_errors.readable(message, place):
        return (own.part(message),) if is_own(message) else tuple(parts(message))


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
