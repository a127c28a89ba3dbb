"""A cheap hash of the weights in memory, and their comparison with the files on disk: a few numbers of every tensor."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

from decodescope.core.models.mapped_files import MappedFiles
from decodescope.core.models.model_files import find_weights
from decodescope.core.models.quantized.tensor_files import FileTensor, has_known_types, stored_tensors

_SAMPLES = 256
"""Numbers read from a large tensor, at equal distances, the first and the last included."""
_BUDGET = 2**24
"""Numbers that are read in all from the tensors that are read completely, the smallest ones first."""
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integer type of each size in bytes."""


def hash_weights(module: torch.nn.Module) -> str:
    """Return a SHA-256 of every parameter and buffer in memory: names, types, shapes, and numbers.

    It takes milliseconds also for large models: of the smaller tensors, which have 16 million numbers together, all
    numbers count, and of each larger one 256. So a change of a large tensor may stay unseen if it concerns few numbers.
    """
    total, tensors = hashlib.sha256(), _tensors(module)
    whole = _read_completely(tensors)
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        if name in whole:
            words = tensor.view(_WORDS[tensor.element_size()])
            total.update(repr((int(words.sum(dtype=torch.int64)), words.numel())).encode())
        if (picked := _sample(tensor)) is not None:
            total.update(picked.cpu().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def differs_from_files(module: torch.nn.Module, folder: Path) -> bool:
    """Return whether a tensor in memory has other numbers than the safetensors files of `folder`, as far as
    `hash_weights` reads them.

    Only tensors with the same name and shape in both are compared, in the type of those in memory; False if there are
    none, as for quantized weights.
    """
    held = _tensors(module)
    whole = _read_completely(held)
    try:
        return any(_differs(held[name], stored, name in whole) for name, stored in _stored(folder, held))
    except Exception:  # unreadable or unusual files: nothing is known
        return False


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the tensors that have numbers in memory, by name."""
    found = (*module.named_parameters(), *module.named_buffers())
    return {
        name: tensor.detach()
        for name, tensor in found
        if type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.device.type != "meta"
        and tensor.layout == torch.strided
        and tensor.numel()
    }


def _read_completely(tensors: Mapping[str, torch.Tensor]) -> frozenset[str]:
    found, count = list[str](), 0
    for name, tensor in sorted(tensors.items(), key=lambda pair: (pair[1].numel(), pair[0])):
        count += tensor.numel()
        if count > _BUDGET:
            break
        if tensor.is_contiguous() and not tensor.is_complex():
            found.append(name)
    return frozenset(found)


def _sample(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return samples of a tensor as a contiguous one; None for a kind of numbers that cannot be picked."""
    count = tensor.numel()
    if count <= _SAMPLES:
        return tensor.contiguous().reshape(-1)
    places = _places(count).to(tensor.device)
    try:
        # By coordinates: flattening a transposed tensor would copy it.
        return tensor[torch.unravel_index(places, tensor.shape)].contiguous()
    except (RuntimeError, NotImplementedError):
        return None


def _places(count: int) -> torch.Tensor:
    """Return the places of the samples among `count` numbers."""
    return torch.linspace(0, count - 1, _SAMPLES, dtype=torch.float64).round().long()


def _stored(folder: Path, held: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, FileTensor]]:
    """Yield the tensors of the files that are also in memory with the same shape, by name."""
    weights = find_weights(folder)
    if weights.pickled or not has_known_types(weights):
        return
    for name, stored in stored_tensors(weights, sources=MappedFiles(weights.files)).items():
        if name in held and isinstance(stored, FileTensor) and stored.shape == tuple(held[name].shape):
            yield name, stored


def _differs(held: torch.Tensor, stored: FileTensor, is_whole: bool) -> bool:
    is_small = is_whole or held.numel() <= _SAMPLES
    ours = held if is_small else _sample(held)
    theirs = stored[...] if is_small else stored.pick(_places(held.numel()).tolist())
    if ours is None or not (ours.is_floating_point() and theirs.is_floating_point()):
        return False
    return not torch.equal(ours.cpu(), theirs.to(ours.dtype))
