"""One run from the inside: everything a strategy needs, prepared."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from transformers import GenerationConfig
from transformers.cache_utils import Cache

from core.caches.base import RunShape
from core.caches.plan import predict_cache
from core.caches.prefixes.prefix_store import PrefixStore
from core.caches.tensors.cache_operations import record_past
from core.caches.tensors.cache_sizes import remember_shapes
from core.common.hf_generation import non_default
from core.decoding.forward.forward_pass import Forward, ForwardOutput
from core.decoding.prefill import ChunkSizes, PrefillStoppedError, PrefixReuse, can_read_in_chunks, prefill_prompt
from core.decoding.processor_pipeline import ProcessorPipeline, build_pipeline
from core.decoding.prompt import encode
from core.decoding.prompt_inputs import prepare_prompt
from core.decoding.run_preparation import (
    DecodingStrategy,
    check_media_cache,
    check_new_token_limit,
    check_scores,
    resolve_cache,
)
from core.decoding.score_cache import KeptScores
from core.decoding.sequences import (
    FinishedSequence,
    RunCounters,
    SequenceState,
    SequenceWriter,
    is_cache_measured,
    stop_sequence,
)
from core.decoding.stopping import StopReason, build_stopping_criteria, end_token_ids
from core.events import CacheMeasured, CachePlan, Event, Metrics, Prefilled, RunStarted
from core.models.loaded_model import LoadedModel
from core.processors.base import Context
from core.request import Request

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from core.decoding.prompt_inputs import PromptInputs
    from core.models.loaded_model import LoadedModel
    from core.processors.base import Uniform
    from core.request import Request


def build_context(
    model: LoadedModel,
    request: Request,
    config: GenerationConfig,
    inputs: PromptInputs,
    sequences: int,
    max_length: int,
    rng: Uniform,
) -> Context:
    """The context of a run that writes so many `sequences`, each of `max_length` tokens at most. Raises what `encode`
    raises of the negative prompt."""
    eos = sorted(token for token in end_token_ids(config) if token < model.vocabulary)
    return Context(
        model=model,
        config=config,
        start=len(inputs.decoder_start),
        max_length=max_length,
        encoder_ids=torch.tensor([inputs.source], device=model.device) if inputs.source else None,
        eos=torch.tensor(eos, device=model.device) if eos else None,
        keep=max(len(eos) + 1, 2) if (config.num_beams or 1) > 1 else 1,
        negative_ids=_negative_ids(model, request, inputs, sequences),
        options=request.options,
        rng=rng,
        before=inputs.decoder_start,
        beginning=inputs.beginning,
    )


def _negative_ids(model: LoadedModel, request: Request, inputs: PromptInputs, sequences: int) -> torch.Tensor | None:
    """What guidance steers away from, [texts, n], with the answer's beginning behind it; None where the last token of
    the prompt is all of it."""
    negative, beginning = request.negative_prompt, inputs.beginning
    if negative is None and not beginning:
        return None
    before = inputs.decoder_start[-1:] if negative is None else encode(model, negative)
    return torch.tensor([[*before, *beginning]], device=model.device).repeat(sequences, 1)


_DRAFT_CAPACITY = 128
"""Tokens a fixed cache can hold beyond the run's limit: a draft is read before it is known how much of it stays."""


def _never(model: LoadedModel) -> bool:
    return False


