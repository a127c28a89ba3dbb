"""Weights in int8, int4 or fp8 on a GPU, quantized by torchao while they are moved there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

import torch
from torch import nn

from decodescope.core.errors import UnpackableError
from decodescope.core.models.config_validation import QUANTIZED_FORMATS
from decodescope.core.system.optional_deps import why_missing
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.models.text import Network

_KIND = "card_weights"
"""Attribute of a network that names the format of its layers."""
INT4_GROUP = 128
"""Weights of a row that share a scale; rows of another length stay unquantized, as in torchao."""


def can_quantize_on_card(kind: str) -> bool:
    """Return whether weights can be quantized to `kind` for a card on this computer."""
    return kind in QUANTIZED_FORMATS and torch.cuda.is_available() and not why_missing("card")


def quantize_for_card(network: Network, kind: str, device: torch.device) -> None:
    """Quantize the linear layers of a bfloat16 network, layer by layer, on `device`; the rest is not moved.

    The output head keeps 8 bits, because every choice depends on it; a head that is also the embedding is not
    quantized. Raises UnpackableError if no layer is of a kind that torchao supports.
    """
    from torchao.quantization import quantize_  # optional, and takes seconds to import

    head, words = network.get_output_embeddings(), network.get_input_embeddings()
    is_tied = head.weight is words.weight

    def is_body(module: nn.Module, name: str) -> bool:
        return type(module) is nn.Linear and module is not head and _fits(module, kind)

    def is_own_head(module: nn.Module, name: str) -> bool:
        return module is head and type(module) is nn.Linear and not is_tied

    if not any(is_body(module, "") for module in network.modules()):
        raise UnpackableError(
            tr("{model} has most of its weights in layers that do not support {kind}.").format(
                model=type(network).__name__, kind=kind
            ),
            tr("Choose bfloat16 or float32 weights for this model."),
        )
    for selects, chosen in ((is_body, kind), (is_own_head, "int8" if kind == "int4" else kind)):
        quantize_(network, torchao_config(chosen), selects, device=device)
    setattr(network, _KIND, kind)


def torchao_config(kind: str) -> object:
    """Return torchao's configuration of a format: weights only, computed in bfloat16. int4 in the layout of torch's own
    kernel; others need further packages.
    """
    from torchao.quantization import Float8WeightOnlyConfig, Int4WeightOnlyConfig, Int8WeightOnlyConfig

    if kind == "int4":
        return Int4WeightOnlyConfig(group_size=INT4_GROUP, int4_packing_format="tile_packed_to_4d")
    return Int8WeightOnlyConfig() if kind == "int8" else Float8WeightOnlyConfig()


def card_kind(network: nn.Module) -> str | None:
    """Return the format of a network's layers if they were quantized for a card."""
    kind: str | None = vars(network).get(_KIND)
    return kind


def is_quantized_tensor(tensor: torch.Tensor) -> bool:
    """Return whether a tensor consists of others, as codes and scales."""
    return hasattr(type(tensor), "__tensor_flatten__")


class _CompositeTensor(Protocol):
    def __tensor_flatten__(self) -> tuple[list[str], object]: ...


def tensor_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor, or of those that it consists of."""
    if not is_quantized_tensor(tensor):
        return tensor.numel() * tensor.element_size()
    names, _ = cast("_CompositeTensor", tensor).__tensor_flatten__()
    return sum(tensor_bytes(getattr(tensor, name)) for name in names)


def _fits(module: nn.Linear, kind: str) -> bool:
    return kind != "int4" or module.in_features % INT4_GROUP == 0
