"""What tells one model from another, without reading its weights."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import ModelError
from core.events import ModelIdentity
from core.models.model_files import CONFIG_BYTES, INDEX_BYTES, read_bytes
from core.models.quantized.weight_stats import packed_kind

if TYPE_CHECKING:
    from core.models.hf_protocols import Network

_LENGTH = struct.Struct("<Q")
_MACHINE_KEYS = {"_name_or_path", "transformers_version"}
"""What a configuration says of where it was loaded, and with what."""


def identify(network: Network, name: str, path: Path | None) -> ModelIdentity:
    """By the files of its folder where there is one, else by the network itself."""
    return ModelIdentity(
        name,
        type(network).__name__,
        _hash_of([_read_optional(path, "config.json", CONFIG_BYTES) or _network_config(network)]),
        _hash_of(_weight_listing(path) or [_network_weights(network)]),
        packed_kind(network) or "",
    )


def _hash_of(parts: list[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()


def _read_optional(path: Path | None, name: str, limit: int) -> bytes:
    """The bytes of a file of the folder; none where it is not there."""
    if path is None:
        return b""
    try:
        return read_bytes(path / name, limit)
    except (FileNotFoundError, ModelError):
        return b""


def _weight_listing(path: Path | None) -> list[bytes]:
    """The index of the weights, or the headers of the files that hold them; none where a folder has neither."""
    if index := _read_optional(path, "model.safetensors.index.json", INDEX_BYTES):
        return [index]
    return list(_headers(path)) if path is not None else []


def _headers(path: Path) -> Iterator[bytes]:
    """What each safetensors file says it holds: names, types, shapes."""
    try:
        for file in sorted(path.glob("*.safetensors")):
            with file.open("rb") as weights:
                start = weights.read(_LENGTH.size)
                if len(start) == _LENGTH.size and (length := _LENGTH.unpack(start)[0]) <= INDEX_BYTES:
                    yield weights.read(length)
    except OSError:
        return


def _network_config(network: Network) -> bytes:
    held = {name: value for name, value in network.config.to_dict().items() if name not in _MACHINE_KEYS}
    return json.dumps(held, sort_keys=True, default=str).encode()


def _network_weights(network: Network) -> bytes:
    held = [(name, str(weight.dtype), list(weight.shape)) for name, weight in network.named_parameters()]
    return json.dumps(sorted(held)).encode()
