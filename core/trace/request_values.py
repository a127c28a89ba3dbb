"""A request in plain values, as the header of a file holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import PurePath
from typing import TYPE_CHECKING

from core.request import Request

if TYPE_CHECKING:
    from transformers import GenerationConfig

_NOT_SETTINGS = {"transformers_version", "_from_model_config"}


def request_to_plain(request: Request) -> dict[str, object]:
    """The fields of `core.Request` by name: settings as mappings, draft models by their names."""
    held = {field.name: _plain_value(getattr(request, field.name)) for field in fields(Request)}
    return {
        **held,
        "config": _plain_settings(request.config),
        "drafters": [model.name for model in request.drafters],
    }


def _plain_settings(config: GenerationConfig | Mapping[str, object] | None) -> object:
    """Settings by name; of transformers' own class those that differ from what it begins with."""
    if config is None or isinstance(config, Mapping):
        return _plain_value(config)
    usual = type(config)().to_dict()
    held = config.to_dict().items()
    return {
        name: _plain_value(value)
        for name, value in held
        if name not in _NOT_SETTINGS and (name not in usual or usual[name] != value)
    }


def _plain_value(value: object) -> object:
    """Lists for whatever is a sequence, dicts for whatever is a mapping."""
    match value:
        case str() | bytes():
            return value
        case PurePath():
            return str(value)
        case Mapping():
            return {key: _plain_value(item) for key, item in value.items()}
        case Sequence():
            return [_plain_value(item) for item in value]
    return value
