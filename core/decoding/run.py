"""A prepared run: everything a strategy needs."""

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

from decodescope.core.caches.measurement import RunShape
from decodescope.core.caches.plan import predict_cache
from decodescope.core.caches.prefixes.prefix_store import PrefixStore
from decodescope.core.caches.tensors.cache_operations import record_past
from decodescope.core.caches.tensors.cache_sizes import remember_shapes
from decodescope.core.common.generator_state import state_hash
from decodescope.core.common.hf_generation import non_default
from decodescope.core.common.run_settings import RunSettings
from decodescope.core.decoding.forward.forward_pass import Forward, ForwardOutput
from decodescope.core.decoding.prefill import (
    ChunkSizes,
    PrefillStoppedError,
    PrefixReuse,
    can_read_in_chunks,
    prefill_prompt,
)
from decodescope.core.decoding.processor_pipeline import ActiveStage, ProcessorPipeline, StageHeading, build_pipeline
from decodescope.core.decoding.prompt import encode
from decodescope.core.decoding.prompt_inputs import prepare_prompt
from decodescope.core.decoding.run_generator import make_generator
from decodescope.core.decoding.run_preparation import (
    DecodingStrategy,
    check_media_cache,
    check_new_token_limit,
    check_scores,
    check_step_back,
    resolve_cache,
)
from decodescope.core.decoding.score_cache import ScoreCache
from decodescope.core.decoding.sequences import (
    FinishedSequence,
    RunCounters,
    SequenceState,
    SequenceWriter,
    is_cache_measured,
    stop_sequence,
)
from decodescope.core.decoding.step_stats import (
    PendingStats,
    StepStats,
    TokenChoice,
    compute_step_stats,
    start_device_stats,
)
from decodescope.core.decoding.stopping import StopReason, build_stopping_criteria, end_token_ids
from decodescope.core.events import CacheMeasured, CachePlan, Event, Finished, Metrics, Prefilled, RunStarted
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.parameter import Settings
from decodescope.core.processors.base import Context
from decodescope.core.processors.word_search import STEP_BACK, PhraseBan
from decodescope.core.request import Request
from decodescope.core.system.gpu import synchronize

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from decodescope.core.decoding.prompt_inputs import PromptInputs
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.processors.base import Uniform
    from decodescope.core.request import Request


def build_context(
    model: LoadedModel,
    request: Request,
    settings: Settings,
    inputs: PromptInputs,
    sequences: int,
    max_length: int,
    rng: Uniform,
) -> Context:
    """Build the context of a run of `sequences` sequences with at most `max_length` tokens each.

    Raises what `encode` raises for the negative prompt.
    """
    eos = sorted(token for token in end_token_ids(settings) if token < model.vocabulary)
    return Context(
        model=model,
        settings=settings,
        start=len(inputs.decoder_start),
        max_length=max_length,
        encoder_ids=torch.tensor([inputs.source], device=model.device) if inputs.source else None,
        eos=torch.tensor(eos, device=model.device) if eos else None,
        min_tokens_to_keep=max(len(eos) + 1, 2) if (settings.get("num_beams") or 1) > 1 else 1,
        negative_ids=_negative_ids(model, request, inputs, sequences),
        rng=rng,
        before=inputs.decoder_start,
        beginning=inputs.beginning,
    )


def _negative_ids(model: LoadedModel, request: Request, inputs: PromptInputs, sequences: int) -> torch.Tensor | None:
    """Return the negative prompt for guidance, [texts, n], followed by the answer's prefix; None where it is just the
    last prompt token.
    """
    negative, beginning = request.negative_prompt, inputs.beginning
    if negative is None and not beginning:
        return None
    before = inputs.decoder_start[-1:] if negative is None else encode(model, negative)
    return torch.tensor([[*before, *beginning]], device=model.device).repeat(sequences, 1)


_DRAFT_CAPACITY = 128
"""Tokens that a fixed-size cache can hold beyond the run's limit, because a draft is read before it is verified."""


def _never(model: LoadedModel) -> bool:
    return False


