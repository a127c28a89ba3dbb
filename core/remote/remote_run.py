"""Stream a run on a remote engine as events: the same as for a local run, without the values that the engine does not
report.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from decodescope.core.checks.arguments import cancel_event_or_new
from decodescope.core.common.hf_generation import DEFAULTS
from decodescope.core.errors import EngineCutError, EngineRefusedError, PromptError
from decodescope.core.events import (
    Alternative,
    Ending,
    Event,
    Finished,
    Method,
    Metrics,
    Notice,
    Prefilled,
    PromptToken,
    RunStarted,
    SequenceFinished,
    TokenChosen,
)
from decodescope.core.remote import engines, http_stream
from decodescope.core.remote.client import Utf8Joiner
from decodescope.core.remote.endpoints import stream_messages
from decodescope.core.remote.engines.base import NativeReader
from decodescope.core.remote.http_stream import CancelledError
from decodescope.core.remote.remote_model import RemoteModel
from decodescope.core.remote.request_builder import EngineRequest, build_request
from decodescope.core.remote.responses import (
    AnswerText,
    ResponseUsage,
    StreamedToken,
    TextDelta,
    TokenLogprob,
    as_mapping,
    choice_tokens,
    display_piece,
    read_choices,
    split_text,
)
from decodescope.core.remote.tokenization import PromptTokens, tokenize_prompt
from decodescope.core.request import Request
from decodescope.core.settings import check_top_n
from decodescope.resources.language import join_names, tr


class TokenEventBuilder:
    """Builds the token events of one run. `requested` is the number of alternatives requested per step;
    `active_settings` are the settings applied between the raw distribution and the choice.
    """

    def __init__(self, model: RemoteModel, requested: int, active_settings: frozenset[str], method: Method) -> None:
        self._model, self._requested, self._active_settings, self._method = model, requested, active_settings, method

    def token_id(self, token: StreamedToken) -> int:
        """Return the token's id, or a number that replaces an unreported one."""
        return self._model.words.id_of(token.piece, token.id, token.token_bytes)

    def build(self, token: StreamedToken, text: str, step: int, sequence: int, seconds: float) -> TokenChosen:
        """Build the event of a chosen token. `text` is what it adds to the text."""
        number = self.token_id(token)
        others, rank = self._alternatives(token, number)
        raw, final = self._log_probabilities(token.log_probability)
        return TokenChosen(
            step=step, sequence=sequence, id=number, piece=token.piece, text=text, raw_probability=math.exp(raw),
            probability=math.exp(final), raw_log_probability=raw, log_probability=final, rank=rank, entropy=math.nan,
            seconds=seconds, alternatives=others, method=self._method,
        )  # fmt: skip

    def _alternatives(self, token: StreamedToken, number: int) -> tuple[tuple[Alternative, ...], int]:
        """Return the likeliest tokens of a step, including the chosen one, and the chosen one's rank; 0 if it is not
        among them.
        """
        found, own, has_own = list[Alternative](), 0, False
        for place, one in enumerate(token.top, 1):
            is_requested = place <= self._requested
            is_own = not has_own and _is_same_token(one, token)
            if not (is_requested or is_own):
                continue  # more than requested
            rank = place if is_requested else 0  # an extra entry is the chosen token, whose rank is unknown
            own = rank if is_own else own
            token_id = number if is_own else self._model.words.id_of(one.piece, one.id, one.token_bytes)
            has_own = has_own or token_id == number
            found.append(self._alternative(token_id, one.piece, one.log_probability, rank))
        if found and not has_own:
            found.append(self._alternative(number, token.piece, token.log_probability, 0))
        return tuple(found), own

    def _alternative(self, number: int, piece: str, log_probability: float, rank: int) -> Alternative:
        raw, final = self._log_probabilities(log_probability)
        return Alternative(number, piece, math.exp(raw), math.exp(final), raw, final, rank)

    def _log_probabilities(self, log_probability: float) -> tuple[float, float]:
        """Return the log-probabilities before and after the settings. An engine reports only one of them; they are
        equal if no setting is active.
        """
        if self._model.kind.after_temperature and "temperature" in self._active_settings:
            return math.nan, log_probability if self._active_settings == {"temperature"} else math.nan
        return log_probability, math.nan if self._active_settings else log_probability


