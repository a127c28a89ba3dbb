"""The files weights lie in, and what their headers tell; importing this does not import torch."""

from __future__ import annotations

import json
import math
import os
import stat
from itertools import chain
from pathlib import Path
from typing import Annotated, NamedTuple, NotRequired, TypeAlias, TypedDict, TypeGuard

import msgspec

from core.errors import CorruptWeightsError, ModelFileError
from core.models.model_files import INDEX_BYTES, exists, is_file, read_json, size_of
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


class WeightTotals(NamedTuple):
    """What the headers promise: tensors, and the numbers in all of them."""

    tensors: int
    numbers: int


class TensorHeader(TypedDict):
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
        if exists(index):
            return WeightFiles(tuple(path / shard for shard in shard_names(index)), suffix == "bin")
        if exists(single):
            return WeightFiles((single,), suffix == "bin")
    return WeightFiles((), False)


def shard_names(index: Path) -> list[str]:
    """The files that an index of weights names. Raises CorruptWeightsError."""
    try:
        named = read_json(index, INDEX_BYTES).get("weight_map")
    except (ModelFileError, FileNotFoundError) as error:
        raise CorruptWeightsError(str(error), tr("Copy or download the file again.")) from error
    names = [name for name in named.values() if _is_file_name(name)] if isinstance(named, dict) else []
    if not isinstance(named, dict) or not named or len(names) < len(named):
        raise CorruptWeightsError(
            tr("The weights index {index} does not say which file holds which tensor (weight_map).").format(
                index=index.name
            ),
            tr("Copy or download the file again."),
        )
    return sorted(set(names))


def _is_file_name(name: object) -> TypeGuard[str]:
    """A file of the same folder."""
    return isinstance(name, str) and bool(name) and Path(name).name == name and "\0" not in name


def count_stored(weights: WeightFiles) -> WeightTotals | None:
    """By the safetensors headers; None where they cannot be read."""
    if weights.pickled or not weights.files:
        return None
    counts = [_count_quickly(file) for file in weights.files]
    if None not in counts:
        known = [count for count in counts if count is not None]
        return WeightTotals(sum(count.tensors for count in known), sum(count.numbers for count in known))
    headers = [read_header(file) for file in weights.files]
    if any(header is None for header in headers):
        return None
    entries = [entry for header in headers if header is not None for entry in header.values()]
    return WeightTotals(len(entries), sum(math.prod(entry["shape"]) for entry in entries))


_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class _HeaderEntry(msgspec.Struct):
    """What is counted of a tensor; also reads `__metadata__`, which has neither."""

    shape: list[_Size] | msgspec.UnsetType = msgspec.UNSET
    data_offsets: tuple[_Size, _Size] | msgspec.UnsetType = msgspec.UNSET


_decode_header = msgspec.json.Decoder(dict[str, _HeaderEntry]).decode


def _count_quickly(file: Path) -> WeightTotals | None:
    """What one header promises; None where it is not as most are, and has to be read with more care."""
    try:
        about = os.stat(file)
        if not stat.S_ISREG(about.st_mode):  # to open a pipe would wait for ever
            return None
        with open(file, "rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > min(_HEADER_BYTES, about.st_size):
                return None
            entries = _decode_header(stream.read(length))
    except (OSError, ValueError, RecursionError):  # msgspec's own errors are ValueErrors
        return None
    entries.pop("__metadata__", None)
    numbers = 0
    for entry in entries.values():
        if entry.shape is msgspec.UNSET or entry.data_offsets is msgspec.UNSET:
            return None
        numbers += math.prod(entry.shape)
    return WeightTotals(len(entries), numbers)


def read_header(file: Path) -> dict[str, TensorHeader] | None:
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
    return header if _are_valid_entries(header) else None


def _are_valid_entries(header: dict[str, object]) -> TypeGuard[dict[str, TensorHeader]]:
    """All at once: a model has hundreds, and each list of models asks for all of theirs."""
    entries = [entry for entry in header.values() if isinstance(entry, dict)]
    shapes, offsets = ([entry.get(key) for entry in entries] for key in ("shape", "data_offsets"))
    lists = [numbers for numbers in (*shapes, *offsets) if isinstance(numbers, list)]
    if len(lists) != 2 * len(header) or any(len(pair) != 2 for pair in lists[len(header) :]):
        return False
    sizes = list(chain.from_iterable(lists))
    return not set(map(type, sizes)) - {int} and (not sizes or (min(sizes) >= 0 and max(sizes) < 2**53))


def damage_description(file: Path) -> str:
    """What is wrong with a file that safetensors cannot open, as far as its header still tells."""
    size, header = size_of(file), read_header(file)
    if header is None:
        return tr("its header cannot be read ({size:,} bytes in all)").format(size=size)
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
    expected = 8 + length + max((entry["data_offsets"][1] for entry in header.values()), default=0)
    return tr("{size:,} of {expected:,} bytes are there").format(size=size, expected=expected)
