"""The schema as a file holds it, and where this version's fields lie in a file of another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import cache

from core.events import EVENTS
from core.trace.schema import VERSION, RecordSchema, TypeSpec, file_name, record_schemas
from resources.language import tr


@dataclass(frozen=True, slots=True)
class FieldColumns:
    """A class of this version in a file: the column of each of its fields, None where the file has none."""

    record: RecordSchema
    columns: tuple[int | None, ...]
    width: int
    """Columns in the file, those of unknown fields too."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """How to read a file: which number is which event, and the places of every class."""

    events: Mapping[int, str]
    unknown_events: Mapping[int, str]
    field_columns: Mapping[str, FieldColumns]
    unknown_fields: tuple[str, ...]
    is_later: bool = False
    """Whether a later version has written the file, which may choose where this one does not know the choice."""


@cache
def schema_description() -> dict[str, object]:
    """This version's schema in plain values, as each file holds it."""
    return {
        "events": [file_name(cls) for cls in EVENTS],
        "records": {
            record.name: [[field.name, field.kind] for field in record.fields] for record in record_schemas().values()
        },
    }


def layout_of(schema: object, version: tuple[int, int] = VERSION) -> FileLayout:
    """How to read a file with this schema, of that version. Raises ValueError where it contradicts this version's."""
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
    raise ValueError(tr("its schema is none"))


def _listed_fields(name: str, columns: object) -> dict[str, tuple[int, TypeSpec]]:
    """Field → its column and kind."""
    found: dict[str, tuple[int, TypeSpec]] = {}
    if not isinstance(columns, list):
        raise ValueError(tr("the schema of {name} is no list").format(name=name))
    for place, column in enumerate(columns):
        match column:
            case [str(field), kind]:
                found[field] = place, kind
            case _:
                raise ValueError(tr("the schema of {name} holds something that is no field").format(name=name))
    return found


def _field_columns(record: RecordSchema, columns: Mapping[str, tuple[int, TypeSpec]]) -> FieldColumns:
    for field in record.fields:
        if field.name not in columns and field.default is MISSING:
            raise ValueError(tr("{record} has no {field}").format(record=record.name, field=field.name))
        if field.name in columns and not _is_same_kind(field.kind, columns[field.name][1]):
            raise ValueError(tr("{record}.{field} is of another kind").format(record=record.name, field=field.name))
    found = tuple(columns[field.name][0] if field.name in columns else None for field in record.fields)
    return FieldColumns(record, found, len(columns))


def _is_same_kind(one: object, other: object) -> bool:
    """Whether two kinds are the same; what a choice may be is left open."""
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
