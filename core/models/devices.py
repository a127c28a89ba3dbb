"""Choose the device and the dtype."""

from __future__ import annotations

import os
import platform
import time
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn import functional as F

from decodescope.core.errors import DeviceError, ParameterError
from decodescope.core.models.config_validation import PACKED, QUANTIZED_FORMATS, check_format
from decodescope.core.models.machine_speeds import read_speeds, write_speed
from decodescope.core.models.model_entry import free_memory
from decodescope.core.models.quantized.card_quantization import can_quantize_on_card
from decodescope.core.native.native_library import library
from decodescope.core.parameter import display_name
from decodescope.core.system.optional_deps import why_missing
from decodescope.resources.language import join_names, join_sentences, tr

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from decodescope.core.models.gguf.gguf_file import GgufFile

_OUTPUTS, _INPUTS = 4096, 2048
"""Size of the benchmark matrix: larger than most CPU caches, as model weights are."""
_TIMES = 5


PROMPT_ROWS = 32
"""Number of rows that represents a prompt."""


def is_bfloat16_faster(rows: int = 1) -> bool:
    """Return whether bfloat16 is faster for `rows` rows: 1 as for single tokens, or PROMPT_ROWS."""
    key = f"{platform.node()} {platform.machine()} {torch.__version__} {torch.get_num_threads()}"
    key = f"{key} ×{rows}" if rows > 1 else key
    known = read_speeds().get(key)
    if not isinstance(known, bool):
        known = _best_time(torch.bfloat16, rows) < _best_time(torch.float32, rows)
        write_speed(key, known)
    return known


def _best_time(dtype: torch.dtype, rows: int) -> float:
    """Return the fastest of several products; the first one creates the kernel."""
    weight, several = torch.ones(_OUTPUTS, _INPUTS, dtype=dtype), torch.ones(rows, _INPUTS, dtype=dtype)
    F.linear(several, weight)
    taken = []
    for _ in range(_TIMES):
        begun = time.perf_counter()
        F.linear(several, weight)
        taken.append(time.perf_counter() - begun)
    return min(taken)


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


SPREAD = "spread"
"""Device of a model whose layers are spread over all cards and, where these are full, main memory."""


def choose_device(requested: str, needs_cpu: bool = False) -> torch.device:
    """Choose a device; `auto` takes cuda, then mps, then cpu, or only cpu if the weights `needs_cpu`; `spread` takes
    the first card.

    Raises DeviceError if the requested one is not available.
    """
    if requested == SPREAD:
        if not torch.cuda.is_available():
            raise DeviceError(
                tr("This computer has no NVIDIA card over which a model could be spread."),
                tr("Choose “auto” or “cpu”, or offload layers to disk."),
            )
        if reason := why_missing("spread"):
            raise DeviceError(tr("Spreading a model needs the package accelerate."), reason)
        return torch.device("cuda")
    if requested == "auto" and needs_cpu:
        return torch.device("cpu")
    if requested == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if _has_mps() else "cpu")
    try:
        device = torch.device(requested)
    except (RuntimeError, TypeError, ValueError):  # raised by torch for an invalid name or object
        raise DeviceError(
            tr("“{wish}” is not a device.").format(wish=display_name(requested)),
            tr("Use auto, cpu, cuda, cuda:1 …, mps or spread."),
        ) from None
    there = {"cpu": True, "meta": False, "mps": _has_mps(), "cuda": (device.index or 0) < torch.cuda.device_count()}
    if not there.get(device.type, True):
        raise DeviceError(
            tr("This computer has no device “{wish}” that the installed torch {version} can use.").format(
                wish=requested, version=torch.__version__
            ),
            tr("Choose “auto” or “cpu”, or install a torch build for that device."),
        )
    return device


def choose_dtype(requested: str, device: torch.device, config: PreTrainedConfig) -> torch.dtype:
    """Choose a dtype; `auto` takes the stored dtype, but on a CPU float32 unless bfloat16 is faster there.

    Raises ParameterError.
    """
    if requested in tuple(DTYPES):  # the value may be any object, even an unhashable one
        return DTYPES[requested]
    if requested != "auto":
        raise ParameterError(
            tr("“{wish}” is not a supported dtype.").format(wish=display_name(requested)),
            tr("Use auto, {names}.").format(names=join_names(DTYPES)),
            "dtype",
        )
    stored = _stored_dtype(config)
    if device.type != "cpu":
        return stored
    return stored if stored == torch.bfloat16 and is_bfloat16_faster() else torch.float32


