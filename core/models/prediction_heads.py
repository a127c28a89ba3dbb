"""Interface of prediction heads that read hidden states, whatever checkpoint they come from."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import safe_open
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig
from transformers.cache_utils import Cache
from transformers.modeling_layers import MtpModel

from decodescope.core.errors import StrategyError
from decodescope.core.models.head_detection import CheckpointHeads, checkpoint_heads, eagle_unsupported_reason
from decodescope.core.models.load_plan import BUILD_LOCK
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.model_files import find_weights
from decodescope.core.models.text_decoder import cache_name
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.resources.language import tr


class PredictionHeads(Protocol):
    """One or more small decoder layers of the model's width that share its embedding and output head."""

    count: int
    """Number of consecutive heads; a single head is applied repeatedly to its own guesses."""
    weight_count: int
    """Number of weights, without those shared with the model."""
    readable_ids: int
    """Number of token ids in their embedding."""
    windows: tuple[int | None, ...]
    """Attention window of each head in tokens; None for unlimited."""

    def read(
        self, head: int, ids: torch.Tensor, states: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor,
        cache: Cache,
    ) -> torch.Tensor:  # fmt: skip
        """Return the states [1, n, D] after tokens ids [1, n], each combined with the state [1, n, D] of the token
        before it.

        `mask` [1, 1, n, rows + n] is additive; the cache's layer `head` grows by n rows.
        """

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        """Return float32 logits [n, V] of states [1, n, D]."""


Tensors = Mapping[str, torch.Tensor]
_LAYER = "layers.0."


class EagleHead:
    """The EAGLE head of one folder, attached to one model."""

    count: int = 1
    windows: tuple[int | None, ...] = (None,)

    def __init__(self, model: LoadedModel, config: PreTrainedConfig, tensors: Tensors) -> None:
        """Raise ValueError or RuntimeError if the tensors are not those of an EAGLE head."""
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
        """Implement `PredictionHeads.read`."""
        joined = self._join(torch.cat([self._embed(ids), states], -1))
        found = self._layer(
            joined, attention_mask=mask, position_ids=positions,
            position_embeddings=self._rotary(joined, position_ids=positions), **{cache_name(self._layer): cache},
        )  # fmt: skip
        state: torch.Tensor = found[0] if isinstance(found, tuple) else found
        return state

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        """Implement `PredictionHeads.scores`."""
        logits: torch.Tensor = self._head(states)
        return logits[0].float()


def load_eagle_head(model: LoadedModel, folder: Path) -> EagleHead:
    """Load the head once and cache it with the model. Raises StrategyError if it does not fit the model."""
    key = f"eagle/{folder}"
    if key not in model.strategy_data:
        try:
            reason = eagle_unsupported_reason(model, folder)
            model.strategy_data[key] = (
                EagleHead(model, _head_config(model, folder), _load_tensors(folder)) if not reason else None
            )
        except Exception as error:
            if is_out_of_memory(error):
                raise
            reason = str(error).splitlines()[0]
        if reason:
            raise StrategyError(
                tr("The draft head in {folder} cannot be read: {reason}").format(folder=folder, reason=reason),
                tr("Enter the folder of an EAGLE head made for {model}.").format(model=model.name),
            )
    head: EagleHead = model.strategy_data[key]
    return head


def _head_config(model: LoadedModel, folder: Path) -> PreTrainedConfig:
    """Return the head's config, reduced to one layer and a vocabulary of one, because the model's embedding is used."""
    config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True)
    config.num_hidden_layers, config.vocab_size, config.pad_token_id = 1, 1, None
    config._attn_implementation = model.model.config._attn_implementation
    return config


def _load_tensors(folder: Path) -> Tensors:
    """Return the tensors of all files; pickled files, which EAGLE uses, are loaded with `weights_only`."""
    files, pickled = find_weights(folder)
    found: dict[str, torch.Tensor] = {}
    for file in files:
        if pickled:
            found |= torch.load(file, map_location="cpu", weights_only=True)
            continue
        with safe_open(file, framework="pt", backend="pread") as opened:
            found |= {name: opened.get_tensor(name) for name in opened.keys()}
    return found


def _load_layer(layer: nn.Module, tensors: Tensors) -> nn.Module:
    """Load the layer's weights; drop the first norm if the checkpoint has none, as EAGLE's do."""
    own = {name.removeprefix(_LAYER): value for name, value in tensors.items() if name.startswith(_LAYER)}
    if "input_layernorm.weight" not in own:
        layer._modules["input_layernorm"] = nn.Identity()
    layer.load_state_dict(own)
    return layer


