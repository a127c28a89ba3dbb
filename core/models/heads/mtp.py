"""Heads for several tokens (MTP) in a model's own checkpoint, read by transformers' module for them.

transformers builds and names them for whatever family its checkpoints have them in; which tensors they are it knows for
the published sizes alone, so that is found out here from the checkpoint itself.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import PreTrainedConfig
from transformers.cache_utils import Cache
from transformers.modeling_layers import MtpModel

from core.device_memory import is_out_of_memory
from core.errors import StrategyError
from core.models.cache_name import cache_name
from core.models.heads.head_detection import CheckpointHeads, checkpoint_heads
from core.models.load_plan import BUILD_LOCK
from core.models.loaded_model import LoadedModel
from resources.language import tr

_SUPPORTED_LAYERS = {"full_attention", "sliding_attention"}


class MtpHeads:
    """DeepSeek-V3, GLM-4-MoE and their like: state and embedding normalized, projected, through one layer each."""

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
        """As of `Heads`."""
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
        """As of `Heads`."""
        logits: torch.Tensor = self._network._project_to_logits(states)
        return logits[0].float()


def load_mtp_heads(model: LoadedModel) -> MtpHeads:
    """Read once and kept with the model. Raises StrategyError where they cannot be."""
    if "mtp" not in model.remembered:
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
        model.remembered["mtp"] = MtpHeads(network.eval())
    heads: MtpHeads = model.remembered["mtp"]
    return heads


def _unreadable_error(model: LoadedModel, error: Exception) -> StrategyError:
    return StrategyError(
        tr("The heads for several tokens (MTP) of {model} cannot be read: {reason}").format(
            model=model.name, reason=str(error).splitlines()[0]
        ),
        tr("Draft with a small model, with the model's own first layers (early exit), or with lookahead."),
    )


def _check_layer_types(config: PreTrainedConfig) -> None:
    """Raises ValueError for a layer whose memory cannot be cut."""
    for kind in getattr(config, "layer_types", None) or ():
        if kind not in _SUPPORTED_LAYERS:
            raise ValueError(tr("a layer of the kind {kind} keeps a state.").format(kind=kind))


def _network_with_heads(model: LoadedModel, held: CheckpointHeads) -> Any:
    """The model's network, every module its own, that knows how many heads there are and what they are called."""
    network = copy.copy(model.model)
    config = copy.deepcopy(model.model.config)
    config.name_or_path = str(model.path or config.name_or_path)
    text = config.get_text_config(decoder=True)
    text.num_mtp_layers = held.count
    for kinds in ("layer_types", "mlp_layer_types"):
        own = getattr(text, kinds, None)
        if own and not getattr(text, f"mtp_{kinds}", None):
            setattr(text, f"mtp_{kinds}", [own[-1]] * held.count)
    vars(network).update(config=config, _keys_to_ignore_on_load_unexpected=list(held.patterns))
    return network


def _window(config: PreTrainedConfig, head: int) -> int | None:
    kinds = getattr(config, "layer_types", None)
    return int(config.sliding_window) if kinds and kinds[head] == "sliding_attention" else None