class DecodingRun:
    """A prepared request: prompt ids, cache, funnel, stopping rules, random generator, scribe and figures.

    Raises the errors of `encode`, `resolve_cache`, `build_pipeline` when it cannot be prepared.
    """

    def __init__(
        self,
        model: LoadedModel,
        request: Request,
        strategy: DecodingStrategy,
        config: GenerationConfig,
        cancel: threading.Event,
        prefix_store: PrefixStore | None = None,
    ) -> None:
        self.model, self.request, self.strategy, self.config, self.cancel = model, request, strategy, config, cancel
        self.backend = resolve_cache(request, model, strategy)
        self.inputs = prepare_prompt(model, request, config, self.backend.unbounded)
        check_media_cache(self.backend, self.inputs.media)
        self.prompt_ids, self.start_ids = self.inputs.prompt, self.inputs.start
        self.beginning, self.text = self.inputs.decode_beginning(model)
        context, spells = None if self.backend.unbounded else model.context, model.tokenizer is not None
        token_bytes = model.pieces.stop_bytes if spells else None
        self.stopping = build_stopping_criteria(config, len(self.start_ids), context, self.start_ids, token_bytes)
        check_new_token_limit(self.stopping, config, len(self.start_ids))
        self.forward = Forward(model, self._build_cache())
        self._reuse = PrefixReuse(model, request, self.backend, strategy, prefix_store, self._build_cache)
        self.device = device = model.device  # which it looks for among its weights each time
        self.generator = torch.Generator(device).manual_seed(request.seed)
        self.rng: Uniform = lambda rows: torch.rand(rows, generator=self.generator, device=device)
        """A number of [0, 1) for each row; a strategy with dice of its own for each text puts them here."""
        self.score_cache: KeptScores | None = None
        """Where the scores of its steps are left; None where nobody will ask for them."""
        self.supports_chunked_prefill: Callable[[LoadedModel], bool] = _never
        """Whether a model reads several tokens behind others as it reads them one by one: prompts go in chunks then."""
        self.results: list[FinishedSequence] = []
        self.stopped = False
        self.counters = RunCounters(device, self.inputs.length, 1 if self.beams > 1 else self.sequences)
        self.writer = SequenceWriter(model, self.stopping, self.counters, self.text, self.apply_grammar)

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
        """Most tokens the decoder's text will ever have."""
        return len(self.start_ids) + self.stopping.max_new

    @property
    def cache_rows(self) -> int:
        """What the cache holds side by side while tokens are chosen: texts, beams, or contrastive candidates."""
        return self.strategy.rows(self.config, self.model.vocabulary)

    @property
    def cache_capacity(self) -> int:
        """Tokens a cache of fixed size must have room for: the text, and drafts that may be taken back."""
        return self.inputs.offset + self.max_length + (_DRAFT_CAPACITY if self.strategy.speculates else 0)

    @cached_property
    def pipeline(self) -> ProcessorPipeline:
        """Processors of this configuration."""
        return build_pipeline(self.context)

    def apply_grammar(self, stop_reason: StopReason | None, ids: Sequence[int]) -> StopReason | None:
        """Why a text of new tokens `ids` ends, as the form it is held to (a grammar) sees it: whole or not, and ended
        by the form itself where that allows nothing more but the end."""
        stage = next((stage for stage in self.pipeline.stages if stage.processor.progress is not None), None)
        if stage is None or stage.processor.progress is None or (stop_reason is None and self.context.eos is not None):
            return stop_reason
        ended = bool(ids) and ids[-1] in self.stopping.eos
        progress = stage.processor.progress(stage.process, [*self.inputs.beginning, *(ids[:-1] if ended else ids)])
        if stop_reason is None or stop_reason.reason == "eos":
            return (
                StopReason("grammar", whole=True)
                if progress == "closed"
                else stop_reason and replace(stop_reason, whole=True)
            )
        return replace(stop_reason, whole=progress != "open")

    @cached_property
    def context(self) -> Context:
        """What processors are built from."""
        texts = 1 if self.beams > 1 else self.sequences
        return build_context(self.model, self.request, self.config, self.inputs, texts, self.max_length, self.rng)

    def build_start_event(self) -> RunStarted:
        """The first event."""
        return RunStarted(
            strategy=self.strategy.name,
            model=self.model.name,
            device=str(self.device),
            dtype=self.model.weights,
            cache=self.backend.name,
            seed=self.request.seed,
            prompt=self.inputs.prompt_tokens(self.model),
            settings=tuple(non_default(self.config).items()),
            sequences=self.sequences,
            vocabulary=self.model.vocabulary,
            context=self.model.context,
            beginning=self.beginning,
            identity=self.model.identity,
            media=self.inputs.media.media if self.inputs.media is not None else (),
        )

    def prefill(self, rows: int = 1, *, hidden: bool = False, whole: bool = False) -> tuple[ForwardOutput, Prefilled]:
        """Read the prompt once and leave the memory `cache_rows` rows wide; logits [rows, 1, V], or [1, 1, V] to expand.

        What an earlier run has read is not read again, unless the `whole` prompt's hidden states are wanted. A long
        prompt is read in chunks. Raises PrefillStoppedError when the user stops the run meanwhile.
        """
        begun = time.perf_counter()
        device = self.device
        if self.inputs.media is not None:
            self.forward.set_media(self.inputs.media)
        elif self.model.is_encoder_decoder:
            self.forward.encode(torch.tensor([self.prompt_ids], device=device))
        reused = self.counters.reused_tokens = 0 if whole else self._reuse.load_prefix(self.forward, self.inputs)
        ids = torch.tensor([self.start_ids[reused:]], device=device)
        expand_first = self.forward.cache is None
        output = self._read_prompt(ids.repeat(rows, 1) if expand_first else ids, hidden=hidden)
        self._reuse.store_prompt(self.forward, self.inputs.cache_keys, rows)
        if rows > 1 and not expand_first:
            self.forward.expand(rows)
            output = ForwardOutput(output.logits.expand(rows, -1, -1), output.hidden)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return output, Prefilled(self.inputs.length, self.counters.finish_prefill(begun), reused)

    def _read_prompt(self, ids: torch.Tensor, *, hidden: bool) -> ForwardOutput:
        """Read the prompt's ids [B, n], in chunks where that gives the same scores."""
        if (
            self.inputs.media is not None
            or not can_read_in_chunks(self.model, self.backend, self.forward, ids.shape[1])
            or not self.supports_chunked_prefill(self.model)
        ):
            output = self.forward(ids, hidden=hidden)
        else:
            fixed = self.config.prefill_chunk_size
            sizes = ChunkSizes(self.model, fixed and int(fixed), steady=self.request.steady)
            output = prefill_prompt(self.forward, ids, sizes, self.is_cancelled, hidden=hidden)
        if self.is_cancelled():
            raise PrefillStoppedError
        return output

    def store_partial_prompt(self) -> None:
        """After a stop while the prompt was read: leave what has been read to later runs."""
        self._reuse.store_text(self.forward, self.inputs.cache_keys, 1)

    def finish_step(self, step: int) -> Iterator[Event]:
        """After all sequences of a step: measure the cache now and then, and restart the step's clock."""
        if is_cache_measured(step):
            yield self.measure_cache(step)
        self.counters.restart_clock()

    def measure_cache(self, step: int) -> CacheMeasured:
        """Bytes of the cache now."""
        return self.counters.measure(self.backend, self.forward, step)

    def finish(self, sequences: Sequence[SequenceState]) -> Iterator[Event]:
        """Close what is still open (the user stopped) and keep the sequences as the run's results."""
        for track in sequences:
            if track.stop is None:
                yield stop_sequence(
                    track, self.apply_grammar(StopReason("stopped"), track.ids) or StopReason("stopped")
                )
        yield self.measure_cache(max((len(track.ids) for track in sequences), default=0))
        self.results = [FinishedSequence(tuple(track.ids), track.text, None, track.number) for track in sequences]
        if sequences:
            self._reuse.store_text(self.forward, [*self.inputs.cache_keys, *sequences[0].ids], len(sequences))

    def is_cancelled(self) -> bool:
        """Whether the user asked to stop; remembers it."""
        self.stopped = self.stopped or self.cancel.is_set()
        return self.stopped

    def plan_cache(self) -> CachePlan | None:
        """What the cache is going to take, once the prompt has been read."""
        remember_shapes(self.model, self.forward.cache)
        source = self.inputs.encoder_length if self.model.is_encoder_decoder else None
        situation = RunShape(self.cache_rows, self.cache_capacity, source, self.request.cache_options)
        offset = self.inputs.offset
        return predict_cache(
            self.model, self.backend, situation, offset + len(self.start_ids), offset + self.max_length
        )

    def metrics(self) -> Metrics:
        """Figures of the run so far."""
        return self.counters.metrics(self.backend, self.forward)

    def replace_invalid(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits [B, V], with NaN and infinity replaced when `remove_invalid_values` asks for it."""
        return torch.nan_to_num(logits) if self.config.remove_invalid_values else logits

    def check_scores(
        self, scores: torch.Tensor, raw: torch.Tensor, step: int, trace: Sequence[torch.Tensor] = ()
    ) -> None:
        """Raises NumericError, ParameterError as `prepare.check_scores` does."""
        check_scores(self.model, scores, raw, step, self.pipeline.stages, trace)

    def _build_cache(self) -> Cache | None:
        """An empty cache, with room and memory for drafts that may have to be taken back."""
        cache = self.backend.build(self.model, self.cache_capacity, self.request.cache_options)
        if self.strategy.speculates and cache is not None:
            record_past(cache, True)
        return cache
