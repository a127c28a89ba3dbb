"""From a folder to a module whose layers are read from the disk, one by one, in each pass."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

from core.errors import ParameterError, UnpackableError
from core.models.disk_offload.offloaded_layers import DiskOffload, OffloadedLayer, choose_offloaded_layers, find_module
from core.models.load_plan import ModelPlan
from core.models.memory_check import free_memory
from core.models.quantized.packed_loading import LoadingReport, check_not_quantized, read_tensors
from core.models.quantized.tensor_files import FileTensor, stored_tensors
from core.models.weights import find_weights
from resources.language import tr

if TYPE_CHECKING:
    from core.models.hf_protocols import Network

MemoryLimit = int | Literal["fit"]
"""Bytes of weights in memory, 0 for as few as it goes; `fit`: as many as the free memory takes."""
_WEIGHTS_FRACTION = 0.75
"""Of the free memory that weights get where they get as much as fits: caches and passes want some too."""


class _OffloadedParameter:
    """A parameter on the disk, as transformers' loader asks for tensors: it gets the place that is read to."""

    def __init__(self, view: torch.Tensor) -> None:
        self._view, self.shape, self.dtype = view, view.shape, view.dtype

    def __getitem__(self, everything: object) -> torch.Tensor:
        return self._view


def plan_disk_offload(
    plan: ModelPlan, dtype: torch.dtype, device: torch.device, packed: str | None, limit: MemoryLimit | None
) -> DiskOffload | None:
    """The layers that stay on the disk; None where all fit, or nothing is said of a limit. Raises ParameterError,
    UnpackableError, OutOfMemoryError."""
    if limit is None:
        return None
    _check_limit(limit)
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
    check_not_quantized(plan)
    tensors = {name: one for name, one in stored_tensors(weights).items() if isinstance(one, FileTensor)}
    return choose_offloaded_layers(
        tensors, plan.outline(dtype), dtype, int(free_memory() * _WEIGHTS_FRACTION) if limit == "fit" else limit
    )


def _check_limit(limit: object) -> None:
    if limit == "fit" or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0):
        return
    raise ParameterError(
        tr("The limit to the memory of its weights is {limit!r}.").format(limit=limit),
        tr("Give a whole number of bytes, 0 for as few as it goes, or “fit”."),
        "memory_limit",
    )


def load_offloaded(plan: ModelPlan, outline: Network, offload: DiskOffload) -> tuple[Network, LoadingReport]:
    """The module, which reads the shelf's layers whenever they compute. Raises UnpackableError, and what transformers
    raises."""
    tensors: dict[str, object] = dict(stored_tensors(find_weights(plan.path)))
    tensors.update((name, _OffloadedParameter(view)) for name, view in offload.views().items())
    network, report = read_tensors(plan, outline, tensors, offload.dtype, None)
    modules = dict(network.named_modules())
    for layer in offload.layers:
        module = find_module(modules, layer.name)
        if module is None or not all(map(offload.is_in_buffer, module.parameters())):
            raise UnpackableError(
                tr(
                    "The layers of {model} are made of its files in a way that cannot be repeated for each pass."
                ).format(model=plan.path.name),
                tr("Leave the limit out, or choose another model."),
            )
        module.register_forward_pre_hook(partial(_read_before_forward, offload, layer))
    return network, report


def _read_before_forward(offload: DiskOffload, layer: OffloadedLayer, _module: nn.Module, _inputs: object) -> None:
    """Before the layer computes."""
    with torch.inference_mode():
        offload.ensure_read(layer)
