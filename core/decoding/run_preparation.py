"""Before a run begins: its cache is found and checked, its decoder's first token, its room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from transformers import GenerationConfig

from core import caches
from core.caches.base import CacheBackend, CacheOperation
from core.checks.name_suggestions import unknown_name_error
from core.common.setting_values import is_id
from core.decoding.media_inputs.media_inputs import MediaInputs
from core.decoding.processor_pipeline import ActiveStage
from core.decoding.stopping import StoppingCriteria
from core.decoding.tensor_utils import row_max
from core.errors import CacheError, NumericError, ParameterError, PromptError
from core.models.loaded_model import LoadedModel
from core.parameter import Settings, check, short_repr
from core.request import Request
from resources.language import tr


class DecodingStrategy(Protocol):
    """A way to decode, as `core.strategies.base.Strategy` declares it."""

    @property
    def name(self) -> str:
        """As in the registry."""

    @property
    def needs(self) -> frozenset[CacheOperation]:
        """What it asks of a cache."""

    @property
    def speculates(self) -> bool:
        """Whether it drafts."""

    def rows(self, config: GenerationConfig, vocabulary: int, /) -> int:
        """Rows of the cache."""


def resolve_cache(request: Request, model: LoadedModel, strategy: DecodingStrategy) -> CacheBackend:
    """The request's cache back end. Raises CacheError when there is none or it cannot serve, ParameterError."""
    backend = caches.named(request.cache)
    _check_cache_options(backend, request.cache_options)
    if reason := backend.unsupported_reason(model, strategy.needs, request.cache_options):
        raise CacheError(
            tr("{cache} cannot serve: {reason}").format(cache=tr(backend.title), reason=reason),
            tr("Choose another cache or another model."),
        )
    return backend


def _check_cache_options(backend: CacheBackend, options: Settings) -> None:
    """Types and ranges of the cache's settings. Raises ParameterError."""
    known = {parameter.name: parameter for parameter in backend.parameters}
    for name, value in options.items():
        if name not in known:
            raise unknown_name_error(
                tr("The cache “{cache}” has no setting “{name}”.").format(cache=tr(backend.title), name=name),
                name,
                known,
            )
        if value is not None:
            check(known[name], value)


def decoder_start_ids(model: LoadedModel, config: GenerationConfig, prompt_ids: list[int]) -> list[int]:
    """What the decoder has read before the first new token. Raises PromptError where nobody says so."""
    if not model.is_encoder_decoder:
        return prompt_ids
    start = config.decoder_start_token_id
    start = config.bos_token_id if start is None else start
    if start is None:
        raise PromptError(
            tr("{model} does not say which token its decoder starts with.").format(model=model.name),
            tr("Set decoder_start_token_id in its generation_config.json."),
        )
    first = start[0] if isinstance(start, list) and start else start
    if not is_id(first) or first >= model.vocabulary:
        raise PromptError(
            tr("The decoder of {model} is to start with {value}, which is no token of its vocabulary.").format(
                model=model.name, value=short_repr(start)
            ),
            tr("Set decoder_start_token_id to a token id from 0 to {last:,}.").format(last=model.vocabulary - 1),
        )
    return [int(first)]


def check_new_token_limit(stopping: StoppingCriteria, config: GenerationConfig, start: int) -> None:
    """Raises PromptError when not one token may be written."""
    if stopping.max_new < 1:
        raise PromptError(
            tr("max_length is {max_length} and the prompt alone has {start} tokens.").format(
                max_length=config.max_length, start=start
            ),
            tr("Set max_new_tokens, or a greater max_length."),
        )


def check_media_cache(backend: CacheBackend, media_inputs: MediaInputs | None) -> None:
    """Raises CacheError for a cache that would forget what was seen: pictures are read once, and looked at always."""
    if backend.unbounded and media_inputs is not None and not media_inputs.is_encoded:
        raise CacheError(
            tr("“{cache}” forgets what lies far behind, and the picture lies there.").format(cache=tr(backend.title)),
            tr("Choose another cache."),
        )


