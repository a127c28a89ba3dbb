"""Load a local model by name, or connect to a remote one by address."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.core.remote import is_address

if TYPE_CHECKING:
    from decodescope.core.models.adapters.adapter_choice import AdapterSource
    from decodescope.core.models.layer_offload import MemoryLimit
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.remote.remote_model import RemoteModel


def load(
    name: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    weights: str = "auto",
    allow_pickle: bool = False,
    allow_remote_code: bool = False,
    key: str | None = None,
    allow_plain: bool = False,
    memory_limit: MemoryLimit | None = None,
    adapters: Sequence[AdapterSource] = (),
    progress: bool = False,
) -> LoadedModel | RemoteModel:
    """Load a bundled model, a folder, or a Hub model already on this disk; nothing is downloaded. An address,
    `https://host:port/v1#model-name`, returns a remote model; only `key` and `allow_plain` apply to it.

    `device`: auto, cpu, cuda, cuda:1, mps, spread (over all cards and main memory, by accelerate). `dtype`: auto,
    float32, bfloat16, float16. `weights`: their format. auto: as in `dtype`; float32, bfloat16 and float16 override
    `dtype`; int8 and int4 quantize layer by layer while loading, on a CPU, and compute in float32; on an NVIDIA card
    they and fp8 are quantized by torchao, if it is installed, and compute in bfloat16. `memory_limit`: bytes that the
    weights may take, on a CPU; 0 for the minimum, `fit` for as many as fit into free memory. Further layers are
    offloaded to disk and read in each pass; `core.estimate_throughput(model)` predicts the speed. With a limit, or with
    int8 or int4 where torchao does not quantize them for a card, the device auto is the CPU. `progress`: show the
    libraries' progress bars. `key`: the engine's, kept in memory only; by default that of the system keyring, else of
    the environment (`core.remote.find_key`). `allow_plain`: allow http to another machine.
    `adapters`: LoRA adapters to use (PEFT folders or GGUF files), each a path or a pair of a path and a strength;
    `model.adapters.set(…)` changes them later without loading the model again, and `Request.adapters` for one run.
    Raises ModelError subclasses, DeviceError, ParameterError, OutOfMemoryError or EngineError and its subclasses, each
    with its remedy.
    """
    if is_address(str(name)):
        from decodescope.core.remote.remote_model import connect

        return connect(str(name), key=key, allow_plain=allow_plain)
    if not progress:
        _import_tqdm()
    from decodescope.core.models import loaded_model
    from decodescope.core.models.progress_bars import library_progress_bars

    with library_progress_bars(progress):
        return loaded_model.load(
            name, device=device, dtype=dtype, weights=weights, allow_pickle=allow_pickle,
            allow_remote_code=allow_remote_code, memory_limit=memory_limit, adapters=adapters,
        )  # fmt: skip


def _import_tqdm() -> None:
    """Import tqdm before transformers does, without its warning that a notebook has no widgets for bars."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")
        importlib.import_module("tqdm.auto")