def _is_same_token(one: TokenLogprob, token: StreamedToken) -> bool:
    """Compare by id: several ids can have the same text. If ids are missing or contradictory, compare text and
    log-probability.
    """
    if one.id is not None and token.id is not None:
        is_named_twice = one.piece == token.piece and one.log_probability == token.log_probability
        return one.id == token.id or is_named_twice
    return one.piece == token.piece


_ENDINGS: dict[str, Ending] = {"length": "length", "model_length": "context", "abort": "stopped"}
"""Maps `finish_reason`; all other values mean the end of the text."""

_PIECES_PER_TOKEN, _EXTRA_PIECES = 4, 1000
"""Maximum number of pieces read per allowed token; an engine that sends more never ends."""
_MAX_MESSAGES_AFTER_END = 256
"""Maximum number of messages read after the end of every text."""


def stream(model: RemoteModel, request: Request, cancel: threading.Event | None = None) -> Iterator[Event]:
    """Yield the events of a run on `model`; the last one is `Finished`. Unreported probabilities are NaN, unreported
    ranks 0. Raises EngineError and its subclasses, and the errors of any invalid request.
    """
    cancel = cancel_event_or_new(cancel)
    yield from _RemoteRun(model, build_request(model, request), request, cancel).events()


@dataclass(slots=True)
class _RemoteSequence:
    """One text while it is received."""

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
    """One run on a remote engine; call `events` once."""

    def __init__(
        self, model: RemoteModel, engine_request: EngineRequest, request: Request, cancel: threading.Event
    ) -> None:
        self._model, self._engine_request, self._request, self._cancel = model, engine_request, request, cancel
        self._texts = [
            _RemoteSequence(number, model.words.new_answer()) for number in range(engine_request.sequence_count)
        ]
        kind = model.kind
        self._withheld = kind.recover_tokens(model, cancel) if kind.recover_tokens is not None else None
        self._counts = ResponseUsage(engines.usage_readers())
        self._native_reader = kind.native.reader(model.place) if kind.native is not None else None
        self._event_builder = TokenEventBuilder(
            model,
            engine_request.alternatives,
            engine_request.active_settings,
            "sampled" if engine_request.is_sampling else "greedy",
        )
        self._max_pieces = _PIECES_PER_TOKEN * engine_request.max_new_tokens + _EXTRA_PIECES
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
            if not all(text.is_finished for text in self._texts):  # statistics after a complete text may be missing
                raise
        if not all(text.is_finished for text in self._texts):
            raise http_stream.interrupted_error(None, self._model.place)
        if self._withheld is not None and self._withheld.missing_count:
            yield Notice("not_told", tr(
                "The token list is incomplete: {engine} sends only whole characters, and does not "
                    "report every token of a character. Tokens of this answer without an id: {count}."
            ).format(engine=self._model.kind.title, count=self._withheld.missing_count))  # fmt: skip
        yield self._finished()

    def _read_prompt(self, cancel: threading.Event) -> PromptTokens | None:
        """Return the prompt's tokens if the engine reports them; not counted in the run's time."""
        read = tokenize_prompt(self._model, self._engine_request, cancel)
        self._counts.prompt = read.count if read else None
        self._start_time = time.perf_counter()
        for text in self._texts:
            text.last_time = self._start_time
        return read

    def _run_started(self, prompt_tokens: PromptTokens | None) -> RunStarted:
        model, engine_request = self._model, self._engine_request
        beginning = (
            prompt_tokens.beginning
            if prompt_tokens and prompt_tokens.prompt
            else self._as_single_token(engine_request.beginning)
        )
        for text in self._texts:
            for token in beginning:
                text.answer.add(token.id, token.text)
        settings = {**engine_request.settings, "do_sample": engine_request.is_sampling}
        return RunStarted(
            strategy=engine_request.strategy.name,
            model=model.name,
            device=model.place,
            dtype="",
            cache="",
            seed=self._request.seed,
            prompt=(prompt_tokens.prompt if prompt_tokens else ())
            or self._as_single_token(engine_request.prompt_text),
            settings=tuple(sorted((name, _plain(value)) for name, value in settings.items()
                                  if DEFAULTS.get(name) != value)),
            sequences=engine_request.sequence_count,
            vocabulary=model.vocabulary,
            context=model.context,
            beginning=beginning,
            identity=model.identity,
            engine=model.kind.title,
        )  # fmt: skip

    def _as_single_token(self, text: str) -> tuple[PromptToken, ...]:
        """Return a text with unknown tokens as a single token."""
        return (PromptToken(self._model.words.id_of(text), text),) if text else ()

    def _handle_message(self, message: dict[str, object]) -> Iterator[Event]:
        with http_stream.parsing_message(message, self._model.place):
            self._counts.update(message)
        for part in read_deltas(message, self._model.place, self._native_reader):
            if 0 <= part.sequence < len(self._texts):
                yield from self._add_delta(self._texts[part.sequence], part)

    def _add_delta(self, text: _RemoteSequence, part: TextDelta) -> Iterator[Event]:
        if text.is_finished:
            return
        if self._withheld is not None:
            part = self._withheld.fill_gap(part, self._counts.decoded)
        added = text.joiner.push(part.text)
        if part.tokens:
            pieces, tokens = split_text(added, [token.piece for token in part.tokens]), part.tokens
        else:
            pieces, tokens = ([added], (StreamedToken(display_piece(added, None)),)) if added else ([], ())
        if tokens and self._first_token_time is None:
            yield from self._first_token_events(with_tokens=bool(part.tokens))
        now = time.perf_counter()
        seconds, text.last_time = (now - text.last_time) / max(len(tokens), 1), now
        for token, piece in zip(tokens, pieces, strict=True):
            if len(text.ids) >= self._max_pieces:
                yield self._finish_sequence(text, "length", limit=self._engine_request.max_new_tokens)
                return
            yield self._event_builder.build(token, piece, len(text.ids), text.number, seconds)
            text.add(self._event_builder.token_id(token), piece)
        if part.finish:
            rest = self._withheld.remaining_text(part) if self._withheld is not None else ""
            yield self._finish_sequence(text, *self._ending_of(part), rest=rest)

    def _first_token_events(self, with_tokens: bool) -> Iterator[Event]:
        """Yield the events of the first token: the prefill, and notices about what the engine does not report."""
        self._first_token_time = time.perf_counter()
        if self._counts.prompt is not None:
            yield Prefilled(
                self._counts.prompt,
                self._counts.prompt_seconds or self._first_token_time - self._start_time,
                self._counts.cached or 0,
            )
        if not with_tokens:
            yield Notice("not_told", tr(
                "{engine} reports only text: each \"token\" here is a piece of text as received, "
                    "without a probability."
            ).format(engine=self._model.kind.title))  # fmt: skip
        model = self._model
        notice = model.kind.no_probabilities_notice
        never = self._engine_request.is_chat and not model.kind.chat_alternatives
        if notice and not (with_tokens or model.reports_probabilities or never):
            yield Notice("not_told", tr(notice))
        if "grammar" in self._engine_request.settings:
            yield Notice("not_told", tr(
                "{engine} applies the grammar itself and does not report which tokens it forbids."
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
        """Return whether the engine keeps sending messages after the end of every text; a few with statistics are
        allowed.
        """
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


def read_deltas(message: dict[str, object], machine: str, reader: NativeReader | None) -> tuple[TextDelta, ...]:
    """Return the deltas in a message. `reader`: that of the engine's native endpoint, if it has one. Raises
    EngineReplyError if its JSON has another structure.
    """
    with http_stream.parsing_message(message, machine):
        if reader is not None and reader.is_response(message):
            return (reader.delta(message),)
        return tuple(read_choices(message))


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


SCORE = "score"


def score_stream(
    model: RemoteModel, text: object, top_n: int = 10, cancel: threading.Event | None = None, *,
    text_or_ids: object = None,
) -> Iterator[Event]:  # fmt: skip
    """Score a text or its parts like `core.score_stream`. Raises EngineError and its subclasses, PromptError,
    ParameterError.
    """
    cancel = cancel_event_or_new(cancel)
    check_top_n(top_n)
    if not model.kind.scores:
        capable = [kind.title for kind in engines.registry.values() if kind.scores]
        raise EngineRefusedError(
            tr("{engine} does not report probabilities of a given text.").format(engine=model.kind.title),
            tr("Use {engines}, or a local model.").format(engines=join_names(capable)),
        )
    before, whole = _text_of(model, text_or_ids), _text_of(model, text)
    yield from _scoring_events(model, before, before + whole, top_n, cancel)


def _text_of(model: RemoteModel, text: object) -> str:
    if text is None:
        return ""
    parts = [text] if isinstance(text, str) else text
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, (str, int)) for part in parts):
        raise PromptError(
            tr("The input is not text."), tr("Pass a string, or strings and tokens reported by this engine.")
        )
    return model.spell(parts)


