"""One run from the inside: everything a strategy needs, prepared, and the events they all emit alike."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from transformers import GenerationConfig

from core import caches
from core.caches.base import CacheBackend
from core.caches.prefixes.store import PrefixStore
from core.caches.tensors.editing import record_past
from core.decoding.forward.forward import Forward, Output
from core.decoding.funnel import Funnel, build_funnel
from core.decoding.observe import Reading
from core.decoding.prompt import encode, prompt_tokens
from core.decoding.reuse import Reuse
from core.decoding.stopping import Stop, Stopping, build_stopping, eos_ids
from core.defaults import non_default
from core.device_memory import PeakMemory
from core.errors import CacheError, NumericError, ParameterError, PromptError
from core.events import (
    CacheMeasured,
    Event,
    LayerChoice,
    Method,
    Metrics,
    Origin,
    Prefilled,
    RunStarted,
    SequenceFinished,
    TokenChosen,
)
from core.models.model import LoadedModel
from core.models.text import TextStream
from core.parameter import check
from core.processors.base import Context
from core.request import Request
from core.strategies.base import Strategy

_DRAFT_ROOM = 128
"""Tokens a fixed cache can hold beyond the run's limit: a draft is read before it is known how much of it stays."""


@dataclass(slots=True)
class Track:
    """One sequence as it is written."""

    number: int
    stream: TextStream
    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    stop: Stop | None = None

    @property
    def text(self) -> str:
        """Everything written so far."""
        return "".join(self.texts)


@dataclass(frozen=True, slots=True)
class Note:
    """A token that was appended to its sequence: its place there, the text it completed, the time it took."""

    step: int
    token: int
    text: str
    seconds: float
    stop: Stop | None


@dataclass(frozen=True, slots=True)
class Written:
    """A finished sequence as `Finished` reports it."""

    ids: tuple[int, ...]
    text: str
    score: float | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Drafting:
    """What speculation did in a run: tokens, and seconds; None without drafts."""

    accepted: int = 0
    examined: int = 0
    draft_seconds: float | None = None
    verify_seconds: float | None = None
    overhead_seconds: float | None = None
    predicted_speedup: float | None = None


