"""Changes of single keys in the text of a study."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decodescope.core.studies import format_toml, set_value

TEXT = """# what this is for
title = "Heat"  # "#" in a comment
seeds = 4

[prompts]
texts = [
  "One # day",   # the first
  "Two",
]
# about the settings
[settings]
do_sample = true

[grid]
temperature = [0.5, 1.0]  # coldest first

[[cells]]
top_k = 5
[[cells]]
top_k = 9
"""


@pytest.mark.parametrize(
    ("path", "value", "kept"),
    [
        (("seeds",), [1, 2], ["# what this is for", '# "#" in a comment', "# coldest first"]),
        (("title",), "Cold", ['title = "Cold"  # "#" in a comment']),
        (("baseline",), {"temperature": 0.5}, ["# the first", "baseline = { temperature = 0.5 }"]),
        (("prompts", "texts"), ["Three"], ['texts = ["Three"]', "# about the settings"]),
        (("prompts", "template"), "{a}", ["# the first", 'template = "{a}"']),
        (("grid", "temperature"), [0.1], ["temperature = [0.1]  # coldest first"]),
        (("grid", "top_p"), [0.9, 1.0], ["# coldest first", "top_p = [0.9, 1.0]"]),
        (("grid", "temperature"), None, ["# about the settings"]),
        (("answers", "pattern"), "(\\d+)", ["[answers]", "# the first"]),
        (("cells",), [{"top_k": 1}], ["cells = [{ top_k = 1 }]", "# coldest first"]),
        (("cells",), None, ["# coldest first"]),
        (("seeds",), None, ["# what this is for"]),
        (("nothing", "here"), None, ["# what this is for"]),
    ],
)  # fmt: skip
def test_changed_key_leaves_the_other_lines_as_they_were(path: tuple[str, ...], value: Any, kept: list[str]) -> None:
    expected = tomllib.loads(TEXT)
    if value is not None:
        table = expected
        for name in path[:-1]:
            table = table.setdefault(name, {})
        table[path[-1]] = value
    elif len(path) == 1:
        expected.pop(path[0])
    elif path[0] == "grid":
        expected.pop("grid")
    changed = set_value(TEXT, path, value)
    assert tomllib.loads(changed) == expected
    assert [line for line in kept if line not in changed] == []


def test_inline_table_and_dotted_key_are_changed_in_place() -> None:
    text = 'baseline = { a = 1 }  # b\nprompts.file = "x.csv"\n'
    assert set_value(text, ("baseline", "a"), 2) == 'baseline = { a = 2 }  # b\nprompts.file = "x.csv"\n'
    assert set_value(text, ("prompts", "file"), "y.csv") == 'baseline = { a = 1 }  # b\nprompts.file = "y.csv"\n'
    assert tomllib.loads(set_value(text, ("prompts", "chat"), True))["prompts"] == {"file": "x.csv", "chat": True}


def test_value_in_place_of_a_plain_value_with_a_table_keeps_valid_toml() -> None:
    assert tomllib.loads(set_value("settings = 3\n", ("settings", "top_k"), 5)) == {"settings": {"top_k": 5}}


def test_text_that_is_no_toml_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid value"):
        set_value("seeds = [", ("seeds",), 1)


VALUES = st.recursive(
    st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
TABLES = st.dictionaries(st.text(max_size=5), VALUES, max_size=5)


@settings(max_examples=60, deadline=None)
@given(TABLES, st.lists(st.text(max_size=4), min_size=1, max_size=2), VALUES)
def test_any_value_can_be_set_in_any_table(table: dict[str, Any], path: list[str], value: Any) -> None:
    text = format_toml(table)
    assert tomllib.loads(text) == table
    changed = set_value(text, path, value)
    found: Any = tomllib.loads(changed)
    for name in path:
        found = found[name]
    assert found == value
    others = {name: one for name, one in tomllib.loads(changed).items() if name != path[0]}
    assert others == {name: one for name, one in table.items() if name != path[0]}
