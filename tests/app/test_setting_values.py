"""Values of settings, formatted and parsed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from decodescope.app.state import setting_values
from decodescope.app.state.setting_values import InvalidValueError
from decodescope.core.strategies import Parameter, registry

SAMPLING = registry["sampling"]


def test_too_deeply_nested_grammar_is_rejected() -> None:
    with pytest.raises(setting_values.InvalidValueError, match="nested too deep"):
        setting_values.parse(SAMPLING.parameter("grammar"), '{"a":' * 20_000)


def test_grammar_path_to_pipe_is_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.lark")
    with pytest.raises(InvalidValueError, match="is not a regular file"):
        setting_values.parse(SAMPLING.parameter("grammar"), str(tmp_path / "pipe.lark"))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("temperature", "0.8", 0.8),
        ("top_k", "0", 0),
        ("min_p", "off", None),
        ("min_p", "0.05", 0.05),
        ("renormalize_logits", "yes", True),
        ("stop_strings", "The end\n\\n\\n", ["The end", "\n\n"]),
        ("bad_words_ids", "[[1, 2], [3]]", [[1, 2], [3]]),
        ("bad_words_ids", "fox\ngreen owl", ["fox", "green owl"]),
        ("suppress_tokens", "", None),
    ],
)
def test_parse_returns_value(name: str, text: str, value: Any) -> None:
    assert setting_values.parse(SAMPLING.parameter(name), text) == value


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("temperature", "0", "greater than 0"),
        ("top_p", "1.5", "at most 1"),
        ("top_k", "-1", "at least 0"),
        ("top_k", "2.5", "must be an integer"),
        ("temperature", "warm", "a number"),
        ("renormalize_logits", "maybe", "true or false"),
        ("bad_words_ids", "[[1, 2]", "not valid JSON"),
    ],
)
def test_parse_of_invalid_text_gives_reason(name: str, text: str, why: str) -> None:
    with pytest.raises(InvalidValueError, match=why):
        setting_values.parse(SAMPLING.parameter(name), text)


def test_parse_of_choice_or_list() -> None:
    layers = registry["dola"].parameter("dola_layers")
    assert setting_values.parse(layers, "high") == "high"
    assert setting_values.parse(layers, "[2, 4]") == [2, 4]
    with pytest.raises(InvalidValueError, match="low, high"):
        setting_values.parse(layers, "middle")


@pytest.mark.parametrize("value", [None, ["a b", "c\nd"], [[1, 2], [3]], [5, 6]])
def test_formatted_token_list_is_parsed_back(value: Any) -> None:
    assert setting_values.parse_tokens(setting_values.format_text(value)) == value


def test_summary_is_short() -> None:
    changed = {"top_p": 0.92, "temperature": 0.8, "top_k": 0}
    assert setting_values.summary(SAMPLING.parameters, changed) == "temperature 0.8 · top-p 0.92 · +1"
    assert setting_values.summary(SAMPLING.parameters, {}) == ""
    assert setting_values.short_text(True) == "on"
    assert setting_values.short_text(None) == "off"
    assert setting_values.short_text({"gbnf": 'root ::=\n "yes" | "no"'}) == 'GBNF root ::= "yes" | "…'
    assert setting_values.short_text({"choice": ["a"]}) == 'choice ["a"]'


def test_summary_keeps_capitals_of_names() -> None:
    sampling = registry["sampling"].parameters
    assert setting_values.summary(sampling, {"temperature": 0.8, "dry_multiplier": 0.5}) == "temperature 0.8 · DRY 0.5"


def test_check_range_ignores_non_numbers() -> None:
    flag = Parameter("x", "X", "bool", False, "help", minimum=5)
    assert setting_values.check_range(flag, True) is True
