"""Loading a model by its name, or reaching it by its address; the one place that knows of both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core.remote import is_address

if TYPE_CHECKING:
    from core.models.layer_offload import MemoryLimit
    from core.models.loaded_model import LoadedModel
    from core.remote.remote_model import RemoteModel


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
) -> LoadedModel | RemoteModel:
    """Load a bundled model, a folder, or a hub model already on this disk; nothing is downloaded. An address,
    `https://host:port/v1#model-name`, gives a model that runs on another machine, for which only `key` and
    `allow_plain` count.

    `device`: auto, cpu, cuda, cuda:1, mps. `dtype`: auto, float32, bfloat16, float16.
    `weights`: how they are kept. auto: as `dtype` says; float32, bfloat16 and float16 win over `dtype`; int8 and int4
    are made layer by layer while loading, on a CPU, and computed with in float32.
    `memory_limit`: bytes that its weights may take, on a CPU, 0 for as few as it goes, `fit` for as many as
    the free memory takes; layers beyond stay on the disk and are read for each pass, and `core.foretell(model)` says
    beforehand how quick that is.
    `key`: the engine's, kept in memory only; where none is given, that of the system's keyring, else of the environment
    (`core.remote.find_key`). `allow_plain`: http to another machine.
    Raises ModelError subclasses, DeviceError, ParameterError, OutOfMemoryError or EngineErrors, each with its remedy.
    """
    if is_address(str(name)):
        from core.remote.remote_model import connect

        return connect(str(name), key=key, allow_plain=allow_plain)
    from core.models import loaded_model

    return loaded_model.load(
        name, device=device, dtype=dtype, weights=weights, allow_pickle=allow_pickle,
        allow_remote_code=allow_remote_code, memory_limit=memory_limit,
    )  # fmt: skip
