"""Schemas that a form can show: an object of named fields, each a text, a number, a truth or one of a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from resources.language import tr

FieldKind = Literal["string", "number", "boolean", "choice"]


class SchemaField(NamedTuple):
    """One field of the object."""

    name: str
    kind: FieldKind = "string"
    is_required: bool = True
    max_length: int = 0
    """Of a text, in characters; 0 is no limit."""
    words: tuple[str, ...] = ()
    """Of a choice."""


def form_problem(fields: Sequence[SchemaField]) -> str:
    """What is missing in a form, as a sentence; empty where it makes a schema."""
    names = [field.name for field in fields]
    if not fields or not all(names):
        return tr("Give every field a name.")
    if len(set(names)) < len(names):
        return tr("Two fields have the same name.")
    if any(field.kind == "choice" and not field.words for field in fields):
        return tr("Give every choice its words.")
    return ""


def to_schema(fields: Sequence[SchemaField]) -> dict[str, Any]:
    """The JSON schema of an object that has these fields, in this order, and no others."""
    return {
        "type": "object",
        "properties": {field.name: _field_schema(field) for field in fields},
        "required": [field.name for field in fields if field.is_required],
        "additionalProperties": False,
    }


def from_schema(schema: object) -> tuple[SchemaField, ...] | None:
    """The fields of a schema that `to_schema` could have made; None for any other."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return None
    required = schema.get("required")
    found = tuple(_field(name, value, required) for name, value in schema["properties"].items())
    fields = tuple(field for field in found if field is not None)
    return fields if len(fields) == len(found) and to_schema(fields) == schema else None


def _field_schema(field: SchemaField) -> dict[str, Any]:
    if field.kind == "choice":
        return {"enum": list(field.words)}
    if field.kind == "string" and field.max_length:
        return {"type": "string", "maxLength": field.max_length}
    return {"type": field.kind}


def _field(name: str, value: object, required: object) -> SchemaField | None:
    if not isinstance(value, Mapping) or not isinstance(required, list):
        return None
    words, kind, longest = value.get("enum"), value.get("type"), value.get("maxLength", 0)
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return SchemaField(name, "choice", name in required, words=tuple(words))
    if kind not in ("string", "number", "boolean") or not isinstance(longest, int):
        return None
    return SchemaField(name, kind, name in required, longest)
