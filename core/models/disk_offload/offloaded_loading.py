"""From a folder to a module whose layers are read from the disk, one by one, in each pass."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

from core.errors import ParameterError, UnpackableError
from core.models.disk_offload.offloaded_layers import DiskOffload, LayerOnDisk, module_of, shelve
from core.models.load_plan import ModelPlan
from core.models.memory_check import free_memory
from core.models.quantized.packed_loading import Report, check_unpacked, read_tensors
from core.models.quantized.tensor_files import StoredTensorFile, stored_tensors
from core.models.weights import find_weights
from resources.language import tr

if TYPE_CHECKING:
    from core.models.hf_protocols import Network

Limit = int | Literal["fit"]
"""Bytes of weights in memory, 0 for as few as it goes; `fit`: as many as the free memory takes."""
_SHARE = 0.75
"""Of the free memory that weights get where they get as much as fits: caches and passes want some too."""


class _OffloadedParameter:
    """A parameter on the disk, as transformers' loader asks for tensors: it gets the place that is read to."""

    def __init__(self, view: torch.Tensor) -> None:
        self._view, self.shape, self.dtype = view, view.shape, view.dtype

    def __getitem__(self, everything: object) -> torch.Tensor:
        return self._view


def plan_shelf(
    plan: ModelPlan, dtype: torch.dtype, device: torch.device, packed: str | None, limit: Limit | None
) -> DiskOffload | None:
    """The layers that stay on the disk; None where all fit, or nothing is said of a limit. Raises ParameterError,
    UnpackableError, OutOfMemoryError."""
    if limit is None:
        return None
    _check(limit)
    if device.type != "cpu" or packed is not None:
        raise ParameterError(
            tr("A limit to its memory is for a model on the processor, with weights as floats."),
            tr("Choose the device “cpu” and float32 or bfloat16 weights, or leave the limit out."),
            "memory_limit",
        )
    weights = find_weights(plan.path)
    if weights.pickled:
        raise UnpackableError(
            tr("{model} has pickled weights, which are not read layer by layer.").format(model=plan.path.name),
            tr("Convert them to safetensors, or leave the limit out."),
        )
    check_unpacked(plan)
    tensors = {name: one for name, one in stored_tensors(weights).items() if isinstance(one, StoredTensorFile)}
    return shelve(tensors, plan.outline(dtype), dtype, int(free_memory() * _SHARE) if limit == "fit" else limit)


def _check(limit: object) -> None:
    if limit == "fit" or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0):
        return
    raise ParameterError(
        tr("The limit to the memory of its weights is {limit!r}.").format(limit=limit),
        tr("Give a whole number of bytes, 0 for as few as it goes, or “fit”."),
        "memory_limit",
    )


def load_shelved(plan: ModelPlan, outline: Network, shelf: DiskOffload) -> tuple[Network, Report]:
    """The module, which reads the shelf's layers whenever they compute. Raises UnpackableError, and what transformers
    raises."""
    tensors: dict[str, object] = dict(stored_tensors(find_weights(plan.path)))
    tensors.update((name, _OffloadedParameter(view)) for name, view in shelf.views().items())
    network, report = read_tensors(plan, outline, tensors, shelf.dtype, None)
    modules = dict(network.named_modules())
    for layer in shelf.layers:
        module = module_of(modules, layer.name)
        if module is None or not all(map(shelf.holds, module.parameters())):
            raise UnpackableError(
                tr(
                    "The layers of {model} are made of its files in a way that cannot be repeated for each pass."
                ).format(model=plan.path.name),
                tr("Leave the limit out, or choose another model."),
            )
        module.register_forward_pre_hook(partial(_read, shelf, layer))
    return network, report


def _read(shelf: DiskOffload, layer: LayerOnDisk, _module: nn.Module, _inputs: object) -> None:
    """Before the layer computes."""
    with torch.inference_mode():
        shelf.before(layer)
