"""A model without its weights: its configuration, its tokenizer and its shape, to reckon with before it is loaded."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path

import torch

from core.errors import CorruptWeightsError
from core.models import catalog
from core.models.devices import choose_device, choose_weights
from core.models.disk_offload.offloaded_loading import MemoryLimit, plan_disk_offload
from core.models.load_plan import plan_model
from core.models.loaded_model import LoadedModel
from core.models.quantizations import stays_quantized
from core.models.quantized.packed_loading import outline_packed
from core.models.tokenizers import load_tokenizer
from core.models.weights import find_weights


class Blueprint(LoadedModel):
    """Takes no memory to speak of and cannot be run; `device` is where the model would be."""

    planned = torch.device("cpu")
    stored_bytes: int | None = None
    """Size of quantized weights that stay as they are stored; None for plain ones."""

    @property
    def device(self) -> torch.device:
        """Where the weights would be."""
        return self.planned

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes that the weights would take in memory."""
        return super().weight_bytes if self.stored_bytes is None else self.stored_bytes


def blueprint(
    name: str | Path, *, device: str = "auto", dtype: str = "auto", weights: str = "auto",
    allow_remote_code: bool = False, memory_limit: MemoryLimit | None = None,
) -> Blueprint:  # fmt: skip
    """What `core.load` of the same arguments would give, as a module on torch's meta device.

    Raises ModelError subclasses, DeviceError, ParameterError, or OutOfMemoryError for a limit that is too low.
    """
    path = catalog.locate(name)
    where = choose_device(device)
    plan = plan_model(path, allow_remote_code)
    kept = choose_weights(weights, dtype, where, plan.config)
    shelf = plan_disk_offload(plan, kept.dtype, where, kept.packed, memory_limit)
    network = plan.outline(kept.dtype)
    if kept.packed is not None:
        outline_packed(plan, network, kept.packed)
    model = Blueprint(
        network, load_tokenizer(path, allow_remote_code), catalog.display_name(str(name), path), path,
        takes=plan.takes, disk_offload=shelf,
    )  # fmt: skip
    model.planned = where
    if kept.packed is None and shelf is None and stays_quantized(plan.config):
        with suppress(CorruptWeightsError):  # reported when the weights are read
            model.stored_bytes = find_weights(path).bytes or None
    return model
