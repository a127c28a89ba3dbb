"""Whether a model reads a token tree rightly, tried on the model itself once and remembered."""

from __future__ import annotations

import torch

from core.caches.tensors.windowed import roomy
from core.decoding.forward.forward import Forward
from core.decoding.speculation.tree import ancestry
from core.device_memory import is_out_of_memory
from core.models.model import LoadedModel

_TRIED = frozenset({"gemma2", "gemma3_text", "gpt2", "llama", "mistral", "qwen3"})
"""Architectures whose trees the tests compare with plain passes."""
_TEXT, _NODES, _PARENTS, _DEPTHS = (1, 2, 3), (4, 5, 6, 4), (-1, 0, 0, 2), (0, 1, 1, 2)
_KEY = "places_nodes"


def places_nodes(model: LoadedModel) -> bool:
    """Whether siblings can stand at one position under a mask of one's own; where not, only chains are exact.

    Encoder–decoders place tokens by their order. Architectures the tests do not cover are asked for the scores of a
    small tree, which have to be those of its paths.
    """
    if model.is_encoder_decoder:
        return False
    if model.model.config.model_type in _TRIED:
        return True
    known: bool | None = model.remembered.get(_KEY)
    if known is None:
        known = model.remembered[_KEY] = _agrees(model)
    return known


@torch.inference_mode()
def _agrees(model: LoadedModel) -> bool:
    """A pass over a tree against passes over its paths."""
    try:
        scores = _read_tree(model)
        expected = torch.stack([_read_path(model, node) for node in range(len(_NODES))])
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False
    scale = expected.abs().max().clamp(min=1.0)
    tolerance = 1e-4 if model.dtype == torch.float32 else 3e-2
    return bool(((scores - expected).abs().max() / scale) < tolerance)


def _read_tree(model: LoadedModel) -> torch.Tensor:
    forward, device, past = Forward(model, roomy(model)), model.device, len(_TEXT)
    forward(torch.tensor([_TEXT], device=device))
    blocked = torch.from_numpy(~ancestry(_PARENTS)).to(device)
    mask = torch.zeros(len(_NODES), past + len(_NODES), dtype=model.dtype, device=device)
    mask[:, past:].masked_fill_(blocked, torch.finfo(model.dtype).min)
    positions = torch.tensor([_DEPTHS], device=device) + past
    ids = torch.tensor([_NODES], device=device)
    return forward(ids, keep=0, attention_mask=mask[None, None], position_ids=positions).logits[0]


def _read_path(model: LoadedModel, node: int) -> torch.Tensor:
    path: list[int] = []
    while node >= 0:
        path.insert(0, _NODES[node])
        node = _PARENTS[node]
    ids = torch.tensor([[*_TEXT, *path]], device=model.device)
    return Forward(model, roomy(model))(ids).last[0]
