"""EAGLE's head: one decoder layer that reads a token beside the model's state of the token before it.

Li et al. 2024, EAGLE: Speculative Sampling Requires Rethinking Feature Uncertainty. Its state is a guess of the model's
next one, so that it goes on from its own; embedding (mostly) and output head are the model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig
from transformers.cache_utils import Cache

from core.device_memory import is_out_of_memory
from core.errors import StrategyError
from core.models.cache_name import cache_name
from core.models.heads.head_detection import eagle_unsupported_reason
from core.models.loaded_model import LoadedModel
from core.models.weights import find_weights
from resources.language import tr

Tensors = Mapping[str, torch.Tensor]
_LAYER = "layers.0."


class EagleHead:
    """The head of one folder, for one model."""

    count: int = 1
    windows: tuple[int | None, ...] = (None,)

    def __init__(self, model: LoadedModel, config: PreTrainedConfig, tensors: Tensors) -> None:
        """Raises ValueError or RuntimeError where the tensors are not those of such a head."""
        blank = AutoModel.from_config(config)
        self._rotary, self._layer = blank.rotary_emb.to(model.device), _load_layer(blank.layers[0], tensors)
        self._join = _load_projection(tensors, model.config.hidden_size)
        own = tensors.get("embed_tokens.weight")
        embed: nn.Module = model.model.get_input_embeddings()
        for part in (self._layer, self._join):
            part.to(device=model.device, dtype=model.dtype).eval()
        self._embed = embed if own is None else _make_embedding(own.to(model.device, model.dtype))
        self.readable_ids = len(own) if own is not None else model.readable_ids
        self._head = model.head
        self.weight_count = sum(weight.numel() for part in (self._layer, self._join) for weight in part.parameters())

    def read(
        self, head: int, ids: torch.Tensor, states: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor,
        cache: Cache,
    ) -> torch.Tensor:  # fmt: skip
        """As of `Heads`."""
        joined = self._join(torch.cat([self._embed(ids), states], -1))
        found = self._layer(
            joined, attention_mask=mask, position_ids=positions,
            position_embeddings=self._rotary(joined, position_ids=positions), **{cache_name(self._layer): cache},
        )  # fmt: skip
        state: torch.Tensor = found[0] if isinstance(found, tuple) else found
        return state

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        """As of `Heads`."""
        logits: torch.Tensor = self._head(states)
        return logits[0].float()


def load_eagle_head(model: LoadedModel, folder: Path) -> EagleHead:
    """Read once and kept with the model. Raises StrategyError where it is no head for the model."""
    key = f"eagle/{folder}"
    if key not in model.remembered:
        try:
            reason = eagle_unsupported_reason(model, folder)
            model.remembered[key] = (
                EagleHead(model, _head_config(model, folder), _load_tensors(folder)) if not reason else None
            )
        except Exception as error:
            if is_out_of_memory(error):
                raise
            reason = str(error).splitlines()[0]
        if reason:
            raise StrategyError(
                tr("The draft head in {folder} cannot be read: {reason}").format(folder=folder, reason=reason),
                tr("Name the folder of an EAGLE head that was made for {model}.").format(model=model.name),
            )
    head: EagleHead = model.remembered[key]
    return head


def _head_config(model: LoadedModel, folder: Path) -> PreTrainedConfig:
    """The head's own, for one layer and next to no words: those are the model's."""
    config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True)
    config.num_hidden_layers, config.vocab_size, config.pad_token_id = 1, 1, None
    config._attn_implementation = model.model.config._attn_implementation
    return config


def _load_tensors(folder: Path) -> Tensors:
    """Of all its files; pickled ones, as EAGLE's are, by torch's reader that runs no code."""
    files, pickled = find_weights(folder)
    found: dict[str, torch.Tensor] = {}
    for file in files:
        found |= torch.load(file, map_location="cpu", weights_only=True) if pickled else load_file(file)
    return found


def _load_layer(layer: nn.Module, tensors: Tensors) -> nn.Module:
    """With its weights; the first norm is left out where EAGLE's checkpoint has none."""
    own = {name.removeprefix(_LAYER): value for name, value in tensors.items() if name.startswith(_LAYER)}
    if "input_layernorm.weight" not in own:
        layer._modules["input_layernorm"] = nn.Identity()
    layer.load_state_dict(own)
    return layer


def _make_embedding(table: torch.Tensor) -> nn.Embedding:
    """Of a table [V, D] of its own."""
    words, width = table.shape
    return nn.Embedding(words, width, _weight=table)


def _load_projection(tensors: Tensors, width: int) -> nn.Linear:
    """[token's embedding, state] → state. Raises ValueError for another shape."""
    weight, bias = tensors["fc.weight"], tensors.get("fc.bias")
    if weight.shape != (width, 2 * width):
        raise ValueError(tr("fc.weight has the shape {shape}.").format(shape=tuple(weight.shape)))
    join = nn.Linear(2 * width, width, bias=bias is not None)
    join.load_state_dict({"weight": weight} | ({"bias": bias} if bias is not None else {}))
    return join
