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

from core.caches.cache_estimate import RunShape
from core.caches.plan import plan_of
from core.caches.prefixes.prefix_store import PrefixStore
from core.caches.tensors.cache_editing import record_past
from core.caches.tensors.layer_shapes import learn_shapes
from core.decoding.context import context_of
from core.decoding.forward.forward_pass import Forward, ForwardOutput
from core.decoding.prefill import ChunkSizes, PrefillStoppedError, can_read_in_chunks, read_prompt
from core.decoding.prefix_reuse import PrefixReuse
from core.decoding.processor_pipeline import ProcessorPipeline, build_funnel
from core.decoding.prompt_inputs import open_text
from core.decoding.run_counters import RunCounters, is_measured
from core.decoding.run_preparation import backend_of, check_memory, check_room, check_scores
from core.decoding.score_cache import KeptScores
from core.decoding.sequences import FinishedSequence, SequenceState, SequenceWriter, stopped
from core.decoding.stopping import StopReason, build_stopping
from core.decoding.strategy_protocol import DecodingStrategy
from core.defaults import non_default
from core.events import CacheMeasured, CachePlan, Event, Metrics, Prefilled, RunStarted
from core.models.loaded_model import LoadedModel
from core.processors.base import Context
from core.request import Request

if TYPE_CHECKING:
    from core.processors.base import Dice

_DRAFT_ROOM = 128
"""Tokens a fixed cache can hold beyond the run's limit: a draft is read before it is known how much of it stays."""


def _never(model: LoadedModel) -> bool:
    return False


