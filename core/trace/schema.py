"""The schema of recorded events, derived from the classes of `core.events`, so that fields are defined only once."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from decodescope.core.events import EVENTS, is_method_name
from decodescope.resources.language import tr

VERSION = (1, 3)
"""(major, minor). A new field with a default or a new event raises the minor version; any other change the major one.
"""

TypeSpec: TypeAlias = "str | tuple[TypeSpec, ...]"
"""Type of a value: `int`, `float`, `bool`, `str`, `any`, or ("optional", kind), ("many", kind), ("tuple", kinds …),
("choice", strings …), ("record", name), ("union", names of records …). A choice with the string `*` also allows other
names.
"""

ANY_NAME = "*"

_PLAIN_TYPES: dict[object, str] = {int: "int", float: "float", bool: "bool", str: "str", object: "any"}


FILE_NAMES = {
    "NamedNumber": "Figure", "RemainderOf": "Rest", "SumOf": "Sum", "ProductOf": "Product", "DifferenceOf": "Less",
    "QuotientOf": "Share", "MinimumOf": "Least",
}  # fmt: skip
"""Names in files of the classes that are called otherwise in the code. Renaming a class changes no file."""


def file_name(cls: type) -> str:
    """Return the name of a record class in files, which stays the same when the class is renamed."""
    return FILE_NAMES.get(cls.__name__, cls.__name__)


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a class: `default` is its value if a file lacks it, MISSING if it is required."""

    name: str
    kind: TypeSpec
    default: object = MISSING


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """A class of plain values, and its fields in order."""

    name: str
    cls: type
    fields: tuple[RecordField, ...]


@cache
def record_schemas() -> dict[str, RecordSchema]:
    """Return every class used in events, by name; events first."""
    found: dict[str, RecordSchema] = {}
    waiting: list[type] = list(EVENTS)
    for cls in waiting:
        if file_name(cls) not in found:
            found[file_name(cls)] = _record_schema(cls)
            waiting += _classes_in(get_type_hints(cls).values())
    return found


def type_spec_of(hint: object) -> TypeSpec:
    """Return the kind that an annotation means."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ("choice", *map(str, inside))
    if origin is tuple:
        if len(inside) == 2 and inside[1] is Ellipsis:
            return ("many", type_spec_of(inside[0]))
        return ("tuple", *map(type_spec_of, inside))
    if origin in (Union, types.UnionType):
        return _union_spec(inside)
    if isinstance(hint, type) and is_dataclass(hint):
        return ("record", file_name(hint))
    return _PLAIN_TYPES.get(hint, "any")


def is_choice(kind: TypeSpec, value: object) -> bool:
    """Return whether a value is one of the strings of a choice, or a name that the choice allows."""
    return value in kind[1:] or (allows_any_name(kind) and is_method_name(value))


def allows_any_name(kind: TypeSpec) -> bool:
    """Return whether a choice allows names besides its strings."""
    return kind[-1] == ANY_NAME


def _union_spec(inside: tuple[object, ...]) -> TypeSpec:
    if str in inside and len(inside) == 2 and get_origin(inside[0]) is Literal:
        return ("choice", *map(str, get_args(inside[0])), ANY_NAME)
    rest = [hint for hint in inside if hint is not types.NoneType]
    one = type_spec_of(rest[0]) if len(rest) == 1 else _record_union(rest)
    return ("optional", one) if len(rest) < len(inside) else one


def _record_union(hints: list[object]) -> TypeSpec:
    names = [file_name(hint) for hint in hints if isinstance(hint, type) and is_dataclass(hint)]
    return ("union", *names) if len(names) == len(hints) else "any"


def _record_schema(cls: type) -> RecordSchema:
    hints = get_type_hints(cls)
    return RecordSchema(
        file_name(cls),
        cls,
        tuple(RecordField(item.name, type_spec_of(hints[item.name]), _field_default(item)) for item in fields(cls)),
    )


def _field_default(item: Field[object]) -> object:
    return item.default_factory() if item.default_factory is not MISSING else item.default


def _classes_in(hints: object) -> Iterator[type]:
    """Yield every dataclass in the annotations."""
    for hint in hints if isinstance(hints, Iterator | tuple | type({}.values())) else (hints,):
        if isinstance(hint, type) and is_dataclass(hint):
            yield hint
        elif get_args(hint):
            yield from _classes_in(get_args(hint))


@dataclass(frozen=True, slots=True)
class FieldColumns:
    """The columns of a class in a file: the index for each field of this version, None if the file lacks it."""

    record: RecordSchema
    columns: tuple[int | None, ...]
    width: int
    """Number of columns in the file, including unknown fields."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The layout of a file: the event class of each number, and the columns of every class."""

    events: Mapping[int, str]
    unknown_events: Mapping[int, str]
    field_columns: Mapping[str, FieldColumns]
    unknown_fields: tuple[str, ...]
    is_later: bool = False
    """Whether a later version wrote the file, whose choices may include unknown values."""


