"""A text to be scored (teacher forcing): its tokens, and the tokens before the first."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import torch

from decodescope.core import caches
from decodescope.core.caches.tensors.continuation_probe import PROVEN_ARCHITECTURES, are_close, memory_kind, probe_text
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.processor_pipeline import errors_of_setting
from decodescope.core.decoding.prompt import encode, encode_continuation
from decodescope.core.decoding.run_preparation import check_scores, decoder_start_ids
from decodescope.core.decoding.speculation.drafters.compatibility import has_same_tokens
from decodescope.core.decoding.speculation.tree_support import supports_drafts
from decodescope.core.decoding.step_stats import StepStats, compute_step_stats
from decodescope.core.errors import ComparisonError, MediaRefusedError, PromptError, TextTooLongError
from decodescope.core.events import Stage, StageDetail, TokenCompared
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.parameter import Settings, check_values
from decodescope.core.processors.pipeline_stages import processor_settings, watermark_processors
from decodescope.core.processors.watermarking.scores import WatermarkScorer, WatermarkTextScorer
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.processors.base import Processor


@dataclass(frozen=True, slots=True)
class GivenText:
    """A text to be scored, as a model reads it."""

    prompt: list[int]
    """Context that is not scored: the source of an encoder–decoder, a prompt, or the text's first token."""
    start: list[int]
    """Decoder tokens before the first scored token."""
    tokens: list[int]
    """Tokens to be scored."""

    @property
    def decoder_ids(self) -> list[int]:
        """Tokens the decoder reads; the last token is not needed."""
        return [*self.start, *self.tokens][:-1]


def prepare_given_text(model: LoadedModel, text: object, text_or_ids: object = None) -> GivenText:
    """Prepare `text` after `text_or_ids`; without `text_or_ids`, a decoder's text is scored from its second token on.

    Raises TextTooLongError, PromptError, MediaRefusedError and whatever `encode` raises.
    """
    if model.modalities.needs:
        raise MediaRefusedError(
            tr("{model} scores a text by an image or audio clip, which cannot be given here.").format(model=model.name),
            tr("Score the text with a text-only model."),
        )
    found = (
        _target_text(model, text, text_or_ids) if model.is_encoder_decoder else _decoder_text(model, text, text_or_ids)
    )
    if model.context is not None and len(found.decoder_ids) > model.context:
        raise TextTooLongError(len(found.start) + len(found.tokens), model.context + 1)
    return found


def _decoder_text(model: LoadedModel, text: object, text_or_ids: object) -> GivenText:
    if text_or_ids is None:
        ids = encode(model, text, unbounded=True)
        return GivenText(ids[:1], ids[:1], ids[1:])
    prompt = encode(model, text_or_ids, unbounded=True)
    return GivenText(prompt, prompt, encode_continuation(model, prompt, text))


def _target_text(model: LoadedModel, text: object, text_or_ids: object) -> GivenText:
    """Prepare the target text; the decoder's start token is not scored, and a text without a source may include it."""
    source = _empty_source(model) if text_or_ids is None else encode(model, text_or_ids, unbounded=True)
    start = decoder_start_ids(model, vars(model.generation_config), source)
    ids = encode(model, text, unbounded=True)
    return GivenText(source, start, ids[1:] if text_or_ids is None and ids[:1] == start else ids)


def _empty_source(model: LoadedModel) -> list[int]:
    """Return the encoder input for an empty text: the tokenizer's special tokens, or the end token."""
    ids: Sequence[int] = model.tokenizer("")["input_ids"] if model.tokenizer is not None else ()
    eos = model.generation_config.eos_token_id
    end = eos[0] if isinstance(eos, list) and eos else eos
    if not ids and not (isinstance(end, int) and 0 <= end < model.vocabulary):
        raise PromptError(
            tr("{model} needs a source text and has no token for an empty one.").format(model=model.name),
            tr("Provide the source text."),
        )
    return list(ids) or [end]


SCORING_CACHE = "dynamic"
"""Cache for the text; chunks of a long text follow each other in it."""
MAX_PASS_LOGITS = 2**26
"""Maximum number of logits in one pass (256 MiB in float32)."""
MAX_STATS_LOGITS = 2**22
"""Maximum number of logits for which statistics are computed at a time: some ten tensors of that size are allocated."""