class DecodingRun:
    """A prepared request: prompt ids, cache, funnel, stopping rules, random generator, scribe and figures.

    Raises the errors of `encode`, `backend_of`, `build_funnel` when it cannot be prepared.
    """

    def __init__(
        self,
        model: LoadedModel,
        request: Request,
        strategy: DecodingStrategy,
        config: GenerationConfig,
        cancel: threading.Event,
        prefixes: PrefixStore | None = None,
    ) -> None:
        self.model, self.request, self.strategy, self.config, self.cancel = model, request, strategy, config, cancel
        self.backend = backend_of(request, model, strategy)
        self.opening = open_text(model, request, config, self.backend.unbounded)
        check_memory(self.backend, self.opening.perceived)
        self.prompt_ids, self.start_ids = self.opening.prompt, self.opening.start
        self.beginning, self.text = self.opening.spelled(model)
        context, spells = None if self.backend.unbounded else model.context, model.tokenizer is not None
        token_bytes = model.pieces.stop_bytes if spells else None
        self.stopping = build_stopping(config, len(self.start_ids), context, self.start_ids, token_bytes)
        check_room(self.stopping, config, len(self.start_ids))
        self.forward = Forward(model, self._build_cache())
        self._reuse = PrefixReuse(model, request, self.backend, strategy, prefixes, self._build_cache)
        self.device = device = model.device  # which it looks for among its weights each time
        self.generator = torch.Generator(device).manual_seed(request.seed)
        self.dice: Dice = lambda rows: torch.rand(rows, generator=self.generator, device=device)
        """A number of [0, 1) for each row; a strategy with dice of its own for each text puts them here."""
        self.kept: KeptScores | None = None
        """Where the scores of its steps are left; None where nobody will ask for them."""
        self.reads_behind: Callable[[LoadedModel], bool] = _never
        """Whether a model reads several tokens behind others as it reads them one by one: prompts go in chunks then."""
        self.results: list[FinishedSequence] = []
        self.stopped = False
        self.figures = RunCounters(device, self.opening.length, 1 if self.beams > 1 else self.sequences)
        self.scribe = SequenceWriter(model, self.stopping, self.figures, self.text, self.judge)

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
    def rows(self) -> int:
        """What the cache holds side by side while tokens are chosen: texts, beams, or contrastive candidates."""
        return self.strategy.rows(self.config, self.model.vocabulary)

    @property
    def room(self) -> int:
        """Tokens a cache of fixed size must have room for: the text, and drafts that may be taken back."""
        return self.opening.offset + self.max_length + (_DRAFT_ROOM if self.strategy.speculates else 0)

    @cached_property
    def funnel(self) -> ProcessorPipeline:
        """Processors of this configuration."""
        return build_funnel(self.context)

    def judge(self, stop: StopReason | None, ids: Sequence[int]) -> StopReason | None:
        """Why a text of new tokens `ids` ends, as the form it is held to (a grammar) sees it: whole or not, and ended
        by the form itself where that allows nothing more but the end."""
        stage = next((stage for stage in self.funnel.stages if stage.processor.progress is not None), None)
        if stage is None or stage.processor.progress is None or (stop is None and self.context.eos is not None):
            return stop
        ended = bool(ids) and ids[-1] in self.stopping.eos
        progress = stage.processor.progress(stage.process, [*self.opening.beginning, *(ids[:-1] if ended else ids)])
        if stop is None or stop.reason == "eos":
            return StopReason("grammar", whole=True) if progress == "closed" else stop and replace(stop, whole=True)
        return replace(stop, whole=progress != "open")

    @cached_property
    def context(self) -> Context:
        """What processors are built from."""
        texts = 1 if self.beams > 1 else self.sequences
        return context_of(self.model, self.request, self.config, self.opening, texts, self.max_length, self.dice)

    def begin(self) -> RunStarted:
        """The first event."""
        return RunStarted(
            strategy=self.strategy.name,
            model=self.model.name,
            device=str(self.device),
            dtype=self.model.weights,
            cache=self.backend.name,
            seed=self.request.seed,
            prompt=self.opening.asked(self.model),
            settings=tuple(non_default(self.config).items()),
            sequences=self.sequences,
            vocabulary=self.model.vocabulary,
            context=self.model.context,
            beginning=self.beginning,
            identity=self.model.identity,
            media=self.opening.perceived.media if self.opening.perceived is not None else (),
        )

    def prefill(self, rows: int = 1, *, hidden: bool = False, whole: bool = False) -> tuple[ForwardOutput, Prefilled]:
        """Read the prompt once and leave the memory `rows` rows wide; logits [rows, 1, V], or [1, 1, V] to expand.

        What an earlier run has read is not read again, unless the `whole` prompt's hidden states are wanted. A long
        prompt is read in chunks. Raises PrefillStoppedError when the user stops the run meanwhile.
        """
        begun = time.perf_counter()
        device = self.device
        if self.opening.perceived is not None:
            self.forward.perceive(self.opening.perceived)
        elif self.model.is_encoder_decoder:
            self.forward.encode(torch.tensor([self.prompt_ids], device=device))
        reused = self.figures.reused = 0 if whole else self._reuse.start(self.forward, self.opening)
        ids = torch.tensor([self.start_ids[reused:]], device=device)
        expand_first = self.forward.cache is None
        output = self._read(ids.repeat(rows, 1) if expand_first else ids, hidden=hidden)
        self._reuse.keep_prompt(self.forward, self.opening.kept, rows)
        if rows > 1 and not expand_first:
            self.forward.expand(rows)
            output = ForwardOutput(output.logits.expand(rows, -1, -1), output.hidden)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return output, Prefilled(self.opening.length, self.figures.prompt_read(begun), reused)

    def _read(self, ids: torch.Tensor, *, hidden: bool) -> ForwardOutput:
        """Read the prompt's ids [B, n], in chunks where that gives the same scores."""
        if (
            self.opening.perceived is not None
            or not can_read_in_chunks(self.model, self.backend, self.forward, ids.shape[1])
            or not self.reads_behind(self.model)
        ):
            output = self.forward(ids, hidden=hidden)
        else:
            fixed = self.config.prefill_chunk_size
            sizes = ChunkSizes(self.model, fixed and int(fixed), steady=self.request.steady)
            output = read_prompt(self.forward, ids, sizes, self.is_cancelled, hidden=hidden)
        if self.is_cancelled():
            raise PrefillStoppedError
        return output

    def keep_read(self) -> None:
        """After a stop while the prompt was read: leave what has been read to later runs."""
        self._reuse.keep_text(self.forward, self.opening.kept, 1)

    def step_done(self, step: int) -> Iterator[Event]:
        """After all sequences of a step: measure the cache now and then, and restart the step's clock."""
        if is_measured(step):
            yield self.measure(step)
        self.figures.step_done()

    def measure(self, step: int) -> CacheMeasured:
        """Bytes of the cache now."""
        return self.figures.measure(self.backend, self.forward, step)

    def end(self, tracks: Sequence[SequenceState]) -> Iterator[Event]:
        """Close what is still open (the user stopped) and keep the sequences as the run's results."""
        for track in tracks:
            if track.stop is None:
                yield stopped(track, self.judge(StopReason("stopped"), track.ids) or StopReason("stopped"))
        yield self.measure(max((len(track.ids) for track in tracks), default=0))
        self.results = [FinishedSequence(tuple(track.ids), track.text, None, track.number) for track in tracks]
        if tracks:
            self._reuse.keep_text(self.forward, [*self.opening.kept, *tracks[0].ids], len(tracks))

    def is_cancelled(self) -> bool:
        """Whether the user asked to stop; remembers it."""
        self.stopped = self.stopped or self.cancel.is_set()
        return self.stopped

    def cache_plan(self) -> CachePlan | None:
        """What the cache is going to take, once the prompt has been read."""
        learn_shapes(self.model, self.forward.cache)
        source = self.opening.encoded if self.model.is_encoder_decoder else None
        situation = RunShape(self.rows, self.room, source, self.request.cache_options)
        offset = self.opening.offset
        return plan_of(self.model, self.backend, situation, offset + len(self.start_ids), offset + self.max_length)

    def metrics(self) -> Metrics:
        """Figures of the run so far."""
        return self.figures.metrics(self.backend, self.forward)

    def repair(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits [B, V], with NaN and infinity replaced when `remove_invalid_values` asks for it."""
        return torch.nan_to_num(logits) if self.config.remove_invalid_values else logits

    def check_scores(
        self, scores: torch.Tensor, raw: torch.Tensor, step: int, trace: Sequence[torch.Tensor] = ()
    ) -> None:
        """Raises NumericError, ParameterError as `prepare.check_scores` does."""
        check_scores(self.model, scores, raw, step, self.funnel.stages, trace)

    def _build_cache(self) -> Cache | None:
        """An empty cache, with room and memory for drafts that may have to be taken back."""
        cache = self.backend.build(self.model, self.room, self.request.cache_options)
        if self.strategy.speculates and cache is not None:
            record_past(cache, True)
        return cache
