"""Write GGUF files: metadata and tensors, in the layout that `gguf_file.py` reads."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import torch

from decodescope.core.models.gguf.file_names import MAGIC
from decodescope.core.models.gguf.gguf_file import ARRAY, DEFAULT_ALIGNMENT, FORMATS, NUMBERS, TEXT

_VERSION = 3
_TYPES = {letter: number for number, letter in NUMBERS.items()}
_FORMAT_IDS = {fmt.name: fmt.type_id for fmt in FORMATS.values()}


class TensorEntry(NamedTuple):
    """A tensor to write."""

    name: str
    shape: tuple[int, ...]
    format_name: str
    data: torch.Tensor
    """uint8 [bytes], as in the file: a packed model's matrices are never all in memory as floats."""


def write_file(stream: BinaryIO, metadata: Mapping[str, Any], entries: Sequence[TensorEntry]) -> None:
    """Write a file: magic number, metadata, the table of tensors, and their data."""
    stream.write(MAGIC + struct.pack("<IQQ", _VERSION, len(entries), len(metadata)))
    for key, value in metadata.items():
        stream.write(_text(key) + _value(value))
    offset = 0
    for entry in entries:
        sizes = entry.shape[::-1]
        stream.write(_text(entry.name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes))
        stream.write(struct.pack("<IQ", _FORMAT_IDS[entry.format_name], offset))
        offset += -(-len(entry.data) // DEFAULT_ALIGNMENT) * DEFAULT_ALIGNMENT
    stream.write(bytes(-stream.tell() % DEFAULT_ALIGNMENT))
    for entry in entries:
        stream.write(entry.data.numpy().data)
        stream.write(bytes(-stream.tell() % DEFAULT_ALIGNMENT))


def _text(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    """Return the type and the bytes of a value; of lists, whole numbers are signed."""
    if isinstance(value, list):
        items = [_value(item) if isinstance(item, (str, float, bool)) else _number("i", item) for item in value]
        kind = items[0][:4] if items else struct.pack("<I", TEXT)
        return struct.pack("<I", ARRAY) + kind + struct.pack("<Q", len(items)) + b"".join(item[4:] for item in items)
    if isinstance(value, bool):
        return _number("?", value)
    if isinstance(value, str):
        return struct.pack("<I", TEXT) + _text(value)
    if isinstance(value, float):
        return _number("f", value)
    return _number("i" if value < 0 else "I", value)


def _number(letter: str, value: float) -> bytes:
    return struct.pack(f"<I{letter}", _TYPES[letter], value)