def _scoring_events(model: RemoteModel, before: str, text: str, top_n: int, cancel: threading.Event) -> Iterator[Event]:
    begun = time.perf_counter()
    count = max(1, min(top_n, model.kind.alternatives))
    body = {"model": model.name, "prompt": text, "max_tokens": 1, "temperature": 0.0, "echo": True, "logprobs": count}
    body |= {name: value for name, value in model.kind.extras.items() if name == "return_token_ids"}
    try:
        tokens, counts = _read_reply(model, model.client.post(f"{model.address.path}/completions", body, cancel), text)
    except CancelledError:
        tokens, counts = (), ResponseUsage(engines.usage_readers())
    seconds = time.perf_counter() - begun
    known = _token_count(tokens, before)
    builder = TokenEventBuilder(model, count, frozenset(), "scored")
    yield _run_started(model, builder, tokens[:known], before or text)
    yield Prefilled(len(tokens), seconds)
    scored = tokens[known:]
    for step, token in enumerate(scored):
        yield builder.build(token, token.piece, step, 0, seconds / len(tokens))
    yield SequenceFinished(0, "given" if tokens else "stopped")
    yield Finished(
        "completed" if tokens else "stopped",
        (tuple(builder.token_id(token) for token in scored),),
        ("".join(token.piece for token in scored),),
        Metrics(counts.prompt or len(tokens), len(scored), seconds),
        order=(0,),
    )


