"""One text read by one model, for a look inside."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from core import caches
from core.decoding.forward.forward_pass import Forward
from core.decoding.media_inputs.media_inputs import MediaInputs
from core.models.loaded_model import LoadedModel

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
