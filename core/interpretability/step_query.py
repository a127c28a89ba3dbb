"""The step of a text to inspect, validated before anything is computed, and the forward pass that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from decodescope.core import caches
from decodescope.core.common.setting_values import is_id, to_plain_value
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.media_inputs.media_inputs import MediaInputs
from decodescope.core.decoding.prompt import check_vocabulary_ids
from decodescope.core.decoding.prompt_inputs import check_media, prepare_media_with_ids
from decodescope.core.decoding.run_preparation import decoder_start_ids
from decodescope.core.errors import EmptyPromptError, ParameterError, PromptError, TextTooLongError
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.parameter import short_repr
from decodescope.core.settings import check_paths
from decodescope.resources.language import mark, tr, trn


@dataclass(frozen=True, slots=True)
class StepQuery:
    """One step of one text, as the model reads it."""

    ids: tuple[int, ...]
    """Ids of the prompt and the text."""
    step: int
    """Index in `ids` of the inspected token; everything before it was its context."""
    source: int
    """Number of first ids that an encoder reads; 0 without an encoder."""
    start: tuple[int, ...]
    """Ids that the decoder reads before its own: an encoder–decoder's start token."""
    media_inputs: MediaInputs | None = None
    """Audio and images of the run."""

    @property
    def chosen(self) -> int:
        """The token at the step."""
        return self.ids[self.step]

    @property
    def encoded(self) -> list[int]:
        """The ids that the encoder reads; empty without one."""
        return list(self.ids[: self.source])

    @property
    def before(self) -> list[int]:
        """The ids that the decoder has read at the step."""
        return [*self.start, *self.ids[self.source : self.step]]


def step_query(
    model: LoadedModel, ids: object, step: object, source: int | None = None, media: Sequence[str | Path] = ()
) -> StepQuery:
    """Validate a query.

    Without `source`, an encoder–decoder's source is everything before the step; with audio or an image there is none,
    and the ids begin with the decoder's own first tokens. Raises ParameterError (naming ids, step or source),
    EmptyPromptError, PromptError, TextTooLongError, MediaError.
    """
    check_model(model)
    known = token_ids(model, ids)
    if not known:
        raise EmptyPromptError(tr("The text has no tokens."), tr(_ENCODE_REMEDY))
    checked_step = _checked_step(step, len(known))
    check_paths(media)
    if files := check_media(model.name, model.modalities, media):
        return StepQuery(tuple(known), checked_step, 0, (), prepare_media_with_ids(model, known, files))
    encoded = _checked_source(model, source, checked_step)
    start = decoder_start_ids(model, vars(model.generation_config), known[:encoded]) if model.is_encoder_decoder else []
    question = StepQuery(tuple(known), checked_step, encoded, tuple(start))
    if model.context is not None and len(question.before) > model.context:
        raise TextTooLongError(len(question.before), model.context)
    return question


def check_token(model: LoadedModel, name: str, token: object) -> int:
    """Check that `token` is one of the model's token ids. Raises ParameterError naming the argument."""
    token = to_plain_value(token)
    if not is_id(token) or not isinstance(token, int) or token >= model.vocabulary:
        raise ParameterError(
            tr("{name} is {value}, which is not a token of {model}.").format(
                name=name, value=short_repr(token), model=model.name
            ),
            tr("Use a token id from 0 to {last:,}.").format(last=model.vocabulary - 1),
            name,
        )
    return token


def token_ids(model: LoadedModel, ids: object) -> list[int]:
    """Return a list of the model's token ids as plain numbers. Raises PromptError, ParameterError."""
    ids = to_plain_value(ids)
    if not isinstance(ids, Sequence) or isinstance(ids, (str, bytes)):
        raise PromptError(
            tr("The text is {value}, not a list of token ids.").format(value=short_repr(ids)), tr(_ENCODE_REMEDY)
        )
    known: list[Any] = list(ids)
    if wrong := [token for token in known if not isinstance(token, int) or isinstance(token, bool)]:
        raise PromptError(
            tr("The text contains {value}, which is not a token id.").format(value=short_repr(wrong[0])),
            tr(_ENCODE_REMEDY),
        )
    check_vocabulary_ids(model, known, "ids")
    return known


_ENCODE_REMEDY = mark("Use decodescope.encode(model, text) to get the ids of a text.")


def _checked_step(step: object, length: int) -> int:
    step = to_plain_value(step)
    if not isinstance(step, int) or isinstance(step, bool) or not 0 < step < length:
        raise ParameterError(
            trn(
                "step is {value}, but the text has {count:,} token.",
                "step is {value}, but the text has {count:,} tokens.",
                length,
            ).format(value=short_repr(step), count=length),
            tr("Give the index of the inspected token: 1 to {last:,}.").format(last=max(1, length - 1))
            if length > 1
            else tr("Give a text of at least two tokens; the inspected token needs a context."),
            "step",
        )
    return int(step)


def _checked_source(model: LoadedModel, source: object, step: int) -> int:
    source = to_plain_value(source)
    if not model.is_encoder_decoder:
        if source is not None and not (isinstance(source, int) and source == 0):
            raise ParameterError(
                tr("source is {value}, but {model} has no encoder.").format(value=short_repr(source), model=model.name),
                tr("Omit it."),
                "source",
            )
        return 0
    if source is None:
        return step
    if not isinstance(source, int) or isinstance(source, bool) or not 0 < source <= step:
        raise ParameterError(
            tr("source is {value}, but the inspected token is at {step:,}.").format(
                value=short_repr(source), step=step
            ),
            tr("Give the number of first ids that the encoder reads: 1 to {last:,}.").format(last=step),
            "source",
        )
    return source


CACHE = "dynamic"
"""Cache that keeps everything, so that later reads do not change earlier ones."""


def new_forward(
    model: LoadedModel, length: int, encoder_ids: Sequence[Sequence[int]] = (), media_inputs: MediaInputs | None = None
) -> Forward:
    """Return a forward pass that has read only its source or media, with room for `length` tokens; one row per
    `encoder_ids` text.
    """
    forward = Forward(model, caches.registry[CACHE].build(model, length, {}))
    if media_inputs is not None:
        forward.set_media(media_inputs)
    elif encoder_ids:
        forward.encode(stack_ids(model, encoder_ids))
    return forward


def stack_ids(model: LoadedModel, texts: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return token ids [B, n] of texts of one length."""
    return torch.tensor([list(text) for text in texts], device=model.device)
