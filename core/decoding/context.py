"""What the processors of a run are built from: its model, its settings, and the tokens that stand before the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from core.decoding.prompt import encode
from core.decoding.stopping import end_token_ids
from core.processors.base import Context

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from core.decoding.prompt_inputs import PromptInputs
    from core.models.loaded_model import LoadedModel
    from core.processors.base import Uniform
    from core.request import Request


def build_context(
    model: LoadedModel,
    request: Request,
    config: GenerationConfig,
    inputs: PromptInputs,
    sequences: int,
    max_length: int,
    rng: Uniform,
) -> Context:
    """The context of a run that writes so many `sequences`, each of `max_length` tokens at most. Raises what `encode`
    raises of the negative prompt."""
    eos = sorted(token for token in end_token_ids(config) if token < model.vocabulary)
    return Context(
        model=model,
        config=config,
        start=len(inputs.decoder_start),
        max_length=max_length,
        encoder_ids=torch.tensor([inputs.source], device=model.device) if inputs.source else None,
        eos=torch.tensor(eos, device=model.device) if eos else None,
        keep=max(len(eos) + 1, 2) if (config.num_beams or 1) > 1 else 1,
        negative_ids=_negative_ids(model, request, inputs, sequences),
        options=request.options,
        rng=rng,
        before=inputs.decoder_start,
        beginning=inputs.beginning,
    )


def _negative_ids(model: LoadedModel, request: Request, inputs: PromptInputs, sequences: int) -> torch.Tensor | None:
    """What guidance steers away from, [texts, n], with the answer's beginning behind it; None where the last token of
    the prompt is all of it."""
    negative, beginning = request.negative_prompt, inputs.beginning
    if negative is None and not beginning:
        return None
    before = inputs.decoder_start[-1:] if negative is None else encode(model, negative)
    return torch.tensor([[*before, *beginning]], device=model.device).repeat(sequences, 1)
