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
from core.events.mutable_builders import open_twin
from core.models.loaded_model import LoadedModel
from core.models.text import Pieces, TextStream


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


Judge = Callable[[StopReason | None, Sequence[int]], StopReason | None]
"""(why a text ends, its new tokens) → the same, with what the form it is held to says of that."""


class SequenceWriter:
    """Writes the tokens of a run to their tracks, and makes the events that tell of it."""

    def __init__(
        self, model: LoadedModel, stopping: StoppingCriteria, figures: RunCounters, text: TextStream, judge: Judge
    ) -> None:
        """`text`: what stands before the first new token."""
        self._model, self._stopping, self._figures, self._text = model, stopping, figures, text
        self._judge = judge

    def track(self, number: int) -> SequenceState:
        """A fresh sequence."""
        return SequenceState(number, self._text.copy())

    def note(self, track: SequenceState, token: int) -> AppendedToken:
        """Append a token to its sequence, and see whether that ends it."""
        text = track.stream.push(token)
        track.ids.append(token)
        track.texts.append(text)
        seconds = self._figures.token_written()
        track.stop = self._judge(self._stopping.check(track.number, token, len(track.ids), text), track.ids)
        return AppendedToken(len(track.ids) - 1, token, text, seconds, track.stop)

    def tell(
        self,
        track: SequenceState,
        note: AppendedToken,
        reading: StepStats,
        method: Method,
        layer_choice: LayerChoice | None = None,
        origin: Origin = "target",
        seconds: float = 0.0,
    ) -> Iterator[Event]:
        """A noted token's TokenChosen, and SequenceFinished when it ends there. `seconds`: what reading it took."""
        yield token_event(self._model.pieces, track.number, note, reading, method, layer_choice, origin, seconds)
        if note.stop:
            yield _finished(track, note.stop)

    def write(
        self, track: SequenceState, reading: StepStats, method: Method, origin: Origin = "target"
    ) -> Iterator[Event]:
        """Append a token to its sequence and tell of it at once."""
        yield from self.tell(track, self.note(track, reading.token), reading, method, origin=origin)


def token_event(
    pieces: Pieces, sequence: int, note: AppendedToken, reading: StepStats, method: Method,
    layer_choice: LayerChoice | None = None, origin: Origin = "target", seconds: float = 0.0,
) -> TokenChosen:  # fmt: skip
    """One token of a text as an event. `seconds`: what reading it took, beside the note's."""
    made = _Open()
    made.step, made.sequence, made.id = note.step, sequence, note.token
    made.piece, made.text, made.special = pieces[note.token], note.text, note.token in pieces.special
    made.raw_probability, made.probability = math.exp(reading.raw_log_probability), math.exp(reading.log_probability)
    made.raw_log_probability, made.log_probability = reading.raw_log_probability, reading.log_probability
    made.rank, made.final_rank = reading.rank, reading.final_rank
    made.entropy, made.varentropy = reading.entropy, reading.varentropy
    made.method, made.origin, made.layer_choice = method, origin, layer_choice
    made.seconds = note.seconds + seconds
    made.source = reading.look
    made.__class__ = TokenChosen
    closed: TokenChosen = made
    return closed


_Open = open_twin(TokenChosen)


def stopped(track: SequenceState, stop: StopReason) -> SequenceFinished:
    """Close a sequence that somebody stopped."""
    track.stop = stop
    return _finished(track, stop)


def _finished(track: SequenceState, stop: StopReason) -> SequenceFinished:
    tail = track.stream.flush()
    track.texts.append(tail)
    return SequenceFinished(track.number, stop.reason, stop.string, stop.limit, tail, stop.whole)
