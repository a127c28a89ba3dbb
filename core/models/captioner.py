"""BLIP as an encoder–decoder: an encoder that sees, and a decoder that looks at its states.

transformers keeps the two apart: `BlipForConditionalGeneration.generate` runs its eyes, and then has its text half
write alone (Li et al. 2022, section 3). Here both are one module with the inputs of every other encoder–decoder.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from transformers import BlipForConditionalGeneration

from core.models.cache_name import cache_name

if TYPE_CHECKING:
    from torch import nn
    from transformers.cache_utils import Cache
    from transformers.utils.generic import ModelOutput


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
