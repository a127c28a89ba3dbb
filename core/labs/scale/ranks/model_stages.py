"""A model split into stages of layers, one for each process of a pipeline."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from decodescope.core.labs.scale.ranks.model_outline import stage_layer_range


class LastStageHead(nn.Module):
    """The last norm and the loss, divided by the number of micro-batches."""

    def __init__(self, norm: nn.Module, lm_head: nn.Module, micro_batches: int) -> None:
        super().__init__()
        self.norm, self.lm_head, self._micro_batches = norm, lm_head, micro_batches

    def forward(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the loss; `hidden` [texts, length, width], `right` target ids [texts, length]."""
        logits = self.lm_head(self.norm(hidden))
        return cross_entropy(logits.flatten(0, 1), targets.flatten()) / self._micro_batches


class ModelStage(nn.Module):
    """One of `count` stages of a model, which is taken apart for it.

    The first has the embedding, the last the head. With `recompute`, layers and head keep only their input and run
    again in the backward pass.
    """

    def __init__(
        self, model: PreTrainedModel, number: int, count: int, *, micro_batches: int = 1, recompute: bool = False
    ) -> None:
        super().__init__()
        names = {parameter: name for name, parameter in model.named_parameters()}
        decoder, words = model.base_model, model.get_output_embeddings()
        table, norm, layers = (decoder.get_submodule(name) for name in ("embed_tokens", "norm", "layers"))
        assert isinstance(layers, nn.ModuleList)
        mine = stage_layer_range(len(layers), number, count)
        decoder.add_module("layers", nn.ModuleList(layers[place] for place in mine))
        decoder.add_module("norm", nn.Identity())
        decoder.add_module("embed_tokens", None)
        self.decoder, self._recompute = decoder, recompute
        self.table = table if number == 0 else None
        self.head = LastStageHead(norm, words, micro_batches) if number == count - 1 else None
        self.width = int(model.config.hidden_size)
        self.names = [names[parameter] for parameter in self.parameters()]
        """Parameter names as in the full model."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return hidden states from ids [texts, length] or hidden states [texts, length, width]."""
        hidden: Tensor = inputs if self.table is None else self.table(inputs)
        return self._checkpointed(self._layers, hidden)

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the last stage's part of the loss."""
        assert self.head is not None
        return self._checkpointed(self.head, hidden, targets)

    @property
    def tied_weight(self) -> nn.Parameter | None:
        """The embedding of the first stage, or the output matrix of the last, which tied models share."""
        module = self.table if self.table is not None else self.head.lm_head if self.head is not None else None
        return next(module.parameters()) if module is not None else None

    def _layers(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.decoder(inputs_embeds=hidden).last_hidden_state
        return found

    def _checkpointed(self, module: object, *given: Tensor) -> Tensor:
        """Run the module with reentrant checkpointing, whose saved input is counted; nothing here is random."""
        assert callable(module)
        if self._recompute and torch.is_grad_enabled():
            found: Tensor = checkpoint(module, *given, use_reentrant=True, preserve_rng_state=False)
        else:
            found = module(*given)
        return found