class TextChunks(NamedTuple):
    """Chunk sizes of a text: tokens per forward pass, and tokens per statistics batch."""

    tokens_per_pass: int
    tokens_per_stats_batch: int

    def minimum(self, other: TextChunks) -> TextChunks:
        """Return the smaller sizes of both."""
        return TextChunks(*map(min, self, other))


class FullTextScores:
    """Scores an existing text with a model; `logits()` yields scores position by position."""

    def __init__(self, model: LoadedModel, given_text: GivenText) -> None:
        self._model, self._start = model, len(given_text.start)
        self._ids = torch.tensor([given_text.decoder_ids], device=model.device)
        self._source = torch.tensor([given_text.prompt], device=model.device)
        self.forward = self._build_forward()

    def logits(self, chunks: TextChunks, cancel: threading.Event) -> Iterator[torch.Tensor]:
        """Yield float32 logits [n, V] of the next n positions until the text ends or `cancel` is set.

        Even with one token per pass the start goes through in one pass, as in a run's prefill.
        """
        size, length, begin = chunks.tokens_per_pass, self._ids.shape[1], 0
        while begin < length and not cancel.is_set():
            end = begin + (self._start if size == 1 and not begin else size)
            logits = self.forward(self._ids[:, begin:end], keep=0).logits[0]
            unscored = max(self._start - 1 - begin, 0)
            scored = logits[-1:] if size == 1 else logits[unscored:]
            for place in range(0, len(scored), chunks.tokens_per_stats_batch):
                yield scored[place : place + chunks.tokens_per_stats_batch]
            begin = end

    def max_chunks(self) -> TextChunks:
        """Return the largest chunk sizes that model and memory allow."""
        return TextChunks(self._max_tokens_per_pass(), max(1, MAX_STATS_LOGITS // self._model.vocabulary))

    def _max_tokens_per_pass(self) -> int:
        """Return the number of tokens per pass: all where logits are small, chunks for models that continue a text
        exactly, and 1 for models whose full pass differs from their single steps.
        """
        model, length = self._model, self._ids.shape[1]
        if not supports_full_pass(model):
            return 1
        piece = max(1, MAX_PASS_LOGITS // model.vocabulary)
        goes_on = length > piece and not model.is_recurrent and memory_kind(model) == "kept" and supports_drafts(model)
        return piece if goes_on else max(1, length)

    def _build_forward(self) -> Forward:
        cache = caches.registry[SCORING_CACHE].build(self._model, self._ids.shape[1], {})
        forward = Forward(self._model, cache)
        if self._model.is_encoder_decoder:
            forward.encode(self._source)
        return forward


def supports_full_pass(model: LoadedModel) -> bool:
    """Return whether one pass over a text gives the same scores as single steps; tested once if not known."""
    if model.model.config.model_type in PROVEN_ARCHITECTURES:
        return True
    if "reads_at_once" not in model.strategy_data:
        model.strategy_data["reads_at_once"] = _test_full_pass(model)
    return bool(model.strategy_data["reads_at_once"])


@torch.inference_mode()
def _test_full_pass(model: LoadedModel) -> bool:
    text = probe_text(model)
    given = GivenText(text, text[:1], [*text[1:], text[0]])
    whole, steps = FullTextScores(model, given).forward, FullTextScores(model, given).forward
    row = torch.tensor([text], device=model.device)
    try:
        at_once = whole(row, keep=0).logits
        one_by_one = torch.cat([steps(row[:, place : place + 1]).logits for place in range(len(text))], dim=1)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False
    return at_once.shape == one_by_one.shape and are_close(model, at_once, one_by_one)


class ComparisonModel:
    """A comparison model that scores the text read by the first one.

    Raises ComparisonError where the tokenizers differ, TextTooLongError.
    """

    def __init__(self, model: LoadedModel, reference: LoadedModel, given_text: GivenText, top_n: int) -> None:
        if reason := comparison_unsupported_reason(reference, model):
            raise ComparisonError(reason, tr("Choose a comparison model of the same family."))
        self._model, self._top_n = model, top_n
        given_text = _given_text_for(model, given_text)
        self.scores = FullTextScores(model, given_text)

    def compare(
        self, step: int, reference_logits: torch.Tensor, logits: torch.Tensor, chosen: torch.Tensor
    ) -> tuple[TokenCompared, ...]:
        """Return events for the tokens `chosen` [n] from `step` on; logits of both models [n, V]."""
        check_scores(self._model, logits, logits, step)
        readings = compute_step_stats([logits], chosen.to(logits.device), self._top_n, (), self._model.pieces)
        divergences = divergence(reference_logits, logits).tolist()
        pairs = enumerate(zip(readings, divergences, strict=True), step)
        return tuple(_token_compared(place, reading, bits) for place, (reading, bits) in pairs)


def comparison_unsupported_reason(first: LoadedModel, second: LoadedModel) -> str | None:
    """Return why two models cannot be compared token by token; None when they can."""
    if first.is_encoder_decoder != second.is_encoder_decoder:
        kinds = (tr("a decoder-only model"), tr("an encoder–decoder"))
        return tr("{first} is {kind}, but {second} is {other_kind}.").format(
            first=first.name,
            kind=kinds[first.is_encoder_decoder],
            second=second.name,
            other_kind=kinds[second.is_encoder_decoder],
        )
    if not has_same_tokens(first, second):
        return tr("{second} uses a different tokenizer than {first}, so their tokens do not match.").format(
            second=second.name, first=first.name
        )
    return None


def divergence(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return KL(first ‖ second) in bits, [n], of logits [n, V]; ignore vocabulary entries that only one has
    (padding).
    """
    width = min(first.shape[-1], second.shape[-1])
    p = torch.log_softmax(first[:, :width], -1)
    q = torch.log_softmax(second[:, :width].to(first.device), -1)
    parts = p.exp() * (p - q)
    return parts.masked_fill(torch.isneginf(p), 0.0).sum(-1).clamp(min=0.0) / math.log(2)


def _given_text_for(model: LoadedModel, given_text: GivenText) -> GivenText:
    """Return the same text after this model's own decoder start tokens."""
    start = (
        decoder_start_ids(model, vars(model.generation_config), given_text.prompt)
        if model.is_encoder_decoder
        else given_text.start
    )
    found = GivenText(given_text.prompt, start, given_text.tokens)
    if model.context is not None and len(found.decoder_ids) > model.context:
        raise TextTooLongError(len(start) + len(given_text.tokens), model.context + 1)
    return found


def _token_compared(step: int, stats: StepStats, bits: float) -> TokenCompared:
    return TokenCompared(
        step, stats.token, math.exp(stats.raw_log_probability), stats.raw_log_probability, stats.rank,
        stats.entropy, bits, stats.details.alternatives(),
    )  # fmt: skip


class WatermarkSearch:
    """Searches a text for all watermarks whose settings are on."""

    def __init__(self, model: LoadedModel, options: Settings) -> None:
        """Prepare the readers. Raises ParameterError for invalid settings."""
        self._readers: list[tuple[Stage, WatermarkTextScorer]] = []
        for processor in watermark_processors():
            check_values(processor_settings(processor), options)
            value = options.get(processor.name)
            if value and processor.make_detector is not None:
                with errors_of_setting(processor.name):
                    signs = processor.make_detector(value, options, model)
                self._add(processor, float(value), signs)

    def _add(self, processor: Processor, value: float, signs: WatermarkScorer) -> None:
        label, phrase = (words.format(v=f"{value:g}") for words in (processor.label, processor.phrase))
        stage = Stage(processor.name, label, 0, 1.0, 1.0, value=value, kind=processor.kind, phrase=phrase)
        self._readers.append((stage, WatermarkTextScorer(signs)))

    @property
    def is_active(self) -> bool:
        """Whether any watermark is searched for."""
        return bool(self._readers)

    def append_stages(self, funnel: Sequence[Stage], token: int) -> tuple[Stage, ...]:
        """Append a stage for each watermark to the stages of a scored token."""
        left = funnel[-1].survivors if funnel else 0
        watermark_stages = (
            replace(stage, survivors=left, detail=StageDetail(sign=reading.score_next(token)))
            for stage, reading in self._readers
        )
        return (*funnel, *watermark_stages)