def check_scores(
    model: LoadedModel,
    scores: torch.Tensor,
    raw: torch.Tensor,
    step: int,
    stages: Sequence[ActiveStage] = (),
    trace: Sequence[torch.Tensor] = (),
) -> None:
    """Check scores [B, V] that a token is to be chosen from.

    `raw`: the model's logits. `stages`: the processors that acted. `trace`: the scores before the first of them and
    after each, where they are known; it shows which processor is the cause.
    Raises NumericError for logits that are not numbers, ParameterError where the settings leave no token.
    """
    if all(map(math.isfinite, row_max(scores))):
        return
    if torch.isnan(raw).any() or torch.isposinf(raw).any():
        raise NumericError(
            tr("{model} produced NaN or infinity instead of scores at step {step}.").format(
                model=model.name, step=step + 1
            ),
            tr("Try float32, check the weights, or switch on “Repair invalid numbers” (remove_invalid_values)."),
        )
    cause = _find_banning_stage(stages, trace)
    if (scaling := _scaling_stage(cause, scores, raw, stages)) is not None:
        parameter, value = scaling.processor.parameter, scaling.heading.value
        raise ParameterError(
            tr("{title} ({parameter}) is {value}, which takes the scores out of the range of float32.").format(
                title=tr(parameter.title) if parameter is not None else scaling.heading.label,
                parameter=scaling.name,
                value="…" if value is None else f"{value:g}",
            ),
            tr("Use a less extreme value. For the most likely token of every step, use greedy decoding.")
            if scaling.name == "temperature"
            else tr("Use a less extreme value."),
            scaling.name,
        )
    if any(stage.name == "grammar" for stage in stages):
        sentence = tr(
            "The settings leave no token to choose from at step {step}: other settings ban all that the grammar allows."
        )
        remedy = tr(
            "Loosen the grammar, or what bans its tokens: a least length (of more than its texts have), banned "
            "words, suppressed tokens, n-gram limits, forced tokens."
        )
        raise ParameterError(sentence.format(step=step + 1), remedy, "grammar")
    raise ParameterError(
        tr("The settings leave no token to choose from at step {step}: every one is banned.").format(step=step + 1),
        tr("Loosen the banned words, suppressed tokens, n-gram limits or forced tokens."),
    )


_BANNED_SCORE = -1e8
"""What beams take for a hypothesis that cannot be (`core.decoding.beams.beam_group.DEAD`)."""


def _find_banning_stage(stages: Sequence[ActiveStage], trace: Sequence[torch.Tensor]) -> ActiveStage | None:
    """The first processor after which a row has no finite score; None where the trace does not show it."""
    if len(trace) != len(stages) + 1:
        return None
    after = (all(map(math.isfinite, row_max(scores))) for scores in trace[1:])
    return next((stage for stage, is_finite in zip(stages, after, strict=True) if not is_finite), None)


def _scaling_stage(
    cause: ActiveStage | None, scores: torch.Tensor, raw: torch.Tensor, stages: Sequence[ActiveStage]
) -> ActiveStage | None:
    """The processor whose arithmetic overflows; None where the tokens are banned.

    Without a trace it is the temperature where dividing by it overflows, else the last processor that changes weights
    where a score is infinite or not a number.
    """
    if cause is not None:
        return cause if cause.processor.kind == "shift" else None
    shifting = [stage for stage in stages if stage.processor.kind == "shift"]
    for stage in shifting:
        if stage.name == "temperature" and stage.heading.value:
            quotients = torch.log_softmax(raw, -1).nan_to_num(neginf=-1.0) / stage.heading.value
            if not all(_BANNED_SCORE < value <= 0 for value in row_max(quotients)):
                return stage
    has_overflow = bool(torch.isnan(scores).any() or torch.isposinf(scores).any())
    return shifting[-1] if has_overflow and shifting else None
