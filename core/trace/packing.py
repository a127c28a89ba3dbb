"""Encode any plain value as MessagePack and back, preserving its type. Types unknown to MessagePack use extensions.

1 tuple · 2 integer beyond 64 bits · 3 text with lone surrogates · 4 mapping with keys other than strings · 5 record, as
[name, {field: value}] · 6 repr of a value that is not plain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import Any

import msgspec
from msgspec.msgpack import Ext

from decodescope.core.trace.schema import file_name, record_schemas
from decodescope.resources.language import tr

TUPLE, INTEGER, TEXT, MAPPING, RECORD, REPR = range(1, 7)
_MAX_DEPTH = 50
"""Maximum nesting of containers; deeper values are stored as repr."""
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1

_encode = msgspec.msgpack.Encoder().encode


def pack(value: object) -> bytes:
    """Encode a value; one that is not plain is stored as its `repr`."""
    return _encode(to_packable(value))


def unpack(data: bytes) -> object:
    """Decode a value written by `pack`. Raises ValueError for other data."""
    try:
        value: object = msgspec.msgpack.decode(data, ext_hook=_unpack_extension)
    except (msgspec.DecodeError, RecursionError, TypeError, MemoryError) as error:
        raise ValueError(str(error)) from None
    return value


def to_packable(value: object, depth: int = 0) -> object:
    """Convert a value to what MessagePack can write."""
    kind = type(value)
    if value is None or kind in (bool, float, bytes):
        return value
    if kind is int:
        return _pack_integer(value)
    if kind is str:
        return _pack_text(value)
    if depth >= _MAX_DEPTH:
        return _pack_repr(value)
    return _pack_container(value, depth + 1)


def _pack_integer(value: Any) -> object:
    if _MIN_INTEGER <= value <= _MAX_INTEGER:
        return value
    return Ext(INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))


def _pack_text(value: Any) -> object:
    try:
        value.encode()
    except UnicodeEncodeError:
        return Ext(TEXT, value.encode("utf-8", "surrogatepass"))
    return value


def _pack_repr(value: object) -> Ext:
    return Ext(REPR, repr(value)[:1000].encode("utf-8", "surrogatepass"))


def _pack_container(value: object, depth: int) -> object:
    match value:
        case list():
            return [to_packable(item, depth) for item in value]
        case tuple():
            return Ext(TUPLE, _encode([to_packable(item, depth) for item in value]))
        case Mapping():
            return _pack_mapping(value, depth)
    record = record_schemas().get(file_name(type(value)))
    if record is None or type(value) is not record.cls:
        return _pack_subclass(value)
    held = {field.name: to_packable(getattr(value, field.name), depth) for field in record.fields}
    return Ext(RECORD, _encode([record.name, held]))


def _pack_mapping(value: Mapping[object, object], depth: int) -> object:
    if all(type(key) is str and _pack_text(key) is key for key in value):
        return {key: to_packable(item, depth) for key, item in value.items()}
    return Ext(MAPPING, _encode([[to_packable(key, depth), to_packable(item, depth)] for key, item in value.items()]))


def _pack_subclass(value: object) -> object:
    """Convert subclasses of plain types, such as a library's numbers, to the plain type; other values to their repr."""
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return to_packable(kind(value))
    return _pack_repr(value)


def _unpack_extension(code: int, data: memoryview) -> object:
    read = _READERS.get(code)
    if read is None:
        raise ValueError(tr("extension {code} is unknown").format(code=code))
    return read(bytes(data))


def _read_tuple(data: bytes) -> object:
    return tuple(_unpack_list(data))


def _read_mapping(data: bytes) -> object:
    found: dict[object, object] = {}
    for pair in _unpack_list(data):
        if not (isinstance(pair, list) and len(pair) == 2):
            raise ValueError(tr("a mapping is not a list of pairs"))
        found[pair[0]] = pair[1]
    return found


def _read_record(data: bytes) -> object:
    match unpack(data):
        case [str(name), dict(held)] if name in record_schemas():
            return _build_record(name, held)
    raise ValueError(tr("a record has an unknown class"))


def _build_record(name: str, fields: Mapping[object, object]) -> object:
    """Build the record from the fields known to this version."""
    record = record_schemas()[name]
    values = {field.name: fields.get(field.name, field.default) for field in record.fields}
    for field in record.fields:
        if values[field.name] is MISSING or not is_of_kind(field.kind, values[field.name]):
            raise ValueError(tr("{name}.{field} is missing or has another type").format(name=name, field=field.name))
    return record.cls(**values)


def _unpack_list(data: bytes) -> list[object]:
    value = unpack(data)
    if not isinstance(value, list):
        raise ValueError(tr("an extension does not contain a list"))
    return value


_READERS: dict[int, Callable[[bytes], object]] = {
    TUPLE: _read_tuple,
    INTEGER: lambda data: int.from_bytes(data, "little", signed=True),
    TEXT: lambda data: data.decode("utf-8", "surrogatepass"),
    MAPPING: _read_mapping,
    RECORD: _read_record,
    REPR: lambda data: data.decode("utf-8", "surrogatepass"),
}


def is_of_kind(kind: object, value: object) -> bool:
    """Return whether `value` is of `kind`; integers are accepted as floats, as in Python's annotations."""
    match kind:
        case "any":
            return True
        case str() if kind in _CLASSES:
            return type(value) in _CLASSES[kind]
        case ("choice", *_):
            return type(value) is str
        case ("optional", of):
            return value is None or is_of_kind(of, value)
        case ("many", of):
            return type(value) is tuple and all(is_of_kind(of, item) for item in value)
        case ("tuple", *of):
            return type(value) is tuple and len(value) == len(of) and all(map(is_of_kind, of, value))
        case ("record" | "union", *names):
            return file_name(type(value)) in names and type(value) is record_schemas()[file_name(type(value))].cls
    return False


_CLASSES: dict[str, tuple[type, ...]] = {
    "int": (int, bool),
    "float": (float, int, bool),
    "bool": (bool,),
    "str": (str,),
}