class WeightFormat(NamedTuple):
    """Storage format of weights: the dtype of computation, and int8, int4 or gguf if layers are packed."""

    dtype: torch.dtype
    packed: str | None
    on_card: str | None = None
    """int8, int4 or fp8 if torchao quantizes the layers on a card."""
    is_unpacked: bool = False
    """Whether the blocks of a GGUF file are unpacked because there is no native code."""


GGUF = "gguf"
"""Weights stay in the blocks of their file."""
UNPACK_VARIABLE = "DECODESCOPE_UNPACK"
"""Environment variable: 0 keeps the blocks of GGUF files packed, also without native code."""
_UNPACKED_SHARE = 0.6
"""Share of the free memory that unpacked weights may take; the rest is for the cache and other programs."""


def choose_weights(
    requested: str, dtype: str, device: torch.device, config: PreTrainedConfig, gguf: GgufFile | None = None
) -> WeightFormat:  # fmt: skip
    """Resolve the arguments of `core.load` of these names. `gguf`: the GGUF file that the weights are in.

    Raises ParameterError.
    """
    if gguf is not None and check_format(requested) in QUANTIZED_FORMATS:
        raise ParameterError(
            tr("The weights of this model are already in {kind}, the format of its GGUF file.").format(
                kind=gguf.format_name
            ),
            tr("Load it with its weights as stored, or as float32, bfloat16 or float16."),
            "weights",
        )
    if gguf is not None and requested == "auto" and dtype == "auto":
        if device.type != "cpu":
            return WeightFormat(torch.bfloat16, None)
        unpacked = _unpacked_dtype(gguf)
        return WeightFormat(torch.float32, GGUF) if unpacked is None else WeightFormat(unpacked, None, is_unpacked=True)
    if check_format(requested) not in QUANTIZED_FORMATS:
        return WeightFormat(choose_dtype(dtype if requested == "auto" else requested, device, config), None)
    if device.type == "cuda" and can_quantize_on_card(requested):
        return WeightFormat(torch.bfloat16, None, requested)
    if device.type == "cuda" and (reason := why_missing("card")):
        raise ParameterError(
            tr("{kind} weights on {device} need torchao; without it they are supported on the CPU only.").format(
                kind=requested, device=device
            ),
            join_sentences(reason, tr("Or choose bfloat16 weights or the device “cpu”.")),
            "weights",
        )
    if requested not in PACKED:
        raise ParameterError(
            tr("{kind} weights are supported on an NVIDIA card only, but this model is to run on {device}.").format(
                kind=requested, device=device
            ),
            tr("Choose int8, int4 or bfloat16 weights."),
            "weights",
        )
    if device.type != "cpu":
        raise ParameterError(
            tr("{kind} weights are supported on the CPU only, but this model is to run on {device}.").format(
                kind=requested, device=device
            ),
            tr("Choose bfloat16 weights or the device “cpu”."),
            "weights",
        )
    return WeightFormat(torch.float32, requested)


def _unpacked_dtype(gguf: GgufFile) -> torch.dtype | None:
    """Return the dtype into which the blocks of a file are unpacked at loading; None if they stay packed.

    Without native code a product with blocks unpacks them for each token, which is several times slower than a product
    with floats. float32 holds the same numbers; bfloat16, which rounds them, is used where only that fits.
    """
    if library() is not None or os.environ.get(UNPACK_VARIABLE) == "0":
        return None
    if all(tensor.fmt.name == "F32" for tensor in gguf.tensors.values()):
        return None
    free = free_memory() * _UNPACKED_SHARE
    return next((dtype for dtype in (torch.float32, torch.bfloat16) if gguf.numbers * dtype.itemsize <= free), None)


def _stored_dtype(config: PreTrainedConfig) -> torch.dtype:
    """Return the dtype in the config; float32 for small models, which are fast and exact in it."""
    text = config.get_text_config(decoder=True)
    stored = getattr(text, "dtype", None) or getattr(config, "dtype", None)
    size = getattr(text, "hidden_size", None)  # may be anything if the config class defines the name differently
    small = isinstance(size, int) and 0 < size < 512
    known = stored if isinstance(stored, torch.dtype) else DTYPES.get(str(stored), torch.float32)
    return torch.float32 if small or known not in DTYPES.values() else known


def _has_mps() -> bool:
    return torch.backends.mps.is_available()
