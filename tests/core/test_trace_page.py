"""The page of the format is what the program writes; a reader made from the page alone reads it."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decodescope import core
from decodescope.core.events import EVENTS, Event
from decodescope.core.trace import schema
from decodescope.core.trace.schema import layout_of, schema_description
from tests.core import random_events

PACKAGING = Path(__file__).parents[2] / "packaging"


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = loaded(PACKAGING / "trace_page.py")
READER = loaded(PACKAGING / "trace" / "reader.py")
ADVICE = """An event has changed. If this version of the format has been released, raise core.trace.VERSION:
minor for new fields with a default and for new events, else major. Then run python packaging/trace_page.py"""


def test_page_and_schema_are_up_to_date() -> None:
    assert PAGE.SCHEMA.read_text(encoding="utf-8") == PAGE.schema(), ADVICE
    assert PAGE.PAGE.read_text(encoding="utf-8") == PAGE.page(), ADVICE


@pytest.mark.parametrize(
    "path", sorted(PAGE.SCHEMA.parent.glob(f"{schema.VERSION[0]}.*.json")), ids=lambda path: path.stem
)
def test_files_of_every_earlier_minor_version_can_be_read(path: Path) -> None:
    """Raises nothing: no field has been taken away or become of another kind, and each new one has a default."""
    layout = layout_of(json.loads(path.read_text(encoding="utf-8")))
    assert set(layout.events.values()) <= {cls.__name__ for cls in EVENTS}
    assert not layout.unknown_events
    assert not layout.unknown_fields


def test_missing_or_changed_field_is_detected() -> None:
    lacking: Any = json.loads(json.dumps(schema_description()))
    lacking["records"]["Alternative"] = lacking["records"]["Alternative"][1:]
    with pytest.raises(ValueError, match=r"Alternative lacks the field id"):
        layout_of(lacking)
    other: Any = json.loads(json.dumps(schema_description()))
    other["records"]["Alternative"][0] = ["id", "str"]
    with pytest.raises(ValueError, match=r"Alternative\.id has another type"):
        layout_of(other)


def as_dict(value: object) -> object:
    """Records as the page's reader gives them."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            "class": schema.file_name(type(value)),
            **{f.name: as_dict(getattr(value, f.name)) for f in fields(value)},
        }
    if isinstance(value, tuple):
        return tuple(map(as_dict, value))
    if isinstance(value, list):
        return list(map(as_dict, value))
    return {key: as_dict(item) for key, item in value.items()} if isinstance(value, dict) else value


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(random_events.EVENTS, max_size=20))
def test_reader_written_from_the_page_reads_the_same_events(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event]
) -> None:
    path = tmp_path_factory.getbasetemp() / "page"
    for _ in core.record(path, events, core.Request("Once")):
        pass
    assert repr(list(READER.Reader().events(path))) == repr([as_dict(event) for event in events])