def _make_embedding(table: torch.Tensor) -> nn.Embedding:
    """Return an embedding of the given table [V, D]."""
    words, width = table.shape
    return nn.Embedding(words, width, _weight=table)


def _load_projection(tensors: Tensors, width: int) -> nn.Linear:
    """Return the projection [token embedding, state] → state. Raises ValueError for another shape."""
    weight, bias = tensors["fc.weight"], tensors.get("fc.bias")
    if weight.shape != (width, 2 * width):
        raise ValueError(tr("fc.weight has the shape {shape}.").format(shape=tuple(weight.shape)))
    join = nn.Linear(2 * width, width, bias=bias is not None)
    join.load_state_dict({"weight": weight} | ({"bias": bias} if bias is not None else {}))
    return join


_SUPPORTED_LAYERS = {"full_attention", "sliding_attention"}


class MtpHeads:
    """MTP heads of DeepSeek-V3, GLM-4-MoE and similar models.

    State and embedding are normalized, projected, and passed through one layer per head.
    """

    def __init__(self, network: Any) -> None:
        self._network = network
        self.count: int = network.num_mtp_layers
        self.readable_ids = int(network.embed_tokens.weight.shape[0])
        shared = {id(weight) for part in (network.embed_tokens, network.shared_head) for weight in part.parameters()}
        self.weight_count = sum(weight.numel() for weight in network.parameters() if id(weight) not in shared)
        self.windows: tuple[int | None, ...] = tuple(_window(network.config, head) for head in range(self.count))

    def read(
        self, head: int, ids: torch.Tensor, states: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor,
        cache: Cache,
    ) -> torch.Tensor:  # fmt: skip
        """Implement `PredictionHeads.read`."""
        network = self._network
        embedded = network.embed_tokens(ids)
        angles = None
        if network.rotary_emb is not None:
            kind = {"layer_type": network.config.layer_types[head]} if network.has_per_layer_rope else {}
            angles = network.rotary_emb(embedded, position_ids=positions, **kind)
        layer = network.layers[head]
        found: torch.Tensor = layer(
            embedded, states, position_embeddings=angles, position_ids=positions, attention_mask=mask,
            **{cache_name(layer): cache},
        )  # fmt: skip
        return network.shared_post_norm(found) if network.use_shared_post_norm else found

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        """Implement `PredictionHeads.scores`."""
        logits: torch.Tensor = self._network._project_to_logits(states)
        return logits[0].float()


def load_mtp_heads(model: LoadedModel) -> MtpHeads:
    """Load the heads once and cache them with the model. Raises StrategyError if they cannot be loaded."""
    if "mtp" not in model.strategy_data:
        held = checkpoint_heads(model)
        assert held is not None
        try:
            with BUILD_LOCK:
                network = MtpModel.from_pretrained(_network_with_heads(model, held), device_map={"": model.device})
            _check_layer_types(network.config)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise _unreadable_error(model, error) from error
        model.strategy_data["mtp"] = MtpHeads(network.eval())
    heads: MtpHeads = model.strategy_data["mtp"]
    return heads


def _unreadable_error(model: LoadedModel, error: Exception) -> StrategyError:
    return StrategyError(
        tr("The multi-token prediction heads (MTP) of {model} cannot be read: {reason}").format(
            model=model.name, reason=str(error).splitlines()[0]
        ),
        tr("Draft with a small model, with the model's own first layers (early exit), or with lookahead."),
    )


def _check_layer_types(config: PreTrainedConfig) -> None:
    """Raise ValueError for a layer whose cache cannot be cropped."""
    for kind in getattr(config, "layer_types", None) or ():
        if kind not in _SUPPORTED_LAYERS:
            raise ValueError(tr("a layer of type {kind} keeps a state.").format(kind=kind))


def _network_with_heads(model: LoadedModel, heads: CheckpointHeads) -> Any:
    """Return a copy of the model's network that shares its modules and whose config describes the heads."""
    network = copy.copy(model.model)
    config = copy.deepcopy(model.model.config)
    config.name_or_path = str(model.path or config.name_or_path)
    text = config.get_text_config(decoder=True)
    text.num_mtp_layers = heads.count
    for kinds in ("layer_types", "mlp_layer_types"):
        own = getattr(text, kinds, None)
        if own and not getattr(text, f"mtp_{kinds}", None):
            setattr(text, f"mtp_{kinds}", [own[-1]] * heads.count)
    vars(network).update(config=config, _keys_to_ignore_on_load_unexpected=list(heads.patterns))
    return network


def _window(config: PreTrainedConfig, head: int) -> int | None:
    kinds = getattr(config, "layer_types", None)
    return int(config.sliding_window) if kinds and kinds[head] == "sliding_attention" else None
