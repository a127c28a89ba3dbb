"""Putting packed layers where a network has linear ones, before its weights are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch import nn
from transformers.pytorch_utils import Conv1D

from core.errors import UnpackableError
from core.models.quantized.experts import PackedExperts
from core.models.quantized.packed_layers import PackedEmbedding, PackedLinear, PackedModule
from core.models.quantized.weight_formats import PACKED
from resources.language import tr

if TYPE_CHECKING:
    from core.models.hf_protocols import Network

_EXPERT_NAMES = ("gate_up_proj", "up_proj", "down_proj")
"""What transformers calls the tensors [experts, outputs, inputs] of a mixture's experts."""
_MIN_FRACTION = 0.5
"""Share of the weights that packing has to reach, to be worth its name."""


def replace_layers(network: Network, kind: str) -> None:
    """Replace linear layers, tables of words and experts of a network on torch's meta device.

    Norms, tables of positions, routers and convolutions stay as they are. Embedding and head have eight bits in any
    case: every choice rests on them. Raises UnpackableError where that leaves most weights unpacked.
    """
    before = sum(p.numel() for p in network.parameters())
    head, words = network.get_output_embeddings(), network.get_input_embeddings()
    for parent, name, child in list(_children(network)):
        packed = _packed_embedding(child, words) or _packed_layer(child, 8 if child is head else PACKED[kind])
        if packed is not None:
            setattr(parent, name, packed)
    if any(expert_tensors(network)):
        network.set_experts_implementation("eager")  # expert by expert: others want one tensor of them all
    reached = sum(m.weight.numel() for m in network.modules() if isinstance(m, PackedModule))
    reached += sum(bank.numel() for _, _, bank in expert_tensors(network))
    if reached < _MIN_FRACTION * before:
        raise UnpackableError(
            tr("{model} keeps most of its weights in layers that cannot be kept in {kind}.").format(
                model=type(network).__name__, kind=kind
            ),
            tr("Choose bfloat16 or float32 weights for it."),
        )


def expert_tensors(network: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:
    """Every bank of experts that is still one tensor: the module that holds it, its name there, the tensor."""
    for module in network.modules():
        for name in _EXPERT_NAMES:
            tensor = module._parameters.get(name)
            if tensor is not None and tensor.dim() == 3 and not _is_transposed(module):
                yield module, name, tensor


def replace_experts(module: nn.Module, name: str, bits: int) -> PackedExperts:
    """A packed bank in the place of a module's tensor `name`, still empty."""
    tensor = module._parameters.pop(name)
    assert tensor is not None
    experts, outputs, inputs = tensor.shape
    bank = PackedExperts(experts, outputs, inputs, bits)
    module.add_module(name, bank)
    return bank


def _is_transposed(module: nn.Module) -> bool:
    """Whether its experts are kept as [inputs, outputs], which is multiplied otherwise."""
    return bool(vars(module).get("is_transposed", False))


def _children(network: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    for parent in network.modules():
        for name, child in parent.named_children():
            yield parent, name, child


def _packed_layer(child: nn.Module, bits: int) -> PackedModule | None:
    """What stands for a module; None for one that stays."""
    if type(child) is nn.Linear:
        return PackedLinear(child.out_features, child.in_features, bits, child.bias)
    if type(child) is Conv1D:
        inputs, outputs = child.weight.shape
        return PackedLinear(outputs, inputs, bits, child.bias, transposed=True)
    return None


def _packed_embedding(child: nn.Module, words: nn.Module) -> PackedModule | None:
    """What stands for a table of words; tables of positions are short, and read in ways of their own."""
    if not isinstance(child, nn.Embedding) or child.weight.shape != words.weight.shape:
        return None
    factor = _embedding_factor(child)
    rows, width = child.weight.shape
    return None if factor is None else PackedEmbedding(rows, width, child.weight.dtype, child.padding_idx, factor)


def _embedding_factor(table: nn.Embedding) -> float | None:
    """What a table's rows are multiplied by (Gemma, BART); None for a table of a kind not known here."""
    if type(table) is nn.Embedding:
        return 1.0
    factor = vars(table).get("scalar_embed_scale", vars(table).get("embed_scale"))
    return float(factor) if isinstance(factor, (int, float)) else None
