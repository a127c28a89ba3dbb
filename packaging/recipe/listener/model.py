"""A small Whisper and its training targets: next tokens, and the sound at each moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from listener import words
from listener.aligned import POSITIONS, legend
from listener.batches import PADDING, Heard

if TYPE_CHECKING:
    from shapes import ModelRecipe

NAMED = 0.5  # weight of phones and words in the loss
SILENT = 0.1  # weight of positions without speech among them


class Listening(nn.Module):
    """The model to be shipped, and a head on its encoder that only training uses.

    It names the phone and the word at each moment, from espeak-ng; sentences alone take many times as many
    sounds to teach that, for a decoder must first find out which part of a sound a word is.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.aside = nn.Linear(model.config.d_model, sum(_kinds()))

    def forward(self, features: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the next tokens (rows, tokens, vocabulary), and of what is heard when (rows, positions, …)."""
        heard = self.model.model.encoder(features)[0]
        written = self.model(encoder_outputs=(heard,), decoder_input_ids=ids, use_cache=False).logits
        return written, self.aside(heard)


def _kinds() -> list[int]:
    """How many phones and words there are, silence among them."""
    return [len(names) + 1 for names in legend()]


def heard_loss(listening: Listening, batch: Heard) -> Tensor:
    """Cross entropy of the next token, and a share of that of phones and words, in nats."""
    written, named = listening(batch.features, batch.ids[:, :-1].clamp(min=0))
    wanted = batch.ids[:, 2:]  # the two start marks are given
    loss = functional.cross_entropy(written[:, 1:].flatten(0, 1), wanted.flatten(), ignore_index=PADDING)
    return loss + NAMED * naming_loss(named, batch.aligned)


def naming_loss(named: Tensor, aligned: Tensor) -> Tensor:
    """Cross entropy of phone and word at each position, in nats."""
    losses = []
    for part, wanted in zip(named.split(_kinds(), -1), aligned.unbind(-1), strict=True):
        weights = torch.ones(part.shape[-1])
        weights[0] = SILENT
        losses.append(functional.cross_entropy(part.flatten(0, 1), wanted.flatten(), weights))
    return torch.stack(losses).sum()


def new_listener(shape: ModelRecipe) -> Any:
    """A Whisper of this shape with fresh weights; English only, no times."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    end, start, _ = words.tokenizer().all_special_ids
    config = WhisperConfig(
        vocab_size=words.TOKENS,
        num_mel_bins=words.BANDS,
        d_model=shape.width,
        encoder_layers=shape.layers,
        decoder_layers=shape.extra["decoder_layers"],
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=shape.inner,
        decoder_ffn_dim=shape.inner,
        max_source_positions=POSITIONS,
        decoder_start_token_id=start,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
        dropout=0.0,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    return WhisperForConditionalGeneration(config)


def generation_settings() -> dict[str, Any]:
    """Where writing starts and ends: Whisper's start mark, then the mark that no times are wanted."""
    end, start, no_times = words.tokenizer().all_special_ids
    return {
        "decoder_start_token_id": start,
        "no_timestamps_token_id": no_times,
        "bos_token_id": end,
        "eos_token_id": end,
        "pad_token_id": end,
        "is_multilingual": False,
    }
