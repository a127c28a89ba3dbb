"""Which device and which number type to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from core.errors import DeviceError, ParameterError
from core.models.dtype_benchmark import is_bfloat16_faster
from core.models.quantized.weight_formats import PACKED, check_format
from core.parameter import display_name
from resources.language import tr

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def choose_device(requested: str) -> torch.device:
    """`auto` takes cuda, then mps, then cpu. Raises DeviceError when the one asked for is not there."""
    if requested == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if _has_mps() else "cpu")
    try:
        device = torch.device(requested)
    except (RuntimeError, TypeError, ValueError):  # torch's own, of a name or of what is none
        raise DeviceError(
            tr("“{wish}” is not a device.").format(wish=display_name(requested)),
            tr("Use auto, cpu, cuda, cuda:1 … or mps."),
        ) from None
    there = {"cpu": True, "meta": False, "mps": _has_mps(), "cuda": (device.index or 0) < torch.cuda.device_count()}
    if not there.get(device.type, True):
        raise DeviceError(
            tr("This machine has no device “{wish}” that the installed torch {version} can use.").format(
                wish=requested, version=torch.__version__
            ),
            tr("Choose “auto” or “cpu”, or install a torch build for that device."),
        )
    return device


def choose_dtype(requested: str, device: torch.device, config: PreTrainedConfig) -> torch.dtype:
    """`auto`: the type the weights are stored in; on a CPU bfloat16 where that is quicker there, else float32.

    Raises ParameterError.
    """
    if requested in tuple(DTYPES):  # anything may be asked for, what cannot be hashed too
        return DTYPES[requested]
    if requested != "auto":
        raise ParameterError(
            tr("“{wish}” is not a number type.").format(wish=display_name(requested)),
            tr("Use auto, {names}.").format(names=", ".join(DTYPES)),
            "dtype",
        )
    stored = _stored_dtype(config)
    if device.type != "cpu":
        return stored
    return stored if stored == torch.bfloat16 and is_bfloat16_faster() else torch.float32


class WeightFormat(NamedTuple):
    """How weights are kept: the floats that are computed with, and int8 or int4 where layers are packed."""

    dtype: torch.dtype
    packed: str | None


def choose_weights(requested: str, dtype: str, device: torch.device, config: PreTrainedConfig) -> WeightFormat:
    """What `core.load`'s arguments of these names mean. Raises ParameterError."""
    if check_format(requested) not in PACKED:
        return WeightFormat(choose_dtype(dtype if requested == "auto" else requested, device, config), None)
    if device.type != "cpu":
        raise ParameterError(
            tr("Weights in {kind} are multiplied by the processor, and this model is to run on {device}.").format(
                kind=requested, device=device
            ),
            tr("Choose bfloat16 weights, or the device “cpu”."),
            "weights",
        )
    return WeightFormat(torch.float32, requested)


def _stored_dtype(config: PreTrainedConfig) -> torch.dtype:
    """As transformers' configuration says; small models are quick and exact in float32."""
    text = config.get_text_config(decoder=True)
    stored = getattr(text, "dtype", None) or getattr(config, "dtype", None)
    size = getattr(text, "hidden_size", None)  # where a config's own word is another, this may be anything
    small = isinstance(size, int) and 0 < size < 512
    known = stored if isinstance(stored, torch.dtype) else DTYPES.get(str(stored), torch.float32)
    return torch.float32 if small or known not in DTYPES.values() else known


def _has_mps() -> bool:
    return torch.backends.mps.is_available()