@cache
def schema_description() -> dict[str, object]:
    """Return this version's schema as plain values, as stored in each file."""
    return {
        "events": [file_name(cls) for cls in EVENTS],
        "records": {
            record.name: [[field.name, field.kind] for field in record.fields] for record in record_schemas().values()
        },
    }


def layout_of(schema: object, version: tuple[int, int] = VERSION) -> FileLayout:
    """Return the layout of a file with this schema and version. Raises ValueError if it contradicts this version's
    schema.
    """
    match schema:
        case {"events": list(names), "records": dict(classes)} if all(isinstance(name, str) for name in names):
            events = dict(enumerate(names))
            known = {file_name(cls) for cls in EVENTS}
            listed = {name: _listed_fields(name, classes[name]) for name in record_schemas() if name in classes}
            return FileLayout(
                {number: name for number, name in events.items() if name in known and name in listed},
                {number: name for number, name in events.items() if name not in known},
                {name: _field_columns(record_schemas()[name], columns) for name, columns in listed.items()},
                tuple(_unknown_fields(listed)),
                version > VERSION,
            )
    raise ValueError(tr("the schema is not a valid object"))


def _listed_fields(name: str, columns: object) -> dict[str, tuple[int, TypeSpec]]:
    """Return each field's column and kind."""
    found: dict[str, tuple[int, TypeSpec]] = {}
    if not isinstance(columns, list):
        raise ValueError(tr("the schema of {name} is not a list").format(name=name))
    for place, column in enumerate(columns):
        match column:
            case [str(field), kind]:
                found[field] = place, kind
            case _:
                raise ValueError(tr("the schema of {name} contains an entry that is not a field").format(name=name))
    return found


def _field_columns(record: RecordSchema, columns: Mapping[str, tuple[int, TypeSpec]]) -> FieldColumns:
    for field in record.fields:
        if field.name not in columns and field.default is MISSING:
            raise ValueError(tr("{record} lacks the field {field}").format(record=record.name, field=field.name))
        if field.name in columns and not _is_same_kind(field.kind, columns[field.name][1]):
            raise ValueError(tr("{record}.{field} has another type").format(record=record.name, field=field.name))
    found = tuple(columns[field.name][0] if field.name in columns else None for field in record.fields)
    return FieldColumns(record, found, len(columns))


def _is_same_kind(one: object, other: object) -> bool:
    """Return whether two kinds are equal, ignoring the values of choices."""
    match one, other:
        case ["choice", *_], ["choice", *_]:
            return True
        case ["union", *some], ["union", *others]:
            return set(some) <= set(others)
        case [str(word), *inner], [str(same), *others] if len(inner) == len(others):
            return word == same and all(map(_is_same_kind, inner, others))
    return one == other


def _unknown_fields(listed: Mapping[str, Mapping[str, object]]) -> list[str]:
    return [
        f"{name}.{field}"
        for name, columns in listed.items()
        for field in columns.keys() - {field.name for field in record_schemas()[name].fields}
    ]
