"""Effect of adapters on one step: the distribution with and without them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from decodescope.core.checks.arguments import check_integer
from decodescope.core.errors import InsideError
from decodescope.core.interpretability.step_query import StepQuery, new_forward, stack_ids, step_query
from decodescope.core.models.error_translation import translate_errors
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.system.torch_state import isolated
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.models.adapters.adapter_choice import AdapterSource


class AdapterChange(NamedTuple):
    """Probability and rank of a token with and without the adapters; rank 1 is the likeliest token."""

    id: int
    before: float
    """Probability of the base model."""
    after: float
    """Probability with the adapters."""
    rank_before: int
    rank_after: int


class AdapterEffect(NamedTuple):
    """Effect of all active adapters on one step."""

    changes: tuple[AdapterChange, ...]
    """The likeliest tokens of both sides and the chosen one, the likeliest with the adapters first."""
    divergence: float
    """Kullback–Leibler divergence of the base model's distribution from the one with adapters, in nats."""
    chosen: AdapterChange
    """The token at the step."""


@isolated
def adapter_effect(
    model: LoadedModel, ids: Sequence[int], step: int, *, adapters: Sequence[AdapterSource] | None = None,
    source: int | None = None, media: Sequence[str | Path] = (), top_n: int = 5,
) -> AdapterEffect:  # fmt: skip
    """Return what the adapters changed at the step that chose `ids[step]` after `ids[:step]`.

    Two passes over the text, with the adapters and without. The distributions are the model's own, without any settings
    of a run. `adapters`: as in `Request.adapters`; default those in effect. `source` and `media` as in `lens`. Raises
    InsideError without an adapter in effect, and the errors of `lens`.
    """
    query = step_query(model, ids, step, source, media)
    check_integer("top_n", top_n, 1, 1000)
    with model.adapters.using(adapters), translate_errors(model):
        if not model.adapters.active:
            raise InsideError(
                tr("No adapter is in effect, so nothing was changed."),
                tr("Add an adapter with a strength other than 0, then repeat the run."),
            )
        after = _log_probabilities(model, query)
        with model.adapters.using(()):
            before = _log_probabilities(model, query)
    return _compare(before, after, query.chosen, top_n)


def _log_probabilities(model: LoadedModel, query: StepQuery) -> torch.Tensor:
    """Return float32 log-probabilities [V] of the step."""
    media, encoded = query.media_inputs, query.encoded
    room = len(query.before) + (media.leading_positions if media is not None else 0)
    forward = new_forward(model, room, [encoded] if encoded else (), media)
    return forward(stack_ids(model, [query.before])).last[0].float().log_softmax(-1).cpu()


def _compare(before: torch.Tensor, after: torch.Tensor, chosen: int, top_n: int) -> AdapterEffect:
    count = min(top_n, len(after))
    tokens = dict.fromkeys([*after.topk(count).indices.tolist(), *before.topk(count).indices.tolist(), chosen])
    changes = [_change(before, after, token) for token in tokens]
    finite = torch.isfinite(after) & torch.isfinite(before)
    divergence = float((after.exp() * (after - before))[finite].sum())
    own = next(one for one in changes if one.id == chosen)
    return AdapterEffect(tuple(sorted(changes, key=lambda one: -one.after)), max(0.0, divergence), own)


def _change(before: torch.Tensor, after: torch.Tensor, token: int) -> AdapterChange:
    ranks = (1 + int((side > side[token]).sum()) for side in (before, after))
    return AdapterChange(token, float(before[token].exp()), float(after[token].exp()), *ranks)
