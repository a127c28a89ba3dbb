"""The part of a network that writes, where another part hears or sees: how what was perceived reaches it."""

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

    from core.models.modalities import Takes
    from core.models.text import Network

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


NAMES = ("cache", "past_key_values", "cache_params")
"""Since 5.24; before it; before it, where there is a state alone."""


def cache_name(module: nn.Module) -> str:
    """The argument of its forward, and the field of what it gives back, that is the cache."""
    return _cache_parameter(type(module).forward)


@lru_cache(maxsize=256)
def _cache_parameter(forward: Callable[..., object]) -> str:
    parameters = inspect.signature(forward).parameters
    return next((name for name in NAMES if name in parameters), None) or _current_name()


def _current_name() -> str:
    """What this release of transformers calls it, for a wrapper whose forward passes on whatever it is given."""
    from transformers.modeling_outputs import CausalLMOutputWithPast

    return next(name for name in NAMES if name in CausalLMOutputWithPast.__dataclass_fields__)


class Captioner(BlipForConditionalGeneration):
    """The weights of a BLIP; `generate` is BLIP's own."""

    def get_encoder(self, *_: object, **__: object) -> nn.Module:
        """What sees."""
        eyes: nn.Module = self.vision_model
        return eyes

    def get_decoder(self) -> nn.Module:
        """What writes, without its head."""
        writer: nn.Module = self.text_decoder.bert
        return writer

    def get_output_embeddings(self) -> nn.Linear:
        """From hidden states [B, n, D] to logits [B, n, V]."""
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
        """Logits of ids [B, n] behind those of the cache, beside the encoder's states [B, S, D]; more:
        `output_hidden_states`, `output_attentions`, `return_dict`, `decoder_position_ids`, `decoder_attention_mask`."""
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
    """A BLIP as such a module on the same weights, any other network as it is; what is given stays as it was."""
    if type(network) is not BlipForConditionalGeneration:
        return network
    captioner = copy.copy(network)
    captioner.__class__ = Captioner
    captioner.config = copy.deepcopy(network.config)
    captioner.config.is_encoder_decoder = True
    captioner.generation_config = _generation_settings(network)
    return captioner


def _generation_settings(network: BlipForConditionalGeneration) -> Any:
    """The text half's, ended and begun as BLIP's own `generate` has it."""
    text: Any = network.config.text_config
    settings = copy.deepcopy(network.text_decoder.generation_config)
    settings.decoder_start_token_id = settings.bos_token_id = text.bos_token_id
    settings.eos_token_id, settings.pad_token_id = text.sep_token_id, text.pad_token_id
    return settings
