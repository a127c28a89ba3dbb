"""Events of one prompt's run within a `generate` call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from decodescope.core import caches
from decodescope.core.caches.measurement import Measurement
from decodescope.core.caches.tensors.cache_operations import measure_storages
from decodescope.core.common.hf_generation import WITHOUT_EFFECT, non_default
from decodescope.core.decoding.prompt import to_prompt_tokens
from decodescope.core.decoding.sequences import (
    MAX_MEASURE_SECONDS,
    AppendedToken,
    SequenceState,
    build_token_event,
    is_cache_measured,
    stop_sequence,
)
from decodescope.core.decoding.stopping import StopReason
from decodescope.core.events import CacheMeasured, Event, Finished, Metrics, Prefilled, PromptToken, RunEnd, RunStarted
from decodescope.core.generate_recording.call_facts import GeneratorStart
from decodescope.core.models.text import TextStream

if TYPE_CHECKING:
    from transformers import GenerationConfig
    from transformers.cache_utils import Cache

    from decodescope.core.decoding.step_stats import StepStats
    from decodescope.core.events import AdapterUsed, CallFacts, Method, Origin
    from decodescope.core.models.loaded_model import LoadedModel

_STRATEGIES = {
    "greedy_search": "greedy", "sample": "sampling", "beam_search": "beam_search", "beam_sample": "beam_sampling",
    "contrastive_search": "contrastive", "dola_generation": "dola", "group_beam_search": "diverse_beam_search",
    "constrained_beam_search": "constrained_beam_search",
}  # fmt: skip
"""transformers' GenerationMode → strategy."""
_CACHES = {"StaticCache": "static", "QuantizedCache": "quantized", "OffloadedCache": "offloaded"}


def strategy_name(config: GenerationConfig, has_assistant: bool) -> str:
    """Return the strategy that a call's settings select, by its name in the registry."""
    assistant: Any = has_assistant or None  # only whether there is one matters
    mode = config.get_generation_mode(assistant).value
    if mode != "assisted_generation":
        return _STRATEGIES.get(mode, mode)
    flags = {
        "early_exit": config.assistant_early_exit, "prompt_lookup": config.prompt_lookup_num_tokens,
        "prediction_heads": getattr(config, "use_mtp", None),
    }  # fmt: skip
    return next((name for name, value in flags.items() if value), "assisted")


def cache_backend_name(cache: Cache | None) -> str:
    """Return the name of the cache backend that equals a `generate` call's cache."""
    half = getattr(cache, "self_attention_cache", cache)
    if half is None:
        return "model_specific"
    layers = getattr(half, "layers", ())
    if any("Sliding" in type(layer).__name__ or "Linear" in type(layer).__name__ for layer in layers):
        return "model_specific"
    static = any("Static" in type(layer).__name__ for layer in layers)
    quantized = any("Quant" in type(layer).__name__ for layer in layers)
    name = "static" if static else "quantized" if quantized else _CACHES.get(type(half).__name__, "dynamic")
    return name if name in caches.registry else "dynamic"


@dataclass(frozen=True, slots=True)
class CapturedPrompt:
    """The tokens before the first new one of a row."""

    prompt: list[int]
    """Prompt tokens; for an encoder–decoder the source, empty if its encoder reads no text."""
    start: list[int]
    """Decoder tokens before the first new one, including forced ones."""
    beginning: list[int] = field(default_factory=list)
    """The part of `start` that the caller forced (`decoder_input_ids`)."""


class RunOrigin(NamedTuple):
    """Properties of a call besides its prompt and its settings."""

    facts: CallFacts = ()
    generator: GeneratorStart = GeneratorStart()
    adapters: tuple[AdapterUsed, ...] = ()
    """PEFT's adapters."""
    memory_hash: str = ""