def _read_reply(model: RemoteModel, reply: object, text: str) -> tuple[tuple[StreamedToken, ...], ResponseUsage]:
    """Return the tokens of the text without the extra one generated after it: not every engine can generate none."""
    counts = ResponseUsage(engines.usage_readers())
    with http_stream.parsing_message(reply, model.place):
        message = as_mapping(reply)
        counts.update(message)
        found = tuple(choice_tokens(as_mapping(message["choices"][0])))
    if not found:
        raise EngineRefusedError(
            tr("{place} did not report probabilities of the text.").format(place=model.place),
            tr("Check whether the engine was started without log-probabilities."),
        )
    return found[: counts.prompt or _token_count(found, text)], counts


def _token_count(tokens: tuple[StreamedToken, ...], text: str) -> int:
    """Count the tokens of `text`; at least the first, for which no engine reports a probability."""
    length = 0
    for place, token in enumerate(tokens):
        if length >= len(text) and not math.isnan(token.log_probability):
            return place
        length += len(token.piece)
    return len(tokens)


def _run_started(
    model: RemoteModel, builder: TokenEventBuilder, tokens: tuple[StreamedToken, ...], text: str
) -> RunStarted:
    prompt = tuple(PromptToken(builder.token_id(token), token.piece) for token in tokens)
    return RunStarted(
        strategy=SCORE, model=model.name, device=model.place, dtype="", cache="", seed=0,
        prompt=prompt or (PromptToken(model.words.id_of(text), text),), settings=(), vocabulary=model.vocabulary,
        context=model.context, identity=model.identity, engine=model.kind.title,
    )  # fmt: skip