class DecodingRun:
    """A prepared request: prompt ids, cache, processor pipeline, stopping criteria, random generator, writer and
    counters.

    Raises the errors of `encode`, `resolve_cache`, `build_pipeline` when it cannot be prepared.
    """

    def __init__(
        self,
        model: LoadedModel,
        request: Request,
        strategy: DecodingStrategy,
        settings: RunSettings,
        cancel: threading.Event,
        prefix_store: PrefixStore | None = None,
    ) -> None:
        self.model, self.request, self.strategy, self.settings, self.cancel = model, request, strategy, settings, cancel
        self.backend = resolve_cache(request, model, strategy)
        if self.steps_back:
            check_step_back(model, request, self.backend, strategy, max(self.beams, self.sequences))
        self.inputs = prepare_prompt(model, request, settings, self.backend.unbounded)
        check_media_cache(self.backend, self.inputs.media)
        self.prompt_ids, self.start_ids = self.inputs.prompt, self.inputs.start
        self.beginning, self.text = self.inputs.decode_prefix_tokens(model)
        context, spells = None if self.backend.unbounded else model.context, model.tokenizer is not None
        token_bytes = model.pieces.stop_bytes if spells else None
        self.stopping = build_stopping_criteria(settings, len(self.start_ids), context, self.start_ids, token_bytes)
        check_new_token_limit(self.stopping, settings, len(self.start_ids))
        self.forward = Forward(model, self._build_cache())
        self._reuse = PrefixReuse(model, request, self.backend, strategy, prefix_store, self._build_cache)
        self.device = device = model.device  # cached: `.device` scans the parameters on every access
        self.generator = make_generator(request, device)
        self.rng: Uniform = lambda rows: torch.rand(rows, generator=self.generator, device=device)
        """Random numbers in [0, 1), one per row; a strategy with its own generator per text replaces it."""
        self.score_cache: ScoreCache | None = None
        """Cache for the logits of its steps; None if they are not needed."""
        self.supports_chunked_prefill: Callable[[LoadedModel], bool] = _never
        """Whether a model reads several tokens after others exactly as one by one; then prompts are read in chunks."""
        self.results: list[FinishedSequence] = []
        self._recorded_metrics: Metrics | None = None
        self.stopped = False
        self.counters = RunCounters(device, self.inputs.length, 1 if self.beams > 1 else self.sequences)
        self.writer = SequenceWriter(model, self.stopping, self.counters, self.text, self.apply_grammar, self.is_forced)

    @property
    def config(self) -> GenerationConfig:
        """The settings as transformers' own class, for transformers and plug-ins."""
        return self.settings.config

    @property
    def sequences(self) -> int:
        """Number of sequences generated side by side."""
        several = self.settings.get("do_sample") or self.beams > 1
        return int(self.settings.get("num_return_sequences") or 1) if several else 1

    @property
    def beams(self) -> int:
        """Number of beams; 1 for strategies without beams."""
        return int(self.settings.get("num_beams") or 1)

    @property
    def max_length(self) -> int:
        """Maximum length of the decoder's text in tokens."""
        return len(self.start_ids) + self.stopping.max_new

    @property
    def cache_rows(self) -> int:
        """Cache rows while tokens are chosen: sequences, beams, or contrastive candidates."""
        return self.strategy.rows(self.config, self.model.vocabulary)

    @property
    def cache_capacity(self) -> int:
        """Capacity of a fixed-size cache in tokens: the text, and drafts that may be removed."""
        return self.inputs.offset + self.max_length + (_DRAFT_CAPACITY if self.strategy.speculates else 0)

    @cached_property
    def pipeline(self) -> ProcessorPipeline:
        """The processor pipeline of this configuration."""
        return build_pipeline(self.context)

    def apply_grammar(self, stop_reason: StopReason | None, ids: Sequence[int]) -> StopReason | None:
        """Return why a text of new tokens `ids` ends, after consulting its grammar.

        The grammar decides whether the text is complete, and ends it when only the end token is allowed.
        """
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
    def forcing_stages(self) -> list[ActiveStage]:
        """The stages that may write a token by force."""
        return [stage for stage in self.pipeline.stages if stage.processor.forces is not None]

    def is_forced(self, ids: Sequence[int], sequence: int = 0) -> bool:
        """Return whether the token after new tokens `ids` of a sequence is written by force instead of chosen."""
        if not self.forcing_stages:
            return False
        answer = [*self.inputs.beginning, *ids]
        tests = ((one.processor.forces, one.process) for one in self.forcing_stages)
        return any(forces is not None and forces(process, answer, sequence) for forces, process in tests)

    @cached_property
    def phrase_ban(self) -> PhraseBan | None:
        """The stage with the words to avoid, if the run steps back to their beginnings."""
        if not self.steps_back:
            return None
        return next(stage.process for stage in self.pipeline.stages if isinstance(stage.process, PhraseBan))

    @property
    def steps_back(self) -> bool:
        """Whether the run withdraws tokens that complete a word to avoid."""
        return bool(self.settings.get(STEP_BACK.name) and self.settings.get("banned_phrases"))

    @cached_property
    def context(self) -> Context:
        """The context that processors are built from."""
        texts = 1 if self.beams > 1 else self.sequences
        return build_context(self.model, self.request, self.settings, self.inputs, texts, self.max_length, self.rng)

    def build_start_event(self) -> RunStarted:
        """Return the first event."""
        return RunStarted(
            strategy=self.strategy.name,
            model=self.model.name,
            device=str(self.device),
            dtype=self.model.weights,
            cache=self.backend.name,
            seed=0 if self.request.generator_state else self.request.seed,
            generator=state_hash(self.request.generator_state) if self.request.generator_state else "",
            prompt=self.inputs.prompt_tokens(self.model),
            settings=tuple(non_default(self.config).items()),
            sequences=self.sequences,
            vocabulary=self.model.vocabulary,
            context=self.model.context,
            beginning=self.beginning,
            identity=self.model.identity,
            media=self.inputs.media.media if self.inputs.media is not None else (),
            adapters=self.model.adapters.used(),
            placement=self.model.placement,
            thinking=self.model.thinking_marks,
        )

    def prefill(
        self, rows: int = 1, *, hidden: bool = False, is_whole: bool = False
    ) -> tuple[ForwardOutput, Prefilled]:
        """Read the prompt once and expand the cache to `rows` rows; return logits [rows, 1, V], or [1, 1, V] to expand.

        A prefix read by an earlier run is reused, unless hidden states of the `is_whole` prompt are requested. A long
        prompt is read in chunks. Raises PrefillStoppedError when the user stops the run meanwhile.
        """
        begun = time.perf_counter()
        device = self.device
        if self.inputs.media is not None:
            self.forward.set_media(self.inputs.media)
        elif self.model.is_encoder_decoder:
            self.forward.encode(torch.tensor([self.prompt_ids], device=device))
        reused = self.counters.reused_tokens = 0 if is_whole else self._reuse.load_prefix(self.forward, self.inputs)
        ids = torch.tensor([self.start_ids[reused:]], device=device)
        expand_first = self.forward.cache is None
        output = self._read_prompt(ids.repeat(rows, 1) if expand_first else ids, hidden=hidden)
        self._reuse.store_prompt(self.forward, self.inputs.cache_keys, rows)
        if rows > 1 and not expand_first:
            self.forward.expand(rows)
            output = ForwardOutput(output.logits.expand(rows, -1, -1), output.hidden)
        synchronize(device)
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
            fixed = self.settings.get("prefill_chunk_size")
            sizes = ChunkSizes(self.model, fixed and int(fixed), steady=self.request.steady)
            output = prefill_prompt(self.forward, ids, sizes, self.is_cancelled, hidden=hidden)
        if self.is_cancelled():
            raise PrefillStoppedError
        return output

    def store_partial_prompt(self) -> None:
        """After a stop during prefill, store what has been read for later runs."""
        self._reuse.store_text(self.forward, self.inputs.cache_keys, 1)

    def finish_step(self, step: int, rows: int = 1, is_latest: bool = True) -> Iterator[Event]:
        """Finish a step of all sequences: measure the cache at intervals of steps and of time, and restart the step's
        clock. `rows`: the cache's rows; `is_latest`: no later step was computed already.
        """
        if is_cache_measured(step, rows) or (is_latest and self.counters.is_measure_overdue):
            yield self.measure_cache(step)
        self.counters.restart_clock()

    def measure_cache(self, step: int) -> CacheMeasured:
        """Return the current size of the cache in bytes."""
        return self.counters.measure(self.backend, self.forward, step)

    def finish(self, sequences: Sequence[SequenceState]) -> Iterator[Event]:
        """Close open sequences (the user stopped) and store the run's results."""
        for track in sequences:
            if track.stop is None:
                yield stop_sequence(
                    track, self.apply_grammar(StopReason("stopped"), track.ids) or StopReason("stopped")
                )
        yield self.measure_cache(max((len(track.ids) for track in sequences), default=0))
        self.results = [FinishedSequence(tuple(track.ids), track.text, None, track.number) for track in sequences]
        if sequences:
            self._reuse.store_text(self.forward, [*self.inputs.cache_keys, *sequences[0].ids], len(sequences))

    def take_results(self, finished: Finished) -> None:
        """Use the texts and metrics of a run that was decoded by other code and recorded."""
        scores, order = finished.scores or [None] * len(finished.texts), finished.order or range(len(finished.texts))
        rows = zip(finished.sequences, finished.texts, scores, order, strict=True)
        self.results = [FinishedSequence(*row) for row in rows]
        self._recorded_metrics = finished.metrics

    def is_cancelled(self) -> bool:
        """Return whether the user requested a stop. The result is kept."""
        self.stopped = self.stopped or self.cancel.is_set()
        return self.stopped

    def plan_cache(self) -> CachePlan | None:
        """Return the estimated cache size for the run, once the prompt has been read."""
        remember_shapes(self.model, self.forward.cache)
        source = self.inputs.encoder_length if self.model.is_encoder_decoder else None
        situation = RunShape(self.cache_rows, self.cache_capacity, source, self.request.cache_options)
        offset = self.inputs.offset
        return predict_cache(
            self.model, self.backend, situation, offset + len(self.start_ids), offset + self.max_length
        )

    def metrics(self) -> Metrics:
        """Return the run's metrics so far."""
        return self._recorded_metrics or self.counters.metrics(self.backend, self.forward)

    def replace_invalid(self, logits: torch.Tensor) -> torch.Tensor:
        """Return logits [B, V], with NaN and infinity replaced if `remove_invalid_values` is set."""
        return torch.nan_to_num(logits) if self.settings.get("remove_invalid_values") else logits

    def check_scores(
        self, scores: torch.Tensor, raw: torch.Tensor, step: int, trace: Sequence[torch.Tensor] = (),
        maxima: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        """Check the scores of a step. Raises NumericError, ParameterError like `run_preparation.check_scores`."""
        check_scores(self.model, scores, raw, step, self.pipeline.stages, trace, maxima)

    def check_before_choice(self, scores: Sequence[torch.Tensor], step: int) -> None:
        """Check the scores of a step, raw and after every stage, each [B, V]; on a GPU, `read_choice` does it. Raises
        the errors of `check_scores`.
        """
        if self.device.type == "cpu":
            self.check_scores(scores[-1], scores[0], step, scores)

    def read_choice(
        self, scores: Sequence[torch.Tensor], tokens: torch.Tensor, step: int, extra: torch.Tensor | None = None
    ) -> TokenChoice:
        """Return the tokens [B] chosen from `scores`, with further values [m] on the host. Raises the errors of
        `check_scores`.
        """
        return self.finish_choice(self.start_choice(scores, tokens, extra), scores, tokens, step)

    def start_choice(
        self, scores: Sequence[torch.Tensor], tokens: torch.Tensor, extra: torch.Tensor | None = None
    ) -> PendingStats | TokenChoice:
        """Start the transfer of tokens [B] chosen from `scores`, and of further values [m], to the host.

        Each transfer waits for a GPU. There, the statistics and what the check of the scores needs come in the same
        one, so the scores are checked after the choice. On the CPU the choice is complete.
        """
        if self.device.type == "cpu":
            return TokenChoice(tokens, None, extra.tolist() if extra is not None else ())
        return start_device_stats(scores, tokens, self.request.top_n, extra)

    def finish_choice(
        self, pending: PendingStats | TokenChoice, scores: Sequence[torch.Tensor], tokens: torch.Tensor, step: int
    ) -> TokenChoice:
        """Wait for the statistics of tokens [B] that a GPU chose from `scores`. Raises the errors of `check_scores`."""
        if isinstance(pending, TokenChoice):
            return pending
        stats = pending.result()
        self.check_scores(scores[-1], scores[0], step, scores, stats.maxima)
        return TokenChoice(tokens, stats, stats.extra)

    def step_stats(
        self, scores: Sequence[torch.Tensor], choice: TokenChoice, headings: Sequence[StageHeading]
    ) -> list[StepStats]:
        """Return the statistics of a step; they are computed unless they came with the choice."""
        top_n, pieces = self.request.top_n, self.model.pieces
        if choice.stats is not None:
            return choice.stats.step_stats(headings, top_n, pieces)
        return compute_step_stats(scores, choice.tokens, top_n, headings, pieces)

    def _build_cache(self) -> Cache | None:
        """Build an empty cache; with drafts, one whose tokens can be removed."""
        cache = self.backend.build(self.model, self.cache_capacity, self.request.cache_options)
        if (self.strategy.speculates or self.steps_back) and cache is not None:
            record_past(cache, True)
        return cache
