"""Checks before a run: its cache, its decoder start token, and room for new tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from transformers import GenerationConfig

from decodescope.core import caches
from decodescope.core.caches.base import CacheBackend, CacheOperation
from decodescope.core.checks.name_suggestions import unknown_name_error
from decodescope.core.common.setting_values import is_id
from decodescope.core.decoding.media_inputs.media_inputs import MediaInputs
from decodescope.core.decoding.processor_pipeline import ActiveStage
from decodescope.core.decoding.stopping import StoppingCriteria
from decodescope.core.decoding.tensor_utils import row_max
from decodescope.core.errors import CacheError, NumericError, ParameterError, PromptError
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.parameter import Settings, check_values, short_repr
from decodescope.core.processors.word_search import STEP_BACK
from decodescope.core.request import Request
from decodescope.resources.language import tr, trn


class DecodingStrategy(Protocol):
    """A decoding strategy, as declared by `core.strategies.base.Strategy`."""

    @property
    def name(self) -> str:
        """Name in the registry."""

    @property
    def needs(self) -> frozenset[CacheOperation]:
        """Required cache capabilities."""

    @property
    def speculates(self) -> bool:
        """Whether it uses drafts."""

    def rows(self, config: GenerationConfig, vocabulary: int, /) -> int:
        """Return the number of cache rows."""


def resolve_cache(request: Request, model: LoadedModel, strategy: DecodingStrategy) -> CacheBackend:
    """Return the request's cache backend. Raises CacheError if it is unknown or unsupported, ParameterError."""
    backend = caches.named(request.cache)
    _check_cache_options(backend, request.cache_options)
    if reason := backend.unsupported_reason(model, strategy.needs, request.cache_options):
        raise CacheError(
            tr("{cache} is not supported here: {reason}").format(cache=tr(backend.title), reason=reason),
            tr("Choose another cache or another model."),
        )
    return backend


def check_step_back(
    model: LoadedModel, request: Request, backend: CacheBackend, strategy: DecodingStrategy, rows: int
) -> None:
    """Raise ParameterError or CacheError if a run cannot withdraw tokens (`banned_phrases_step_back`)."""
    if strategy.speculates or strategy.needs or rows > 1:
        raise ParameterError(
            tr("A run steps back only while it writes one text, token by token: not with drafts, beams, several "
               "sequences or contrastive search."),
            tr("Turn off “Step back to the beginning”: the words are then avoided at their last token."),
            STEP_BACK.name,
        )  # fmt: skip
    if reason := backend.unsupported_reason(model, frozenset({"truncate"}), request.cache_options):
        raise CacheError(
            tr("A run that steps back cannot use this cache: {reason}").format(reason=reason),
            tr("Choose another cache, or turn off “Step back to the beginning”."),
        )


def _check_cache_options(backend: CacheBackend, options: Settings) -> None:
    """Check types and ranges of the cache's settings. Raises ParameterError."""
    known = {parameter.name: parameter for parameter in backend.parameters}
    for name in options:
        if name not in known:
            raise unknown_name_error(
                tr("The cache “{cache}” has no setting “{name}”.").format(cache=tr(backend.title), name=name),
                name,
                known,
            )
    check_values(backend.parameters, options)


def decoder_start_ids(model: LoadedModel, settings: Settings, prompt_ids: list[int]) -> list[int]:
    """Return the decoder's tokens before the first new token. Raises PromptError if they are not defined."""
    if not model.is_encoder_decoder:
        return prompt_ids
    start = settings.get("decoder_start_token_id")
    start = settings.get("bos_token_id") if start is None else start
    if start is None:
        raise PromptError(
            tr("{model} does not define the start token of its decoder.").format(model=model.name),
            tr("Set decoder_start_token_id in its generation_config.json."),
        )
    first = start[0] if isinstance(start, list) and start else start
    if not is_id(first) or first >= model.vocabulary:
        raise PromptError(
            tr("The decoder start token of {model} is {value}, which is not in its vocabulary.").format(
                model=model.name, value=short_repr(start)
            ),
            tr("Set decoder_start_token_id to a token id from 0 to {last:,}.").format(last=model.vocabulary - 1),
        )
    return [int(first)]


def check_new_token_limit(stopping: StoppingCriteria, settings: Settings, start: int) -> None:
    """Raise PromptError if no token may be generated."""
    if stopping.max_new < 1:
        raise PromptError(
            trn(
                "max_length is {max_length}, but the prompt alone has {start} token.",
                "max_length is {max_length}, but the prompt alone has {start} tokens.",
                start,
            ).format(max_length=settings.get("max_length"), start=start),
            tr("Set max_new_tokens or increase max_length."),
        )


