"""Attention weights at one step. They show what was read, which is not why it was chosen (Jain & Wallace 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from decodescope.core.decoding.media_inputs.image_inputs import first_pass_inputs
from decodescope.core.decoding.media_inputs.media_inputs import MediaInputs
from decodescope.core.errors import InsideError
from decodescope.core.interpretability.step_query import StepQuery, step_query
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.notebook.result_rows import ResultRows, table_html
from decodescope.core.system.torch_state import isolated
from decodescope.resources.language import tr


class AttentionRow(NamedTuple):
    """One layer's attention at one step, averaged over its heads."""

    layer: int
    """Number among the layers with attention, from 1."""
    shares: tuple[float, ...]
    """Attention to each position before the step. For an encoder–decoder: cross-attention to its source (sums to 1),
    then self-attention to its own text (sums to 1 with its start token, which is not among the ids).
    """


class AttentionRows(ResultRows[AttentionRow]):
    """The rows of all layers with attention; `texts` are the spellings of the ids before the step."""

    bar = "mean"

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name: one row per position, with the mean of the layers and each of them."""
        shares = [row.shares for row in self]
        means = [sum(column) / len(column) for column in zip(*shares, strict=True)]
        found: dict[str, list[object]] = {
            "position": list(range(len(means))), "text": list(self.texts[: len(means)]), "mean": [*means],
        }  # fmt: skip
        return found | {f"layer_{row.layer}": [*row.shares] for row in self}

    def _repr_html_(self) -> str:
        """Return a table of the mean attention for notebooks; the layers are in the dataframe."""
        columns = self.columns()
        return table_html({name: columns[name] for name in ("position", "text", "mean")}, self.bar)


@isolated
def attention(
    model: LoadedModel, ids: Sequence[int], step: int, *, source: int | None = None, media: Sequence[str | Path] = ()
) -> AttentionRows:
    """Return each layer's attention to every position before the token `ids[step]`, at the step that chose it.

    Runs one pass over the text without a cache, with "eager" attention, which alone returns its weights; the model's
    own implementation is restored afterwards. `source` and `media` as in `core.lens`. An image before the ids has the
    rest of the weights up to 1; audio is read by cross-attention, which is not returned. Raises InsideError if the
    model returns none (recurrent models have none), ParameterError, EmptyPromptError, PromptError, TextTooLongError.
    """
    question = step_query(model, ids, step, source, media)
    rows = translate_iterator_errors(model, partial(_attention_rows, model, question))
    return AttentionRows(rows, [model.pieces[int(token)] for token in list(ids)[: question.step]])


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
    """Return each layer's own and cross attention [1, heads, n, n]; None for a layer without attention."""
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
            tr("{model} does not return its attention weights.").format(model=model.name),
            tr("Use occlusion instead, which works with every model."),
        )
    return [weights if _is_full_matrix(weights, length) else None for weights in own], cross


def _media_inputs(media_inputs: MediaInputs, row: torch.Tensor) -> dict[str, object]:
    """Return the model inputs of a full pass over the ids [1, n] with media."""
    if media_inputs.is_encoded:
        return {"encoder_outputs": media_inputs.states, "decoder_input_ids": row}
    return {
        "input_ids": row,
        **(first_pass_inputs(media_inputs, row) if media_inputs.is_inserted else media_inputs.inputs),
    }


def _is_full_matrix(weights: object, length: int) -> bool:
    """Return whether these are the weights of every position for every position."""
    return isinstance(weights, torch.Tensor) and weights.dim() == 4 and weights.shape[-2:] == (length, length)


def _are_normalized(weights: Any) -> bool:
    """Return whether the weights are normalized; some models return them before the softmax (ProphetNet's
    cross-attention).
    """
    return not isinstance(weights, torch.Tensor) or bool((weights >= 0).all() and (weights.sum(-1) <= 1.01).all())


def _last_row_mean(weights: torch.Tensor) -> list[float]:
    """Return the weights of the last position, averaged over heads."""
    shares: list[float] = weights[0, :, -1].float().mean(0).tolist()
    return shares


@contextmanager
def _eager_attention(model: LoadedModel) -> Iterator[None]:
    """Use eager attention inside the context."""
    network: Any = model.model
    before = network.config._attn_implementation
    try:
        network.set_attn_implementation("eager")
        yield
    finally:
        network.set_attn_implementation(before)
