"""The logit lens: what each layer would have chosen, had the network ended there (nostalgebraist 2020)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from core.arguments import check_cancel
from core.error_translation import translate_iterator_errors
from core.interpretability.layer_states import LayerReader
from core.interpretability.step_query import StepQuery, step_query
from core.models.loaded_model import LoadedModel
from core.native.native_library import library
from core.plain_values import to_plain_value
from core.request_fields import check_paths

MAX_LOGITS = 2**18
"""Numbers that the logits of one block may have: larger ones leave the memory of one core."""
_MIN_BLOCK = 16
"""States that are scored at once where a vocabulary is so large that their logits leave it anyway: each block goes
through all of the head."""
_STATISTICS_LOGITS = 2**17
"""The same of what is read off them at a time: several operations over the same numbers."""
_TOKENS_PER_BLOCK = 64
"""Tokens whose layers are told at a time, so that a long text can be stopped."""


class LensRow(NamedTuple):
    """One layer's view of one step."""

    layer: int
    """How many layers have been passed: 0 is the embedding's output, the last row the model itself."""
    first: int
    """Token id of the layer's first choice."""
    first_probability: float
    probability: float
    """Of the token that was chosen."""
    rank: int
    """Of the token that was chosen, 1 = the layer's first choice."""


def lens(
    model: LoadedModel, ids: Sequence[int], step: int, *, source: int | None = None, media: Sequence[str | Path] = ()
) -> tuple[LensRow, ...]:
    """What each layer held of the token `ids[step]`, which was chosen behind `ids[:step]`: a row for each layer, the
    lowest first.

    The state of every layer at the last place before the step is put through the network's own end: final norm, head
    and what else there is. Raw: no layer was trained to be read so, low ones least. The last row is the model's own
    distribution, without any settings of a run.
    `source`: how many of the first ids an encoder reads; default all that stand before the step. `media`: the sounds
    and pictures of the run; the ids then begin with what the decoder reads first (`RunStarted.prompt`).
    Raises InsideError where the layers cannot be read so, ParameterError, EmptyPromptError, PromptError,
    TextTooLongError, MediaError.
    """
    question = step_query(model, ids, step, source, media)
    return next(
        translate_iterator_errors(model, partial(_lens_rows, model, question, question.step, threading.Event()))
    )


def lens_text(
    model: LoadedModel,
    ids: Sequence[int],
    first: int,
    *,
    source: int | None = None,
    media: Sequence[str | Path] = (),
    cancel: threading.Event | None = None,
) -> Iterator[tuple[LensRow, ...]]:
    """The same for every token from place `first` on, one after another, from a single pass over the text.

    `source`: default all that stand before `first`. `cancel` ends it. Raises what `lens` does.
    """
    check_cancel(cancel)
    check_paths(media)
    first = to_plain_value(first)
    if not media:
        step_query(model, ids, first, source)
    question = step_query(
        model, ids, len(ids) - 1, first if source is None and model.is_encoder_decoder else source, media
    )
    return translate_iterator_errors(model, partial(_lens_rows, model, question, first, cancel or threading.Event()))


def _lens_rows(
    model: LoadedModel, question: StepQuery, first: int, cancel: threading.Event
) -> Iterator[tuple[LensRow, ...]]:
    """Those of the steps from `first` to the question's own."""
    layers = LayerReader(model)
    states, logits = layers.read(question, question.step - first + 1)
    layers.check_head(states, logits)
    for begin in range(0, states.shape[1], _TOKENS_PER_BLOCK):
        if cancel.is_set():
            return
        part = states[:, begin : begin + _TOKENS_PER_BLOCK]
        chosen = question.ids[first + begin : first + begin + part.shape[1]]
        yield from _block_rows(layers, part, chosen, model.vocabulary)


def _block_rows(
    layers: LayerReader, states: torch.Tensor, chosen: Sequence[int], width: int
) -> Iterator[tuple[LensRow, ...]]:
    """A row for each layer, for each of n tokens `chosen`; states [L + 1, n, D]."""
    count, places, _ = states.shape
    wanted = torch.tensor(chosen, device=states.device).repeat(count)
    found = _block_statistics(layers, states.flatten(0, 1), wanted, width)
    firsts, tops, shares, ranks = (
        torch.cat(column).view(count, places).T.tolist() for column in zip(*found, strict=True)
    )
    for row in zip(firsts, tops, shares, ranks, strict=True):
        yield tuple(map(LensRow, range(count), *row))


def _block_statistics(
    layers: LayerReader, states: torch.Tensor, chosen: torch.Tensor, width: int
) -> Iterator[tuple[torch.Tensor, ...]]:
    """First choice, its probability, the chosen token's, its rank; of states [n, D] and tokens [n], some at a time."""
    scored = max(_MIN_BLOCK, MAX_LOGITS // width)
    for some, tokens in zip(torch.split(states, scored), torch.split(chosen, scored), strict=True):
        yield from _logit_statistics(layers.apply_head(some), tokens)


def _logit_statistics(logits: torch.Tensor, chosen: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """The same, each [n]; of logits [n, V]."""
    found = library() if logits.device.type == "cpu" and logits.is_contiguous() else None
    if found is None:
        read = max(1, _STATISTICS_LOGITS // logits.shape[1])
        yield from map(_logit_statistics_torch, torch.split(logits, read), torch.split(chosen, read))
        return
    told = logits.new_empty(len(logits), 4)
    found.top_choices(logits.data_ptr(), logits.shape, chosen.contiguous().data_ptr(), told.data_ptr())
    first, top, share, rank = told.unbind(1)
    yield first.long(), top, share, rank.long()


def _logit_statistics_torch(logits: torch.Tensor, chosen: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The same without what is built.

    One room for all that is as large as they are, and only operations that are quick on whole rows: beside a small
    model's head the plain ones (`max`, `logsumexp`, a sum of truths) take as long as the head itself.
    """
    room, first = torch.empty_like(logits), _argmax_rows(logits)
    picked, top = logits.gather(1, chosen[:, None]), logits.gather(1, first[:, None])
    ranks = torch.gt(logits, picked, out=room).sum(-1).long() + 1
    whole = torch.sub(logits, top, out=room).exp_().sum(-1)
    return first, 1 / whole, (picked - top)[:, 0].exp() / whole, ranks


def _argmax_rows(logits: torch.Tensor) -> torch.Tensor:
    """Place of the largest in each row; NumPy finds it ten times as fast where it can look."""
    on_host = logits.device.type == "cpu"
    return torch.from_numpy(logits.numpy().argmax(-1)) if on_host else logits.argmax(-1)
