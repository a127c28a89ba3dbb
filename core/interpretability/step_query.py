"""The step of a text to inspect, validated before anything is computed, and the forward pass that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from core import caches
from core.common.setting_values import is_id, to_plain_value
from core.decoding.forward.forward_pass import Forward
from core.decoding.media_inputs.media_inputs import MediaInputs
from core.decoding.prompt import check_vocabulary_ids
from core.decoding.prompt_inputs import check_media, prepare_media_with_ids
from core.decoding.run_preparation import decoder_start_ids
from core.errors import EmptyPromptError, ParameterError, PromptError, TextTooLongError
from core.models.loaded_model import LoadedModel, check_model
from core.parameter import short_repr
from core.strategies.request_checks import check_paths
from resources.language import mark, tr


@dataclass(frozen=True, slots=True)
class StepQuery:
    """One text as a model reads it."""

    ids: tuple[int, ...]
    """Prompt and text."""
    step: int
    """Place in `ids` of the token whose choice is asked for; everything before it is what it was chosen behind."""
    source: int
    """How many of the first ids an encoder reads; 0 without one."""
    start: tuple[int, ...]
    """What a decoder reads before the ids that are its own: an encoder–decoder's first token."""
    media_inputs: MediaInputs | None = None
    """The sounds and pictures that the text was written about."""

    @property
    def chosen(self) -> int:
        """The token that stands at the step."""
        return self.ids[self.step]

    @property
    def encoded(self) -> list[int]:
        """What the encoder reads; empty without one."""
        return list(self.ids[: self.source])

    @property
    def before(self) -> list[int]:
        """What the decoder has read at the step."""
        return [*self.start, *self.ids[self.source : self.step]]


def step_query(
    model: LoadedModel, ids: object, step: object, source: int | None = None, media: Sequence[str | Path] = ()
) -> StepQuery:
    """The question, where it is one.

    Without `source`, an encoder–decoder's source is all that stands before the step; with a sound or a picture there is
    none, and the ids begin with the decoder's own first tokens.
    Raises ParameterError (naming ids, step or source), EmptyPromptError, PromptError, TextTooLongError, MediaError.
    """
    check_model(model)
    known = token_ids(model, ids)
    if not known:
        raise EmptyPromptError(tr("The text has no token."), tr(_ENCODE_REMEDY))
    checked_step = _checked_step(step, len(known))
    check_paths(media)
    if files := check_media(model.name, model.takes, media):
        return StepQuery(tuple(known), checked_step, 0, (), prepare_media_with_ids(model, known, files))
    encoded = _checked_source(model, source, checked_step)
    start = decoder_start_ids(model, model.generation_config, known[:encoded]) if model.is_encoder_decoder else []
    question = StepQuery(tuple(known), checked_step, encoded, tuple(start))
    if model.context is not None and len(question.before) > model.context:
        raise TextTooLongError(len(question.before), model.context)
    return question


def check_token(model: LoadedModel, name: str, token: object) -> int:
    """`token`, which has to be an id of the model's. Raises ParameterError naming the argument."""
    token = to_plain_value(token)
    if not is_id(token) or not isinstance(token, int) or token >= model.vocabulary:
        raise ParameterError(
            tr("{name} is {value}, which is no token of {model}.").format(
                name=name, value=short_repr(token), model=model.name
            ),
            tr("Give a token id from 0 to {last:,}.").format(last=model.vocabulary - 1),
            name,
        )
    return token


def token_ids(model: LoadedModel, ids: object) -> list[int]:
    """A list of token ids of the model's, as plain numbers. Raises PromptError, ParameterError."""
    ids = to_plain_value(ids)
    if not isinstance(ids, Sequence) or isinstance(ids, (str, bytes)):
        raise PromptError(
            tr("The text is {value}, and not a list of token ids.").format(value=short_repr(ids)), tr(_ENCODE_REMEDY)
        )
    known: list[Any] = list(ids)
    if wrong := [token for token in known if not isinstance(token, int) or isinstance(token, bool)]:
        raise PromptError(
            tr("The text holds {value}, which is no token id.").format(value=short_repr(wrong[0])), tr(_ENCODE_REMEDY)
        )
    check_vocabulary_ids(model, known, "ids")
    return known


_ENCODE_REMEDY = mark("core.encode(model, text) gives the ids of a text.")


def _checked_step(step: object, length: int) -> int:
    step = to_plain_value(step)
    if not isinstance(step, int) or isinstance(step, bool) or not 0 < step < length:
        raise ParameterError(
            tr("step is {value}, and the text has {count:,} tokens.").format(value=short_repr(step), count=length),
            tr("Give the place of the token that is asked for: 1 to {last:,}.").format(last=max(1, length - 1))
            if length > 1
            else tr("Give a text of two tokens or more: something has to stand before the one that is asked for."),
            "step",
        )
    return int(step)


def _checked_source(model: LoadedModel, source: object, step: int) -> int:
    source = to_plain_value(source)
    if not model.is_encoder_decoder:
        if source is not None and not (isinstance(source, int) and source == 0):
            raise ParameterError(
                tr("source is {value}, and {model} has no encoder.").format(value=short_repr(source), model=model.name),
                tr("Leave it out."),
                "source",
            )
        return 0
    if source is None:
        return step
    if not isinstance(source, int) or isinstance(source, bool) or not 0 < source <= step:
        raise ParameterError(
            tr("source is {value}, and the token that is asked for stands at {step:,}.").format(
                value=short_repr(source), step=step
            ),
            tr("Say how many of the first ids the encoder reads: 1 to {last:,}.").format(last=step),
            "source",
        )
    return source


CACHE = "dynamic"
"""What a text is read into: it keeps everything, so that nothing read later changes what was read."""


def new_forward(
    model: LoadedModel, length: int, encoded: Sequence[Sequence[int]] = (), media_inputs: MediaInputs | None = None
) -> Forward:
    """A model that has read nothing yet but its source, or what it hears and sees, with room for `length` tokens; a row
    for each of `encoded`."""
    forward = Forward(model, caches.registry[CACHE].build(model, length, {}))
    if media_inputs is not None:
        forward.set_media(media_inputs)
    elif encoded:
        forward.encode(token_rows(model, encoded))
    return forward


def token_rows(model: LoadedModel, texts: Sequence[Sequence[int]]) -> torch.Tensor:
    """Token ids [B, n] of texts of one length."""
    return torch.tensor([list(text) for text in texts], device=model.device)
