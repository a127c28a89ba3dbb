"""Where attention looked at one step: what it read, which is not why it chose (Jain & Wallace 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from core.decoding.media_inputs.image_inputs import first_pass_inputs
from core.decoding.media_inputs.media_inputs import MediaInputs
from core.errors import InsideError
from core.interpretability.step_query import StepQuery, step_query
from core.models.error_translation import translate_iterator_errors
from core.models.loaded_model import LoadedModel
from resources.language import tr


class AttentionRow(NamedTuple):
    """One layer's attention at one step, the mean of its heads."""

    layer: int
    """From 1, among those that have attention."""
    shares: tuple[float, ...]
    """Of each place before the step. An encoder–decoder's: of its source by cross-attention (1 in all), then of its own
    text by self-attention (1 with the token that it begins with, which is none of the ids)."""


def attention(
    model: LoadedModel, ids: Sequence[int], step: int, *, source: int | None = None, media: Sequence[str | Path] = ()
) -> tuple[AttentionRow, ...]:
    """How much each layer read of every place before the token `ids[step]` when that was chosen.

    One pass over the text without any cache, by plain ("eager") attention, which alone tells its weights; the model's
    own kind is put back behind it. `source` and `media` as in `core.lens`; a picture that stands before the ids has
    what their shares lack to 1, and a sound is read by cross-attention, which is not told.
    Raises InsideError where the model gives none (a recurrent one has none), ParameterError, EmptyPromptError,
    PromptError, TextTooLongError.
    """
    question = step_query(model, ids, step, source, media)
    return tuple(translate_iterator_errors(model, partial(_attention_rows, model, question)))


def _attention_rows(model: LoadedModel, question: StepQuery) -> Iterator[AttentionRow]:
    own, cross = _attention_weights(model, question)
    skipped = len(question.start) + (
        question.media_inputs.leading_positions if question.media_inputs is not None else 0
    )
    for layer, weights in enumerate(own, 1):
        if weights is not None:
            read = [*(_last_row_mean(cross[layer - 1]) if question.source else ()), *_last_row_mean(weights)[skipped:]]
            yield AttentionRow(layer, tuple(read))


def _attention_weights(model: LoadedModel, question: StepQuery) -> tuple[Sequence[Any], Sequence[Any]]:
    """Of each layer [1, heads, n, n], own and cross; None for a layer without attention."""
    row = torch.tensor([question.before], device=model.device)
    given: dict[str, object] = {"input_ids": row}
    if (perceived := question.media_inputs) is not None:
        given = _media_inputs(perceived, row)
    elif model.is_encoder_decoder:
        given = {"input_ids": torch.tensor([question.encoded], device=model.device), "decoder_input_ids": row}
    with _eager_attention(model):
        outputs = model.model(**given, use_cache=False, output_attentions=True, return_dict=True)
    own = outputs.get("decoder_attentions" if model.is_encoder_decoder else "attentions") or ()
    cross = (outputs.get("cross_attentions") or ()) if model.is_encoder_decoder else ()
    length = len(question.before) + (perceived.leading_positions if perceived is not None else 0)
    with_attention = [weights for weights in own if _is_full_matrix(weights, length)]
    if (
        not with_attention
        or (model.is_encoder_decoder and not cross)
        or not all(map(_are_normalized, (*with_attention, *cross)))
    ):
        raise InsideError(
            tr("{model} does not tell what its attention read.").format(model=model.name),
            tr("Leaving out parts of the text (occlusion) works with every model."),
        )
    return [weights if _is_full_matrix(weights, length) else None for weights in own], cross


def _media_inputs(perceived: MediaInputs, row: torch.Tensor) -> dict[str, object]:
    """What a whole pass over the ids [1, n] takes of sounds and pictures."""
    if perceived.is_encoded:
        return {"encoder_outputs": perceived.states, "decoder_input_ids": row}
    return {"input_ids": row, **(first_pass_inputs(perceived, row) if perceived.is_inserted else perceived.inputs)}


def _is_full_matrix(weights: object, length: int) -> bool:
    """Whether they are those of every place for every place."""
    return isinstance(weights, torch.Tensor) and weights.dim() == 4 and weights.shape[-2:] == (length, length)


def _are_normalized(weights: Any) -> bool:
    """Whether they are parts of a whole; some models tell what they are before that (ProphetNet's cross-attention)."""
    return not isinstance(weights, torch.Tensor) or bool((weights >= 0).all() and (weights.sum(-1) <= 1.01).all())


def _last_row_mean(weights: torch.Tensor) -> list[float]:
    """Of the last place, the mean over heads."""
    shares: list[float] = weights[0, :, -1].float().mean(0).tolist()
    return shares


@contextmanager
def _eager_attention(model: LoadedModel) -> Iterator[None]:
    """Plain attention for as long as this lasts."""
    network: Any = model.model
    before = network.config._attn_implementation
    try:
        network.set_attn_implementation("eager")
        yield
    finally:
        network.set_attn_implementation(before)
