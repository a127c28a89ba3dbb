"""How many weights a network has, what they weigh, and what they are kept as, packed or not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from core.models.quantized.packed_layers import PackedEmbedding, PackedLinear, PackedModule

if TYPE_CHECKING:
    import torch
    from torch import nn

    from core.models.hf_protocols import Network


def count_weights(network: Network) -> int:
    """Numbers, shared ones once: also an embedding that is kept again, packed, as the head."""
    shared = _duplicates(network)
    return sum(p.numel() for p in network.parameters()) - sum(module.weight.numel() for module in shared)


def weight_bytes(network: Network) -> int:
    """Bytes in memory; with a quantization of the folder's own, also the buffers that hold its codes and scales."""
    packed = _packed_modules(network)
    placeholders = {id(module.weight) for module in packed}
    floats = (p for p in network.parameters() if id(p) not in placeholders)
    plain = sum(p.numel() * p.element_size() for p in floats) + sum(module.nbytes for module in packed)
    if packed or getattr(network.config, "quantization_config", None) is None:
        return plain
    return plain + sum(buffer.numel() * buffer.element_size() for buffer in _stored_buffers(network))


def _stored_buffers(network: Network) -> list[torch.Tensor]:
    """Return the buffers that are part of the stored weights."""
    return [
        buffer
        for module in network.modules()
        for name, buffer in module.named_buffers(recurse=False)
        if name not in module._non_persistent_buffers_set
    ]


def packed_kind(network: nn.Module) -> str | None:
    """int8 or int4, where its layers are packed."""
    bits = packed_bits(network.modules())
    return f"int{bits}" if bits else None


def packed_bits(modules: Iterable[nn.Module]) -> int | None:
    """Fewest bits of the packed layers among these; None where there are none."""
    return min((module.bits for module in modules if isinstance(module, PackedLinear)), default=None)


def is_tied(network: Network) -> bool:
    """Whether input and output share their weights."""
    words = network.get_input_embeddings()
    head: nn.Module = network.get_output_embeddings()
    if isinstance(head, PackedModule):
        return bool(network.config.get_text_config(decoder=True).tie_word_embeddings)
    return words.weight is head.weight


def content_hashes(modules: Iterable[nn.Module]) -> str:
    """What changes with every packed number."""
    return " ".join(module.content_hash for module in modules if isinstance(module, PackedModule))


def _packed_modules(network: nn.Module) -> list[PackedModule]:
    return [module for module in network.modules() if isinstance(module, PackedModule)]


def _duplicates(network: Network) -> list[PackedModule]:
    """Heads and tables beyond the first that hold the same numbers as a table does."""
    tables = [m for m in _packed_modules(network) if isinstance(m, PackedEmbedding)]
    head: nn.Module = network.get_output_embeddings()
    return [*tables[1:], *([head] if tables and isinstance(head, PackedModule) and is_tied(network) else [])]
