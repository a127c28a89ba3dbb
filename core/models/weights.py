"""The files weights lie in, and what their headers tell; importing this does not import torch."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import NamedTuple, NotRequired, TypedDict, TypeGuard

from core.errors import CorruptWeightsError, ModelFileError
from core.models.files import INDEX_BYTES, is_file, read_json, size_of
from resources.language import tr

_HEADER_BYTES = 100_000_000
"""The longest header that safetensors itself reads."""


class WeightFiles(NamedTuple):
    """The files weights come from; `pickled` when no safetensors were found."""

    files: tuple[Path, ...]
    pickled: bool

    @property
    def bytes(self) -> int:
        """Of all files that are there."""
        return sum(size_of(file) for file in self.files)


class Stored(NamedTuple):
    """What the headers promise: tensors, and the numbers in all of them."""

    tensors: int
    numbers: int


class Entry(TypedDict):
    """What a safetensors header says of one tensor."""

    shape: list[int]
    data_offsets: list[int]
    """Its first byte and the one behind its last, counted from the header's end."""
    dtype: NotRequired[str]
    """As safetensors calls it: F32, BF16 …"""


def find_weights(path: Path) -> WeightFiles:
    """Safetensors if there are any, pickled files otherwise; shards by their index, missing ones included.

    Raises CorruptWeightsError when the index cannot be used.
    """
    for stem, suffix in (("model", "safetensors"), ("pytorch_model", "bin")):
        index, single = path / f"{stem}.{suffix}.index.json", path / f"{stem}.{suffix}"
        if index.exists():
            return WeightFiles(tuple(path / shard for shard in shards(index)), suffix == "bin")
        if single.exists():
            return WeightFiles((single,), suffix == "bin")
    return WeightFiles((), False)


def shards(index: Path) -> list[str]:
    """The files that an index of weights names. Raises CorruptWeightsError."""
    try:
        named = read_json(index, INDEX_BYTES).get("weight_map")
    except (ModelFileError, FileNotFoundError) as error:
        raise CorruptWeightsError(str(error), tr("Copy or download the file again.")) from error
    names = [name for name in named.values() if _is_name(name)] if isinstance(named, dict) else []
    if not isinstance(named, dict) or not named or len(names) < len(named):
        raise CorruptWeightsError(
            tr("The weights index {index} does not say which file holds which tensor (weight_map).").format(
                index=index.name
            ),
            tr("Copy or download the file again."),
        )
    return sorted(set(names))


def _is_name(name: object) -> TypeGuard[str]:
    """A file of the same folder."""
    return isinstance(name, str) and bool(name) and Path(name).name == name and "\0" not in name


def count_stored(weights: WeightFiles) -> Stored | None:
    """By the safetensors headers; None where they cannot be read."""
    if weights.pickled or not weights.files:
        return None
    headers = [read_header(file) for file in weights.files]
    if any(header is None for header in headers):
        return None
    entries = [entry for header in headers if header is not None for entry in header.values()]
    return Stored(len(entries), sum(math.prod(entry["shape"]) for entry in entries))


def read_header(file: Path) -> dict[str, Entry] | None:
    """A safetensors file's entries by name, each with a shape and data_offsets of whole numbers; None for any other."""
    if not is_file(file):
        return None
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(length)) if length <= min(_HEADER_BYTES, size_of(file)) else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(header, dict):
        return None
    header.pop("__metadata__", None)
    return header if all(_is_entry(entry) for entry in header.values()) else None


def _is_entry(entry: object) -> TypeGuard[Entry]:
    if not isinstance(entry, dict):
        return False
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    return _are_sizes(shape) and _are_sizes(offsets) and isinstance(offsets, list) and len(offsets) == 2


def _are_sizes(numbers: object) -> bool:
    if not isinstance(numbers, list) or set(map(type, numbers)) - {int}:
        return False
    return not numbers or (min(numbers) >= 0 and max(numbers) < 2**53)


def shortfall(file: Path) -> str:
    """What is wrong with a file that safetensors cannot open, as far as its header still tells."""
    size, header = size_of(file), read_header(file)
    if header is None:
        return tr("its header cannot be read ({size:,} bytes in all)").format(size=size)
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
    expected = 8 + length + max((entry["data_offsets"][1] for entry in header.values()), default=0)
    return tr("{size:,} of {expected:,} bytes are there").format(size=size, expected=expected)