class RunWriter:
    """Builds the events of one run; `emit` receives each."""

    def __init__(
        self, model: LoadedModel, config: GenerationConfig, prompt: CapturedPrompt, strategy: str, sequences: int,
        emit: Callable[[Event], None], origin: RunOrigin | None = None,
    ) -> None:  # fmt: skip
        self.model, self.config, self.prompt, self.strategy = model, config, prompt, strategy
        self._origin = origin or RunOrigin()
        self.emit = emit
        self.passes = self.new_tokens = 0
        self.examined = self.accepted = 0
        self.draft_seconds = self.verify_seconds = self.overhead_seconds = 0.0
        self._started = self._last = time.perf_counter()
        self._first_token = self._prefill_seconds = 0.0
        self._cache = Measurement(0, 0)
        self._peak = 0
        self._measured_at = self._started
        stream = TextStream(model.tokenizer, prompt.start[: len(prompt.start) - len(prompt.beginning)], model.pieces)
        self._beginning = tuple(self._beginning_tokens(stream))
        self.sequences = [SequenceState(number, stream.copy()) for number in range(sequences)]

    def _beginning_tokens(self, stream: TextStream) -> Iterator[PromptToken]:
        pieces = self.model.pieces
        for token in self.prompt.beginning:
            text, piece = stream.push(token), pieces[token]
            yield PromptToken(token, text, piece if piece != text else "", token in pieces.special)

    def start(self, started: float, cache: Cache | None) -> None:
        """Emit RunStarted; the call began at `started` (`time.perf_counter`)."""
        self._started = started
        config, model = self.config, self.model
        self.emit(RunStarted(
            strategy=self.strategy, model=model.name, device=str(model.device), dtype=model.weights,
            cache=cache_backend_name(cache), seed=self._origin.generator.seed,
            prompt=to_prompt_tokens(self.prompt.prompt, model.pieces), settings=tuple(plain_settings(config).items()),
            sequences=len(self.sequences), vocabulary=model.vocabulary, context=model.context,
            beginning=self._beginning, identity=replace(model.identity, memory_hash=self._origin.memory_hash),
            adapters=(*model.adapters.used(), *self._origin.adapters), placement=model.placement,
            call_facts=self._origin.facts, generator=self._origin.generator.hash, thinking=model.thinking_marks,
        ))  # fmt: skip

    def prefilled(self) -> None:
        """Emit Prefilled; the prompt has just been read."""
        self._last = time.perf_counter()
        self._prefill_seconds = self._last - self._started
        self.emit(Prefilled(len(self.prompt.prompt) + len(self.prompt.beginning), self._prefill_seconds))

    def lap(self) -> float:
        """Return the seconds since the previous call, the previous token or the prefill."""
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        self._first_token = self._first_token or now
        return seconds

    def append(
        self, sequence: SequenceState, stats: StepStats, method: Method, seconds: float, stop: StopReason | None,
        origin: Origin = "target",
    ) -> None:  # fmt: skip
        """Append a token to a sequence and emit its event, and SequenceFinished if it ends there."""
        text = sequence.stream.push(stats.token)
        sequence.ids.append(stats.token)
        sequence.texts.append(text)
        self.new_tokens += 1
        appended = AppendedToken(len(sequence.ids) - 1, stats.token, text, seconds, stop)
        self.emit(build_token_event(self.model.pieces, sequence.number, appended, stats, method, origin=origin))
        if stop is not None:
            self.emit(stop_sequence(sequence, stop))

    def end(self, sequence: SequenceState, stop: StopReason) -> None:
        """End a sequence and emit SequenceFinished, unless it has ended already."""
        if sequence.stop is None:
            self.emit(stop_sequence(sequence, stop))

    def measure_cache(self, step: int, cache: Cache | None, rows: int, is_due: bool = False) -> None:
        """Emit CacheMeasured at every sixteenth step, after half a second, or if it `is_due`. The cache is shared by
        `rows` runs.
        """
        now = time.perf_counter()
        if not is_due and not is_cache_measured(step) and now - self._measured_at < MAX_MEASURE_SECONDS:
            return
        self._measured_at = now
        try:
            self._cache = _share_of(measure_storages(cache), rows)
        except Exception:  # a cache class of the caller with an unknown layout has no size to report
            return
        size = self._cache
        self._peak = max(self._peak, size.bytes)
        self.emit(CacheMeasured(
            step, size.tokens, size.bytes, self._peak, size.parts, size.layers, size.held_ranges, size.error
        ))  # fmt: skip

    def finish(self, reason: RunEnd = "completed", scores: Sequence[float] | None = None) -> None:
        """Emit Finished with the texts of all sequences; close open ones first."""
        for sequence in self.sequences:
            if sequence.stop is None:
                self.emit(stop_sequence(sequence, self.default_stop(sequence)))
        self.emit(Finished(
            reason=reason, sequences=tuple(tuple(one.ids) for one in self.sequences),
            texts=tuple(one.text for one in self.sequences), metrics=self.metrics(),
            scores=tuple(scores) if scores is not None else None,
            order=tuple(one.number for one in self.sequences),
        ))  # fmt: skip

    def default_stop(self, sequence: SequenceState) -> StopReason:
        """Return why a sequence ended that no stopping criterion ended: by its last token and its length."""
        limit = self.max_new_tokens
        if sequence.ids and sequence.ids[-1] in self.eos:
            return StopReason("eos")
        return StopReason("length", limit=limit) if limit and len(sequence.ids) >= limit else StopReason("stopped")

    @property
    def eos(self) -> frozenset[int]:
        """The end tokens."""
        return end_tokens(self.config)

    @property
    def max_new_tokens(self) -> int:
        """Largest number of new tokens; 0 without a limit."""
        return max(int(self.config.max_length or 0) - len(self.prompt.start), 0)

    def metrics(self) -> Metrics:
        """Return the metrics so far."""
        first, started, written = self._first_token, self._started, self.new_tokens
        later, decoding = written - len(self.sequences), self._last - first if first else 0.0
        read, drafted = len(self.prompt.prompt) + len(self.prompt.beginning), self.examined > 0 or self.draft_seconds
        return Metrics(
            prompt_tokens=read, new_tokens=written, seconds=time.perf_counter() - started,
            time_to_first_token=first - started if first else None,
            prefill_tokens_per_second=read / self._prefill_seconds if self._prefill_seconds else None,
            decode_tokens_per_second=later / decoding if later > 0 and decoding > 0 else None,
            target_passes=self.passes,
            tokens_per_target_pass=written / self.passes if self.passes and written else None,
            acceptance_rate=self.accepted / self.examined if self.examined else None,
            draft_seconds=self.draft_seconds if drafted else None,
            verify_seconds=self.verify_seconds if drafted else None,
            overhead_seconds=self.overhead_seconds if drafted else None,
            cache_bytes=self._cache.bytes, cache_peak_bytes=self._peak,
        )  # fmt: skip


