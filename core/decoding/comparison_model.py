"""A second model on the text a first one is reading: what it holds of the same tokens, and how far apart they are."""

from __future__ import annotations

import math

import torch

from core.decoding.full_text_scores import FullTextScores
from core.decoding.given_text import GivenText
from core.decoding.run_preparation import check_scores, decoder_start_ids
from core.decoding.speculation.drafters.compatibility import has_same_tokens
from core.decoding.step_stats import StepStats, compute_step_stats
from core.errors import ComparisonError, TextTooLongError
from core.events import TokenCompared
from core.models.loaded_model import LoadedModel
from resources.language import tr


class ComparisonModel:
    """Reads along. Raises ComparisonError where the two mean something else by a token, TextTooLongError."""

    def __init__(self, model: LoadedModel, reference: LoadedModel, given: GivenText, top_n: int) -> None:
        if reason := comparison_unsupported_reason(reference, model):
            raise ComparisonError(reason, tr("Choose a second model of the same family."))
        self._model, self._top_n = model, top_n
        given = _given_text_for(model, given)
        self.scores = FullTextScores(model, given)

    def compare(
        self, step: int, reference_logits: torch.Tensor, logits: torch.Tensor, chosen: torch.Tensor
    ) -> tuple[TokenCompared, ...]:
        """Events of the tokens `chosen` [n] from `step` on; logits of both [n, V]."""
        check_scores(self._model, logits, logits, step)
        readings = compute_step_stats([logits], chosen.to(logits.device), self._top_n, (), self._model.pieces)
        divergences = divergence(reference_logits, logits).tolist()
        pairs = enumerate(zip(readings, divergences, strict=True), step)
        return tuple(_token_compared(place, reading, bits) for place, (reading, bits) in pairs)


def comparison_unsupported_reason(first: LoadedModel, second: LoadedModel) -> str | None:
    """Why two models cannot be held against each other token by token; None when they can."""
    if first.is_encoder_decoder != second.is_encoder_decoder:
        kinds = (tr("a decoder-only model"), tr("an encoder–decoder"))
        return tr("{first} is {kind}, {second} {other_kind}.").format(
            first=first.name,
            kind=kinds[first.is_encoder_decoder],
            second=second.name,
            other_kind=kinds[second.is_encoder_decoder],
        )
    if not has_same_tokens(first, second):
        return tr("{second} has another tokenizer than {first}: their tokens are not the same pieces of text.").format(
            second=second.name, first=first.name
        )
    return None


def divergence(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """KL(first ‖ second) in bits, [n], of logits [n, V]; places that only one of them has (padding) are left out."""
    width = min(first.shape[-1], second.shape[-1])
    p = torch.log_softmax(first[:, :width], -1)
    q = torch.log_softmax(second[:, :width].to(first.device), -1)
    parts = p.exp() * (p - q)
    return parts.masked_fill(torch.isneginf(p), 0.0).sum(-1).clamp(min=0.0) / math.log(2)


def _given_text_for(model: LoadedModel, given: GivenText) -> GivenText:
    """The same text behind its own decoder's first token."""
    start = decoder_start_ids(model, model.generation_config, given.prompt) if model.is_encoder_decoder else given.start
    found = GivenText(given.prompt, start, given.tokens)
    if model.context is not None and len(found.decoder_ids) > model.context:
        raise TextTooLongError(len(start) + len(given.tokens), model.context + 1)
    return found


def _token_compared(step: int, reading: StepStats, bits: float) -> TokenCompared:
    return TokenCompared(
        step, reading.token, math.exp(reading.raw_log_probability), reading.raw_log_probability, reading.rank,
        reading.entropy, bits, reading.details.alternatives(),
    )  # fmt: skip