def check_media_cache(backend: CacheBackend, media_inputs: MediaInputs | None) -> None:
    """Raise CacheError for a cache that would drop image tokens, which are read only once."""
    if backend.unbounded and media_inputs is not None and not media_inputs.is_encoded:
        raise CacheError(
            tr("“{cache}” drops old tokens, including those of the image.").format(cache=tr(backend.title)),
            tr("Choose another cache."),
        )


def check_scores(
    model: LoadedModel,
    scores: torch.Tensor,
    raw: torch.Tensor,
    step: int,
    stages: Sequence[ActiveStage] = (),
    trace: Sequence[torch.Tensor] = (),
    maxima: Sequence[float] | None = None,
) -> None:
    """Check scores [B, V] before a token is chosen from them, or before it is shown if `maxima` of the rows are known.

    `raw`: the model's logits. `stages`: the processors that were applied. `trace`: the scores before the first of them
    and after each, if known; it shows which processor is the cause. Raises NumericError for logits that are not
    numbers, ParameterError where the settings leave no token.
    """
    if all(map(math.isfinite, row_max(scores) if maxima is None else maxima)):
        return
    if torch.isnan(raw).any() or torch.isposinf(raw).any():
        raise NumericError(
            tr("{model} produced NaN or infinity at step {step}.").format(model=model.name, step=step + 1),
            tr("Try float32, check the weights, or turn on “Repair invalid numbers” (remove_invalid_values)."),
        )
    cause = _find_banning_stage(stages, trace)
    if (scaling := _scaling_stage(cause, scores, raw, stages)) is not None:
        parameter, value = scaling.processor.parameter, scaling.heading.value
        raise ParameterError(
            (
                tr("{title} ({parameter}) is {value}, so scores exceed the range of float32.")
                if parameter is not None and parameter.kind in ("float", "int") and value is not None
                else tr("{title} ({parameter}) makes scores exceed the range of float32.")
            ).format(
                title=tr(parameter.title) if parameter is not None else scaling.heading.label,
                parameter=scaling.name,
                value=f"{value or 0:g}",
            ),
            tr("Use a less extreme value. To choose the most likely token at every step, use greedy decoding.")
            if scaling.name == "temperature"
            else tr("Use a less extreme value."),
            scaling.name,
        )
    if any(stage.name == "grammar" for stage in stages):
        sentence = tr("No token is left to choose from at step {step}: other settings ban all that the grammar allows.")
        remedy = tr(
            "Relax the grammar or the settings that ban its tokens: minimum length, banned words, "
            "suppressed tokens, n-gram limits, forced tokens."
        )
        raise ParameterError(sentence.format(step=step + 1), remedy, "grammar")
    raise ParameterError(
        tr("No token is left to choose from at step {step}: all are banned.").format(step=step + 1),
        tr("Relax the banned words, suppressed tokens, n-gram limits or forced tokens."),
    )


_BANNED_SCORE = -1e8
"""Score below which beam search treats a hypothesis as banned (`core.decoding.beams.beam_group.DEAD`)."""


def _find_banning_stage(stages: Sequence[ActiveStage], trace: Sequence[torch.Tensor]) -> ActiveStage | None:
    """Return the first processor after which a row has no finite score; None if the trace does not show it."""
    if len(trace) != len(stages) + 1:
        return None
    after = (all(map(math.isfinite, row_max(scores))) for scores in trace[1:])
    return next((stage for stage, is_finite in zip(stages, after, strict=True) if not is_finite), None)


def _scaling_stage(
    cause: ActiveStage | None, scores: torch.Tensor, raw: torch.Tensor, stages: Sequence[ActiveStage]
) -> ActiveStage | None:
    """Return the processor whose arithmetic overflows; None where tokens are banned.

    Without a trace it is the temperature if dividing by it overflows, else the last processor that changes weights if a
    score is infinite or NaN.
    """
    if cause is not None:
        return cause if cause.heading.kind == "shift" else None
    shifting = [stage for stage in stages if stage.heading.kind == "shift"]
    for stage in shifting:
        if stage.name == "temperature" and stage.heading.value:
            quotients = torch.log_softmax(raw, -1).nan_to_num(neginf=-1.0) / stage.heading.value
            if not all(_BANNED_SCORE < value <= 0 for value in row_max(quotients)):
                return stage
    has_overflow = bool(torch.isnan(scores).any() or torch.isposinf(scores).any())
    return shifting[-1] if has_overflow and shifting else None
