"""The part of a network that writes, where another part hears or sees: how what was perceived reaches it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import torch
from transformers.modeling_outputs import BaseModelOutput

if TYPE_CHECKING:
    from transformers.utils.generic import ModelOutput

    from core.models.hf_protocols import Network
    from core.models.modalities import Takes

MediaInput = Literal["none", "encoder", "before", "prompt"]
"""How a network takes sounds and pictures. encoder: an encoder of its own reads them, and the decoder looks at its
states (Whisper, TrOCR); before: their states stand before the text's first token (GIT); prompt: tokens of the prompt
stand for them (LLaVA, Qwen-VL); none: it reads text alone."""
_TRIAL_STATES = 6
"""States of an encoder that nothing was given to, for a trial."""
_BEFORE_TEXT = frozenset({"git"})


def media_input_of(network: Network, takes: Takes) -> MediaInput:
    """By what the module is, whatever was given to it; `takes`: what it reads."""
    if not takes.media:
        return "none"
    if network.config.is_encoder_decoder:
        return "encoder"
    return "before" if network.config.model_type in _BEFORE_TEXT else "prompt"


def position_function(network: Network) -> Callable[..., Any] | None:
    """What tells where tokens of pictures stand, in models that place them by row and column (Qwen-VL); None in others.

    Such a module remembers how far text behind a picture is shifted, and shifts the next text too: it is always told.
    """
    found: Callable[..., Any] | None = getattr(getattr(network, "model", None), "get_rope_index", None)
    return found


def reset_image_offset(network: Network) -> None:
    """How far text behind the last picture is shifted: what is read next is read as if there had been none."""
    inner: Any = getattr(network, "model", None)
    if getattr(inner, "rope_deltas", None) is not None:
        inner.rope_deltas = None


def dummy_encoder_outputs(network: Network, ids: torch.Tensor) -> ModelOutput:
    """States [1, n, D] of an encoder that has read `ids` [1, n]; of one that reads no text, numbers in their place.

    What a decoder keeps of them, and how it reads on, does not depend on what they are.
    """
    encoder: Any = network.get_encoder()
    if network.main_input_name == "input_ids":
        read: ModelOutput = encoder(input_ids=ids, return_dict=True)
        return read
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(1, _TRIAL_STATES, encoder.config.hidden_size, generator=generator)
    return BaseModelOutput(last_hidden_state=states.to(device=network.device, dtype=network.dtype))
