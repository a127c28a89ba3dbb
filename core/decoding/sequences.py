"""Sequences of a run: append tokens, decode their text, emit their events."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from decodescope.core.caches.base import CacheBackend
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.step_stats import StepStats
from decodescope.core.decoding.stopping import StoppingCriteria, StopReason
from decodescope.core.events import (
    CacheMeasured,
    Event,
    LayerChoice,
    Method,
    Metrics,
    Origin,
    SequenceFinished,
    TokenChosen,
    WithdrawnPhrase,
)
from decodescope.core.events.columns import mutable_builder
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.text import TextStream, TokenSpellings
from decodescope.core.system.device_memory import PeakMemory
from decodescope.core.system.gpu import device_memory

_MEASURE_INTERVAL = 16
"""Steps between two measurements of the cache."""
MAX_MEASURE_SECONDS = 0.5
"""Seconds after which it is measured at the next step, so that the figure is as fresh as the number of tokens."""


def is_cache_measured(step: int, rows: int = 1) -> bool:
    """Return whether the cache is measured after this step, and compacted where drafts leave gaps. With many `rows`
    (beams) the cache grows faster and a step takes longer: it is measured more often.
    """
    return step % max(1, _MEASURE_INTERVAL // rows) == 0


@dataclass(frozen=True, slots=True)
class DraftingCounters:
    """Speculation counters of a run: tokens and seconds; None without drafts."""

    accepted: int = 0
    examined: int = 0
    draft_seconds: float | None = None
    verify_seconds: float | None = None
    overhead_seconds: float | None = None
    predicted_speedup: float | None = None


@dataclass(slots=True)
class RunCounters:
    """Stopwatch and counters; `sequences` is the number of sequences whose first token comes with the first pass."""

    device: torch.device
    prompt_tokens: int
    sequences: int
    reused_tokens: int = 0
    """Prompt tokens reused from an earlier run."""
    drafting: DraftingCounters = field(default_factory=DraftingCounters)
    _started: float = field(default_factory=time.perf_counter, init=False)
    _last_token_time: float = field(default_factory=time.perf_counter, init=False)
    _first_token_time: float | None = field(default=None, init=False)
    _prefill_seconds: float = field(default=0.0, init=False)
    _new_tokens: int = field(default=0, init=False)
    _peak_bytes: int = field(default=0, init=False)
    _last_measure_time: float = field(default_factory=time.perf_counter, init=False)
    is_measure_overdue: bool = field(default=False, init=False)
    """Whether the cache is measured after the current step, whatever its number (`check_overdue`)."""
    _memory: PeakMemory = field(init=False)

    def __post_init__(self) -> None:
        self._memory = PeakMemory(self.device)

    def finish_prefill(self, started: float) -> float:
        """Record the end of prefill, which started at `started`; return its seconds."""
        self._last_token_time = time.perf_counter()
        self._prefill_seconds = self._last_token_time - started
        return self._prefill_seconds

    def count_token(self) -> float:
        """Count one token; return the seconds since the previous one."""
        now = time.perf_counter()
        seconds, self._last_token_time = now - self._last_token_time, now
        self._first_token_time = self._first_token_time or now
        self._new_tokens += 1
        return seconds

    def restart_clock(self) -> None:
        """Start timing the next token."""
        self._last_token_time = time.perf_counter()

    def check_overdue(self) -> bool:
        """Decide at the beginning of a step whether the last measurement of the cache is too old; return it."""
        self.is_measure_overdue = time.perf_counter() - self._last_measure_time > MAX_MEASURE_SECONDS
        return self.is_measure_overdue

    def set_length(self, tokens: int) -> None:
        """Set the token count for beam search; speed metrics refer to one hypothesis, finally the best."""
        self._first_token_time = self._first_token_time or time.perf_counter()
        self._new_tokens = tokens

    def measure(self, backend: CacheBackend, forward: Forward, step: int) -> CacheMeasured:
        """Return the current size of the cache in bytes."""
        now = backend.measure(forward.cache)
        self._last_measure_time, self.is_measure_overdue = time.perf_counter(), False
        self._peak_bytes = max(self._peak_bytes, now.bytes)
        return CacheMeasured(
            step,
            now.tokens,
            now.bytes,
            self._peak_bytes,
            now.parts,
            now.layers,
            now.held_ranges,
            now.error,
            now.spare_bytes,
            *(device_memory(self.device) or ()),
        )

    def metrics(self, backend: CacheBackend, forward: Forward) -> Metrics:
        """Return all metrics so far."""
        drafting, passes, written = self.drafting, forward.passes, self._new_tokens
        decoding = self._last_token_time - self._first_token_time if self._first_token_time else 0.0
        later, computed = written - self.sequences, self.prompt_tokens - self.reused_tokens
        return Metrics(
            prompt_tokens=self.prompt_tokens,
            new_tokens=written,
            seconds=time.perf_counter() - self._started,
            time_to_first_token=self._first_token_time - self._started if self._first_token_time else None,
            prefill_tokens_per_second=computed / self._prefill_seconds if self._prefill_seconds else None,
            decode_tokens_per_second=later / decoding if later > 0 and decoding > 0 else None,
            target_passes=passes,
            tokens_per_target_pass=written / passes if passes and written else None,
            acceptance_rate=drafting.accepted / drafting.examined if drafting.examined else None,
            draft_seconds=drafting.draft_seconds,
            verify_seconds=drafting.verify_seconds,
            overhead_seconds=drafting.overhead_seconds,
            predicted_speedup=drafting.predicted_speedup,
            cache_bytes=backend.measure(forward.cache).bytes,
            cache_peak_bytes=self._peak_bytes,
            peak_memory_bytes=self._memory.read(),
        )


@dataclass(slots=True)
class SequenceState:
    """State of one sequence during the run."""

    number: int
    stream: TextStream
    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    stop: StopReason | None = None

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self.texts)


class AppendedToken(NamedTuple):
    """A token appended to its sequence: position, completed text, and time."""

    step: int
    token: int
    text: str
    seconds: float
    stop: StopReason | None
    is_forced: bool = False
    """Whether it was written by force instead of chosen."""
    withdrawn: tuple[WithdrawnPhrase, ...] = ()
    """What was written from here on before, and withdrawn."""


@dataclass(frozen=True, slots=True)
class FinishedSequence:
    """A finished sequence as `Finished` reports it."""

    ids: tuple[int, ...]
    text: str
    score: float | None = None
    number: int = 0


StopFilter = Callable[[StopReason | None, Sequence[int]], StopReason | None]
"""(stop reason, new tokens) → stop reason adjusted by the grammar."""
ForcedTest = Callable[[Sequence[int], int], bool]
"""(new tokens, number of the sequence) → whether the next one is written by force."""


class SequenceWriter:
    """Appends tokens to sequences and emits their events."""

    def __init__(
        self,
        model: LoadedModel,
        stopping: StoppingCriteria,
        counters: RunCounters,
        text: TextStream,
        stop_filter: StopFilter,
        is_forced: ForcedTest,
    ) -> None:
        """Start sequences with `text`, the stream before the first new token."""
        self._model, self._stopping, self._counters, self._text = model, stopping, counters, text
        self._stop_filter, self._is_forced = stop_filter, is_forced

    def new_sequence(self, number: int) -> SequenceState:
        """Return a new sequence."""
        return SequenceState(number, self._text.copy())

    def append_token(
        self, sequence: SequenceState, token: int, withdrawn: tuple[WithdrawnPhrase, ...] = ()
    ) -> AppendedToken:
        """Append a token to its sequence and check whether it ends there. `withdrawn`: what stood there before."""
        is_forced = self._is_forced(sequence.ids, sequence.number)
        text = sequence.stream.push(token)
        sequence.ids.append(token)
        sequence.texts.append(text)
        seconds = self._counters.count_token()
        sequence.stop = self._stop_filter(
            self._stopping.check(sequence.number, token, len(sequence.ids), text), sequence.ids
        )
        return AppendedToken(len(sequence.ids) - 1, token, text, seconds, sequence.stop, is_forced, withdrawn)

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
        """Emit TokenChosen for an appended token, and SequenceFinished if the sequence ends. `seconds`: additional
        time.
        """
        yield build_token_event(
            self._model.pieces, sequence.number, appended, stats, method, layer_choice, origin, seconds
        )
        if appended.stop:
            yield _finish_sequence(sequence, appended.stop)

    def append_and_emit(
        self, sequence: SequenceState, stats: StepStats, method: Method, origin: Origin = "target"
    ) -> Iterator[Event]:
        """Append a token to its sequence and emit its event."""
        yield from self.emit_token(sequence, self.append_token(sequence, stats.token), stats, method, origin=origin)


def build_token_event(
    pieces: TokenSpellings, sequence: int, appended: AppendedToken, stats: StepStats, method: Method,
    layer_choice: LayerChoice | None = None, origin: Origin = "target", seconds: float = 0.0,
) -> TokenChosen:  # fmt: skip
    """Build the event of one token. `seconds` is added to the note's time."""
    made = _Open()
    made.step, made.sequence, made.id = appended.step, sequence, appended.token
    made.piece, made.text, made.special = pieces[appended.token], appended.text, appended.token in pieces.special
    made.raw_probability, made.probability = math.exp(stats.raw_log_probability), math.exp(stats.log_probability)
    made.raw_log_probability, made.log_probability = stats.raw_log_probability, stats.log_probability
    made.rank, made.final_rank = stats.rank, stats.final_rank
    made.entropy, made.varentropy = stats.entropy, stats.varentropy
    made.method, made.layer_choice = method, layer_choice
    made.origin = "forced" if appended.is_forced else origin
    made.seconds, made.withdrawn = appended.seconds + seconds, appended.withdrawn
    made.source = stats.details
    made.__class__ = TokenChosen
    closed: TokenChosen = made
    return closed


_Open = mutable_builder(TokenChosen)


def stop_sequence(track: SequenceState, stop: StopReason) -> SequenceFinished:
    """Close a sequence that the user stopped."""
    track.stop = stop
    return _finish_sequence(track, stop)


def _finish_sequence(track: SequenceState, stop: StopReason) -> SequenceFinished:
    tail = track.stream.flush()
    track.texts.append(tail)
    return SequenceFinished(track.number, stop.reason, stop.string, stop.limit, tail, stop.whole)
