"""A small GIT and its training targets: the next word, and what each patch of the picture shows, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from describer import words
from describer.batches import Seen
from describer.drawing import PATCH, SIDE
from describer.scenes import LEGEND

if TYPE_CHECKING:
    from shapes import ModelRecipe

POSITIONS = 512
NAMED = 0.5  # weight of the patches in the loss
EMPTY = 0.1  # weight of patches without a shape among them
PLACED = 0.2  # weight of where the patches lie
GRID = SIDE // PATCH  # patches in a row


class Seeing(nn.Module):
    """The model to be shipped, and a head on its encoder that only training uses.

    It names shape, colour and size of what each patch shows, which the recipe knows, and the patch's row and column;
    captions alone take many times as many pictures to teach that.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.aside = nn.Linear(model.config.vision_config.hidden_size, sum(map(len, LEGEND)) + 2 * GRID)
        self.patches: list[Tensor] = []
        model.git.image_encoder.register_forward_hook(self._look_on)

    def _look_on(self, _module: nn.Module, _inputs: Any, output: Any) -> None:
        self.patches[:] = [output.last_hidden_state[:, 1:]]  # the first stands for the whole picture

    def forward(self, pixels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the next words (rows, tokens, vocabulary), and of what the patches show (rows, patches, …)."""
        written = self.model(input_ids=ids, pixel_values=pixels, use_cache=False).logits[:, -ids.shape[1] :]
        return written, self.aside(self.patches.pop())


def seen_loss(seeing: Seeing, batch: Seen) -> Tensor:
    """Cross entropy of the next word, and a share of that of the patches, in nats."""
    written, named = seeing(batch.pixels, batch.ids[:, :-1])
    loss = functional.cross_entropy(written.flatten(0, 1), batch.ids[:, 1:].flatten(), ignore_index=words.PAD)
    return loss + NAMED * naming_loss(named, batch.shown)


def naming_loss(named: Tensor, shown: Tensor) -> Tensor:
    """Cross entropy of shape, colour and size of what each patch shows, and a share of its row's and column's."""
    *parts, row, column = named.split([*map(len, LEGEND), GRID, GRID], -1)
    losses = [PLACED * placing_loss(row, column)]
    for part, wanted in zip(parts, shown.unbind(-1), strict=True):
        weights = torch.ones(part.shape[-1])
        weights[0] = EMPTY
        losses.append(functional.cross_entropy(part.flatten(0, 1), wanted.flatten(), weights))
    return torch.stack(losses).sum()


def placing_loss(row: Tensor, column: Tensor) -> Tensor:
    """Cross entropy of where each patch lies, in nats."""
    patch = torch.arange(GRID * GRID).expand(row.shape[:-1])
    rows = functional.cross_entropy(row.flatten(0, 1), (patch // GRID).flatten())
    return rows + functional.cross_entropy(column.flatten(0, 1), (patch % GRID).flatten())


def new_describer(shape: ModelRecipe) -> Any:
    """A GIT of this shape with fresh weights: ``layers`` see, ``decoder_layers`` write."""
    from transformers import GitConfig, GitForCausalLM

    sizes = {"hidden_size": shape.width, "num_attention_heads": shape.heads, "intermediate_size": shape.inner}
    config = GitConfig(
        vision_config={**sizes, "num_hidden_layers": shape.layers, "image_size": SIDE, "patch_size": PATCH},
        vocab_size=len(words.tokenizer()),
        **sizes,
        num_hidden_layers=shape.extra["decoder_layers"],
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        tie_word_embeddings=True,
        pad_token_id=words.PAD,
        bos_token_id=words.BEGIN,
        eos_token_id=words.END,
    )
    return GitForCausalLM(config)


def generation_settings() -> dict[str, Any]:
    """Where a caption starts and ends."""
    return {"bos_token_id": words.BEGIN, "eos_token_id": words.END, "pad_token_id": words.PAD}