class DecodingRun:
    """A prepared request: prompt ids, cache, funnel, stopping rules, random generator and the figures of the run.

    Raises the errors of `encode`, `build_funnel` and CacheError when it cannot be prepared.
    """

    def __init__(
        self,
        model: LoadedModel,
        request: Request,
        strategy: Strategy,
        config: GenerationConfig,
        cancel: threading.Event,
        prefixes: PrefixStore | None = None,
    ) -> None:
        self.model, self.request, self.strategy, self.config, self.cancel = model, request, strategy, config, cancel
        self.backend = self._choose_backend()
        self.prompt_ids = encode(model, request.prompt, self.backend.unbounded)
        self.start_ids = self._decoder_start() if model.is_encoder_decoder else self.prompt_ids
        self.stopping: Stopping = build_stopping(
            config, len(self.start_ids), None if self.backend.unbounded else model.context
        )
        self._check_room()
        self.forward = Forward(model, self._build_cache())
        self._reuse = Reuse(model, request, self.backend, strategy, prefixes, self._build_cache)
        self._reused = 0
        self.generator = torch.Generator(model.device).manual_seed(request.seed)
        self.results: list[Written] = []
        self.stopped = False
        self._begun = self._last = time.perf_counter()
        self._first: float | None = None
        self._prefill_seconds = 0.0
        self._new_tokens = 0
        self._peak = 0
        self._memory = PeakMemory(model.device)
        self.drafting = Drafting()

    @property
    def sequences(self) -> int:
        """How many texts are written side by side."""
        return int(self.config.num_return_sequences or 1) if self.config.do_sample or self.beams > 1 else 1

    @property
    def beams(self) -> int:
        """Hypotheses kept at once; 1 for strategies that have none."""
        return int(self.config.num_beams or 1)

    @property
    def max_length(self) -> int:
        """Most tokens the decoder will ever hold."""
        return len(self.start_ids) + self.stopping.max_new

    @property
    def rows(self) -> int:
        """What the cache holds side by side while tokens are chosen: texts, beams, or contrastive candidates."""
        return self.strategy.rows(self.config, self.model.vocabulary)

    @property
    def room(self) -> int:
        """Tokens a cache of fixed size must have room for: the text, and drafts that may be taken back."""
        return self.max_length + (_DRAFT_ROOM if self.strategy.speculates else 0)

    @cached_property
    def funnel(self) -> Funnel:
        """Processors of this configuration."""
        return build_funnel(self.context)

    @cached_property
    def context(self) -> Context:
        """What processors are built from."""
        device = self.model.device
        eos = sorted(eos_ids(self.config))
        return Context(
            model=self.model,
            config=self.config,
            start=len(self.start_ids),
            max_length=self.max_length,
            encoder_ids=torch.tensor([self.prompt_ids], device=device),
            eos=torch.tensor(eos, device=device) if eos else None,
            keep=max(len(eos) + 1, 2) if self.beams > 1 else 1,
            negative_ids=self._negative_ids(),
            options=self.request.options,
        )

    def begin(self) -> RunStarted:
        """The first event."""
        return RunStarted(
            strategy=self.strategy.name,
            model=self.model.name,
            device=str(self.model.device),
            dtype=str(self.model.dtype).removeprefix("torch."),
            cache=self.backend.name,
            seed=self.request.seed,
            prompt=prompt_tokens(self.prompt_ids, self.model.pieces),
            settings=tuple(non_default(self.config).items()),
            sequences=self.sequences,
            vocabulary=self.model.vocabulary,
            context=self.model.context,
        )

    def prefill(self, rows: int = 1, *, hidden: bool = False, whole: bool = False) -> tuple[Output, Prefilled]:
        """Read the prompt once and leave the memory `rows` rows wide; logits [rows, 1, V], or [1, 1, V] to expand.

        What an earlier run has read is not read again, unless the `whole` prompt's hidden states are wanted.
        """
        begun = time.perf_counter()
        device = self.model.device
        if self.model.is_encoder_decoder:
            self.forward.encode(torch.tensor([self.prompt_ids], device=device))
        self._reused = 0 if whole else self._reuse.start(self.forward, self.start_ids)
        ids = torch.tensor([self.start_ids[self._reused :]], device=device)
        expand_first = self.forward.cache is None
        output = self.forward(ids.repeat(rows, 1) if expand_first else ids, hidden=hidden)
        self._reuse.keep_prompt(self.forward, self.start_ids, rows)
        if rows > 1 and not expand_first:
            self.forward.expand(rows)
            output = Output(output.logits.expand(rows, -1, -1), output.hidden)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        self._last = time.perf_counter()
        self._prefill_seconds = self._last - begun
        return output, Prefilled(len(self.prompt_ids), self._prefill_seconds, self._reused)

    def track(self, number: int) -> Track:
        """A fresh sequence."""
        return Track(number, TextStream(self.model.tokenizer, self.start_ids))

    def note(self, track: Track, token: int) -> Note:
        """Append a token to its sequence, and see whether that ends it."""
        text = track.stream.push(token)
        track.ids.append(token)
        track.texts.append(text)
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        self._first = self._first or now
        self._new_tokens += 1
        track.stop = self.stopping.check(track.number, token, len(track.ids), text)
        return Note(len(track.ids) - 1, token, text, seconds, track.stop)

    def note_events(
        self, track: Track, note: Note, reading: Reading, method: Method, layer_choice: LayerChoice | None = None,
        origin: Origin = "target", seconds: float = 0.0,
    ) -> Iterator[Event]:  # fmt: skip
        """A noted token's TokenChosen, and SequenceFinished when it ends there. `seconds`: what reading it took."""
        pieces = self.model.pieces
        yield TokenChosen(
            step=note.step, sequence=track.number, id=note.token, piece=pieces[note.token], text=note.text,
            raw_probability=math.exp(reading.raw_log_probability), probability=math.exp(reading.log_probability),
            raw_log_probability=reading.raw_log_probability, log_probability=reading.log_probability,
            rank=reading.rank, entropy=reading.entropy, seconds=note.seconds + seconds,
            alternatives=reading.alternatives, funnel=reading.funnel, method=method, layer_choice=layer_choice,
            special=note.token in pieces.special, origin=origin, final_rank=reading.final_rank,
        )  # fmt: skip
        if note.stop:
            yield self._finish_track(track, note.stop)

    def token_events(
        self, track: Track, reading: Reading, method: Method, origin: Origin = "target"
    ) -> Iterator[Event]:
        """Append a token to its sequence and tell of it at once."""
        yield from self.note_events(track, self.note(track, reading.token), reading, method, origin=origin)

    def is_measured(self, step: int) -> bool:
        """Whether the cache is measured after this step."""
        return step % 16 == 0

    def step_done(self, step: int) -> Iterator[Event]:
        """After all sequences of a step: restart its clock, and measure the cache now and then."""
        if self.is_measured(step):
            yield self.measure(step)
        self._last = time.perf_counter()

    def note_length(self, tokens: int) -> None:
        """Beams: the text is this long now; figures on speed speak of one hypothesis, the best in the end."""
        self._first = self._first or time.perf_counter()
        self._new_tokens = tokens

    def measure(self, step: int) -> CacheMeasured:
        """Bytes of the cache now."""
        now = self.backend.measure(self.forward.cache)
        self._peak = max(self._peak, now.bytes)
        return CacheMeasured(step, now.tokens, now.bytes, self._peak, now.parts, now.layers, now.held, now.error)

    def end(self, tracks: Sequence[Track]) -> Iterator[Event]:
        """Close what is still open (the user stopped) and keep the sequences as the run's results."""
        for track in tracks:
            if track.stop is None:
                track.stop = Stop("stopped")
                yield self._finish_track(track, track.stop)
        yield self.measure(max((len(track.ids) for track in tracks), default=0))
        self.results = [Written(tuple(track.ids), track.text, None, track.number) for track in tracks]
        if tracks:
            self._reuse.keep_text(self.forward, [*self.start_ids, *tracks[0].ids], len(tracks))

    def _finish_track(self, track: Track, stop: Stop) -> SequenceFinished:
        tail = track.stream.flush()
        track.texts.append(tail)
        return SequenceFinished(track.number, stop.reason, stop.string, stop.limit, tail)

    def is_cancelled(self) -> bool:
        """Whether the user asked to stop; remembers it."""
        self.stopped = self.stopped or self.cancel.is_set()
        return self.stopped

    def metrics(self) -> Metrics:
        """Figures of the run so far."""
        now = time.perf_counter()
        decoding = self._last - self._first if self._first else 0.0
        later = self._new_tokens - (1 if self.beams > 1 else self.sequences)
        drafting = self.drafting
        passes = self.forward.passes
        computed = len(self.prompt_ids) - self._reused
        return Metrics(
            prompt_tokens=len(self.prompt_ids),
            new_tokens=self._new_tokens,
            seconds=now - self._begun,
            time_to_first_token=self._first - self._begun if self._first else None,
            prefill_tokens_per_second=computed / self._prefill_seconds if self._prefill_seconds else None,
            decode_tokens_per_second=later / decoding if later > 0 and decoding > 0 else None,
            target_passes=passes,
            tokens_per_target_pass=self._new_tokens / passes if passes and self._new_tokens else None,
            acceptance_rate=drafting.accepted / drafting.examined if drafting.examined else None,
            draft_seconds=drafting.draft_seconds,
            verify_seconds=drafting.verify_seconds,
            overhead_seconds=drafting.overhead_seconds,
            predicted_speedup=drafting.predicted_speedup,
            cache_bytes=self.backend.measure(self.forward.cache).bytes,
            cache_peak_bytes=self._peak,
            peak_memory_bytes=self._memory.read(),
        )

    def repair(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits [B, V], with NaN and infinity replaced when `remove_invalid_values` asks for it."""
        return torch.nan_to_num(logits) if self.config.remove_invalid_values else logits

    def check_scores(self, scores: torch.Tensor, raw: torch.Tensor, step: int) -> None:
        """Raise NumericError for logits that are no numbers, ParameterError when the settings leave no token."""
        if torch.isfinite(scores.amax(-1)).all():
            return
        if torch.isnan(raw).any() or torch.isposinf(raw).any() or torch.isnan(scores).any():
            raise NumericError(
                f"{self.model.name} produced NaN or infinity instead of scores at step {step + 1}.",
                "Try float32, check the weights, or switch on “Repair invalid numbers” (remove_invalid_values).",
            )
        raise ParameterError(
            f"The settings leave no token to choose from at step {step + 1}: every one is banned.",
            "Loosen the banned words, suppressed tokens, n-gram limits or forced tokens.",
        )

    def _decoder_start(self) -> list[int]:
        start = self.config.decoder_start_token_id
        start = self.config.bos_token_id if start is None else start
        if start is None:
            raise PromptError(
                f"{self.model.name} does not say which token its decoder starts with.",
                "Set decoder_start_token_id in its generation_config.json.",
            )
        return [start[0] if isinstance(start, list) else int(start)]

    def _check_room(self) -> None:
        if self.stopping.max_new < 1:
            raise PromptError(
                f"max_length is {self.config.max_length} and the prompt alone has {len(self.start_ids)} tokens.",
                "Set max_new_tokens, or a greater max_length.",
            )

    def _choose_backend(self) -> CacheBackend:
        name = self.request.cache
        try:
            backend = caches.registry[name]
        except KeyError:
            known = ", ".join(caches.registry)
            raise CacheError(f"There is no cache “{name}”.", f"Choose one of: {known}.") from None
        _check_options(backend, self.request.cache_options)
        if reason := backend.why_not(self.model, self.strategy.needs, self.request.cache_options):
            raise CacheError(f"{backend.title} cannot serve: {reason}", "Choose another cache or another model.")
        return backend

    def _build_cache(self) -> Any:
        """An empty cache, with room and memory for drafts that may have to be taken back."""
        cache = self.backend.build(self.model, self.room, self.request.cache_options)
        if self.strategy.speculates and cache is not None:
            record_past(cache, True)
        return cache

    def _negative_ids(self) -> torch.Tensor | None:
        if self.request.negative_prompt is None:
            return None
        ids = torch.tensor([encode(self.model, self.request.negative_prompt)], device=self.model.device)
        return ids.repeat(1 if self.beams > 1 else self.sequences, 1)


def _check_options(backend: CacheBackend, given: Mapping[str, Any]) -> None:
    """Types and ranges of the cache's settings. Raises ParameterError."""
    known = {parameter.name: parameter for parameter in backend.parameters}
    for name, value in given.items():
        if name not in known:
            raise ParameterError(
                f"The cache “{backend.title}” has no setting “{name}”.",
                f"It knows: {', '.join(known) or 'none'}.",
                name,
            )
        if value is not None:
            check(known[name], value)
