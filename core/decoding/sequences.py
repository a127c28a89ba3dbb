"""The sequences of a run as they are written: a token is appended, its text completed, its event told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.decoding.run_counters import RunCounters
from core.decoding.step_stats import StepStats
from core.decoding.stopping import StoppingCriteria, StopReason
from core.events import Event, LayerChoice, Method, Origin, SequenceFinished, TokenChosen
from core.events.mutable_builders import mutable_builder
from core.models.loaded_model import LoadedModel
from core.models.text import TextStream, TokenSpellings


@dataclass(slots=True)
class SequenceState:
    """One sequence as it is written."""

    number: int
    stream: TextStream
    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    stop: StopReason | None = None

    @property
    def text(self) -> str:
        """Everything written so far."""
        return "".join(self.texts)


class AppendedToken(NamedTuple):
    """A token that was appended to its sequence: its place there, the text it completed, the time it took."""

    step: int
    token: int
    text: str
    seconds: float
    stop: StopReason | None


@dataclass(frozen=True, slots=True)
class FinishedSequence:
    """A finished sequence as `Finished` reports it."""

    ids: tuple[int, ...]
    text: str
    score: float | None = None
    number: int = 0


StopFilter = Callable[[StopReason | None, Sequence[int]], StopReason | None]
"""(why a text ends, its new tokens) → the same, with what the form it is held to says of that."""


class SequenceWriter:
    """Writes the tokens of a run to their tracks, and makes the events that tell of it."""

    def __init__(
        self,
        model: LoadedModel,
        stopping: StoppingCriteria,
        counters: RunCounters,
        text: TextStream,
        stop_filter: StopFilter,
    ) -> None:
        """`text`: what stands before the first new token."""
        self._model, self._stopping, self._counters, self._text = model, stopping, counters, text
        self._stop_filter = stop_filter

    def new_sequence(self, number: int) -> SequenceState:
        """A fresh sequence."""
        return SequenceState(number, self._text.copy())

    def append_token(self, sequence: SequenceState, token: int) -> AppendedToken:
        """Append a token to its sequence, and see whether that ends it."""
        text = sequence.stream.push(token)
        sequence.ids.append(token)
        sequence.texts.append(text)
        seconds = self._counters.count_token()
        sequence.stop = self._stop_filter(
            self._stopping.check(sequence.number, token, len(sequence.ids), text), sequence.ids
        )
        return AppendedToken(len(sequence.ids) - 1, token, text, seconds, sequence.stop)

    def emit_token(
        self,
        sequence: SequenceState,
        appended: AppendedToken,
        stats: StepStats,
        method: Method,
        layer_choice: LayerChoice | None = None,
        origin: Origin = "target",
        seconds: float = 0.0,
    ) -> Iterator[Event]:
        """A noted token's TokenChosen, and SequenceFinished when it ends there. `seconds`: what reading it took."""
        yield build_token_event(
            self._model.pieces, sequence.number, appended, stats, method, layer_choice, origin, seconds
        )
        if appended.stop:
            yield _finish_sequence(sequence, appended.stop)

    def append_and_emit(
        self, sequence: SequenceState, stats: StepStats, method: Method, origin: Origin = "target"
    ) -> Iterator[Event]:
        """Append a token to its sequence and tell of it at once."""
        yield from self.emit_token(sequence, self.append_token(sequence, stats.token), stats, method, origin=origin)


def build_token_event(
    pieces: TokenSpellings, sequence: int, appended: AppendedToken, stats: StepStats, method: Method,
    layer_choice: LayerChoice | None = None, origin: Origin = "target", seconds: float = 0.0,
) -> TokenChosen:  # fmt: skip
    """One token of a text as an event. `seconds`: what reading it took, beside the note's."""
    made = _Open()
    made.step, made.sequence, made.id = appended.step, sequence, appended.token
    made.piece, made.text, made.special = pieces[appended.token], appended.text, appended.token in pieces.special
    made.raw_probability, made.probability = math.exp(stats.raw_log_probability), math.exp(stats.log_probability)
    made.raw_log_probability, made.log_probability = stats.raw_log_probability, stats.log_probability
    made.rank, made.final_rank = stats.rank, stats.final_rank
    made.entropy, made.varentropy = stats.entropy, stats.varentropy
    made.method, made.origin, made.layer_choice = method, origin, layer_choice
    made.seconds = appended.seconds + seconds
    made.source = stats.details
    made.__class__ = TokenChosen
    closed: TokenChosen = made
    return closed


_Open = mutable_builder(TokenChosen)


def stop_sequence(track: SequenceState, stop: StopReason) -> SequenceFinished:
    """Close a sequence that somebody stopped."""
    track.stop = stop
    return _finish_sequence(track, stop)


def _finish_sequence(track: SequenceState, stop: StopReason) -> SequenceFinished:
    tail = track.stream.flush()
    track.texts.append(tail)
    return SequenceFinished(track.number, stop.reason, stop.string, stop.limit, tail, stop.whole)
