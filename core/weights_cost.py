"""What weights in fewer bits cost: how far a model's scores move on a text, and how much worse it foretells it."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from core.arguments import check_cancel
from core.decoding.prompt import encode
from core.errors import PromptError
from core.models.loaded_model import LoadedModel, check_model
from core.models.text_decoder import dummy_encoder_outputs
from resources.language import tr

_REPORT_INTERVAL = 64
"""Tokens between two reports."""


@dataclass(frozen=True, slots=True)
class WeightsCost:
    """As far as the text was read."""

    done: int
    """Tokens that were foretold and held against the text."""
    total: int
    error: float
    """‖logits − plain logits‖ ÷ ‖plain logits‖, over all positions and tokens."""
    perplexity: float
    plain_perplexity: float

    @property
    def change(self) -> float:
        """Perplexity ÷ that of the plain weights, less 1."""
        return self.perplexity / self.plain_perplexity - 1


def weights_cost(
    model: LoadedModel, plain: LoadedModel, text: str, cancel: threading.Event | None = None
) -> Iterator[WeightsCost]:
    """`model` and `plain`, the same model with its weights as they were, read `text`; a report every 64 tokens.

    The last one, with `done` = `total`, is of the whole text, which is cut at the model's context. Ends early when
    `cancel` is set. Raises PromptError for a text of fewer than two tokens.
    """
    check_model(plain)
    check_cancel(cancel)
    ids = torch.tensor([encode(model, text, unbounded=True)[: model.context]])
    total = ids.shape[1] - 1
    if total < 1:
        raise PromptError(tr("The text has fewer than two tokens."), tr("Give a longer one."))
    with torch.inference_mode():
        ours, theirs = (_logits(one, ids) for one in (model, plain))
        apart = whole = lost = plain_lost = 0.0
        for start in range(0, total, _REPORT_INTERVAL):
            if cancel is not None and cancel.is_set():
                return
            part = slice(start, min(start + _REPORT_INTERVAL, total))
            following = ids[0, 1:][part]
            apart += float((ours[part] - theirs[part]).square().sum())
            whole += float(theirs[part].square().sum())
            lost += _summed_loss(ours[part], following)
            plain_lost += _summed_loss(theirs[part], following)
            done = part.stop
            yield WeightsCost(
                done, total, math.sqrt(apart / whole), math.exp(lost / done), math.exp(plain_lost / done)
            )  # fmt: skip


def _logits(model: LoadedModel, ids: torch.Tensor) -> torch.Tensor:
    """float32 logits [n, V]; an encoder–decoder reads the text and foretells it."""
    ids = ids.to(model.device)
    given: dict[str, object] = {"input_ids": ids}
    if model.is_encoder_decoder:
        given = {"decoder_input_ids": ids, "encoder_outputs": dummy_encoder_outputs(model.model, ids)}
    logits: torch.Tensor = model.model(**given).logits
    return logits[0].float().cpu()


def _summed_loss(logits: torch.Tensor, following: torch.Tensor) -> float:
    return float(torch.nn.functional.cross_entropy(logits, following, reduction="sum"))
