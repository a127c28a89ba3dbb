"""The text decoder of a multimodal network, and how media inputs reach it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn
from transformers import BlipForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

if TYPE_CHECKING:
    from torch import nn
    from transformers.cache_utils import Cache
    from transformers.utils.generic import ModelOutput

    from decodescope.core.models.modalities import Modalities
    from decodescope.core.models.text import Network

MediaInput = Literal["none", "encoder", "before", "prompt"]
"""How a network takes audio and images. encoder: its encoder reads them and the decoder attends to its states (Whisper,
TrOCR); before: their states precede the first text token (GIT); prompt: placeholder tokens in the prompt represent them
(LLaVA, Qwen-VL); none: text only.
"""
_TRIAL_STATES = 6
"""Number of dummy encoder states for a trial pass."""
_BEFORE_TEXT = frozenset({"git"})


def media_input_of(network: Network, takes: Modalities) -> MediaInput:
    """Return how the module takes media, whatever was passed to it; `takes`: its modalities."""
    if not takes.media:
        return "none"
    if network.config.is_encoder_decoder:
        return "encoder"
    return "before" if network.config.model_type in _BEFORE_TEXT else "prompt"


def position_function(network: Network) -> Callable[..., Any] | None:
    """Return the function that positions image tokens by row and column (Qwen-VL); None for other models.

    Such a module stores the position offset after an image and applies it to the next text too, so the positions are
    always passed.
    """
    found: Callable[..., Any] | None = getattr(getattr(network, "model", None), "get_rope_index", None)
    return found


def reset_image_offset(network: Network) -> None:
    """Reset the position offset after the last image, so that the next text is read as if there had been none."""
    inner: Any = getattr(network, "model", None)
    if getattr(inner, "rope_deltas", None) is not None:
        inner.rope_deltas = None


def dummy_encoder_outputs(network: Network, ids: torch.Tensor) -> ModelOutput:
    """Return encoder states [1, n, D] of `ids` [1, n]; random numbers if the encoder reads no text.

    What a decoder caches of them, and how it continues, does not depend on their values.
    """
    encoder: Any = network.get_encoder()
    if network.main_input_name == "input_ids":
        read: ModelOutput = encoder(input_ids=ids, return_dict=True)
        return read
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(1, _TRIAL_STATES, encoder.config.hidden_size, generator=generator)
    return BaseModelOutput(last_hidden_state=states.to(device=network.device, dtype=network.dtype))


NAMES = ("cache", "past_key_values", "cache_params")
"""Since 5.24; before 5.24; before 5.24 for models with a state only."""


def cache_name(module: nn.Module) -> str:
    """Return the name of the cache, both as an argument of `forward` and as a field of its output."""
    return _cache_parameter(type(module).forward)


@lru_cache(maxsize=256)
def _cache_parameter(forward: Callable[..., object]) -> str:
    parameters = inspect.signature(forward).parameters
    return next((name for name in NAMES if name in parameters), None) or _current_name()


def _current_name() -> str:
    """Return the name in this transformers release, for wrappers whose `forward` passes on arbitrary arguments."""
    from transformers.modeling_outputs import CausalLMOutputWithPast

    return next(name for name in NAMES if name in CausalLMOutputWithPast.__dataclass_fields__)


class Captioner(BlipForConditionalGeneration):
    """BLIP's weights with an encoder–decoder interface; `generate` is BLIP's own."""

    def get_encoder(self, *_: object, **__: object) -> nn.Module:
        """Return the vision encoder."""
        eyes: nn.Module = self.vision_model
        return eyes

    def get_decoder(self) -> nn.Module:
        """Return the text decoder without its head."""
        writer: nn.Module = self.text_decoder.bert
        return writer

    def get_output_embeddings(self) -> nn.Linear:
        """Return the output head, from hidden states [B, n, D] to logits [B, n, V]."""
        head: nn.Linear = self.text_decoder.get_output_embeddings()
        return head

    def forward(
        self,
        decoder_input_ids: torch.Tensor,
        encoder_outputs: ModelOutput,
        cache: Cache | None = None,
        use_cache: bool = True,
        logits_to_keep: int = 0,
        **more: object,
    ) -> ModelOutput:
        """Return the logits of ids [B, n] that follow those in the cache, given the encoder states [B, S, D].

        `more`: `output_hidden_states`, `output_attentions`, `return_dict`, `decoder_position_ids`,
        `decoder_attention_mask`.
        """
        own = {name.removeprefix("decoder_"): value for name, value in more.items()}
        read: ModelOutput = self.text_decoder(
            input_ids=decoder_input_ids, encoder_hidden_states=encoder_outputs["last_hidden_state"],
            use_cache=use_cache, logits_to_keep=logits_to_keep, is_decoder=True,
            **{cache_name(self.text_decoder): cache}, **own,
        )  # fmt: skip
        read["decoder_hidden_states"] = read.get("hidden_states")
        read["decoder_attentions"] = read.get("attentions")
        return read


def as_encoder_decoder(network: object) -> Any:
    """Return a BLIP as a `Captioner` that shares its weights, or any other network unchanged. The input is not
    modified.
    """
    if type(network) is not BlipForConditionalGeneration:
        return network
    captioner = copy.copy(network)
    captioner.__class__ = Captioner
    captioner.config = copy.deepcopy(network.config)
    captioner.config.is_encoder_decoder = True
    captioner.generation_config = _generation_settings(network)
    return captioner


def _generation_settings(network: BlipForConditionalGeneration) -> Any:
    """Return the text half's settings with the start and end tokens that BLIP's own `generate` uses."""
    text: Any = network.config.text_config
    settings = copy.deepcopy(network.text_decoder.generation_config)
    settings.decoder_start_token_id = settings.bos_token_id = text.bos_token_id
    settings.eos_token_id, settings.pad_token_id = text.sep_token_id, text.pad_token_id
    return settings