def end_tokens(config: GenerationConfig) -> frozenset[int]:
    """Return the end tokens of a configuration."""
    eos: Any = config.eos_token_id
    eos = eos.reshape(-1).tolist() if hasattr(eos, "reshape") else eos
    listed = eos if isinstance(eos, list | tuple) else [] if eos is None else [eos]
    return frozenset(int(token) for token in listed)


def plain_settings(config: GenerationConfig) -> dict[str, object]:
    """Return the settings of a call that differ from the defaults, as values that a recording can hold."""
    found = ((name, _to_plain(name, value)) for name, value in non_default(config).items())
    return {name: value for name, value in found if name not in _WITHOUT_EFFECT and _is_plain(value)}


def objects_of(config: GenerationConfig) -> tuple[str, ...]:
    """Return the names of settings of a call whose values a recording cannot hold."""
    found = ((name, _to_plain(name, value)) for name, value in non_default(config).items())
    return tuple(
        name for name, value in found if name[0] != "_" and name not in WITHOUT_EFFECT and not _is_plain(value)
    )


def _to_plain(name: str, value: object) -> object:
    """Return a bias for sequences as a list of pairs, and a watermark as its fields: both are accepted in this form."""
    if name == "sequence_bias" and isinstance(value, dict):
        return [[list(ids), bias] for ids, bias in value.items()]
    if type(value).__name__ == "WatermarkingConfig":
        fields: dict[str, object] = vars(value)
        return dict(fields)
    return value


_WITHOUT_EFFECT = ("assistant_lookbehind", "target_lookbehind")
"""Settings that `generate` always fills in, for draft models with another tokenizer."""


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _share_of(whole: Measurement, runs: int) -> Measurement:
    """Return the share of one of `runs` runs whose rows are in the same cache."""
    if runs <= 1:
        return whole
    parts = tuple((place, part, size // runs) for place, part, size in whole.parts)
    total = sum(size for _, _, size in parts)
    layers = [size // runs for size in whole.layers]
    if layers:
        layers[-1] += total - sum(layers)
    return whole._replace(bytes=total, parts=parts, layers=tuple(layers))
