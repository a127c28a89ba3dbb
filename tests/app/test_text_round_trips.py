"""Text-based settings survive a round trip through every form in which they are stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from decodescope import core
from decodescope.app.state import request_json, setting_values, text_formats
from decodescope.app.state.text_formats import from_text, to_text
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.storage import presets
from decodescope.core.code.python_literals import literal, multiline_literal
from decodescope.core.strategies import Parameter

NASTY = (
    " was", "was ", "\n", "\n\n", "a\nb", "\\n", "\\", "\\\\", "C:\\new", "C:\\temp\\u0041", "none", "None",
    "off", "auto", "null", "unset", "true", "[", "[]", '["a"]', "{", '"', "'", '"a"', "a, b", "a=b", "5",
    "-1", "1.5", "\t", "a\tb", "\r", "x\r\ny", "a\u2028b", "a\u2029b", "\x85", "a\x0bb", "\x1b[31m", "\u00a0",
    "\u3000", "e\u0301", "👩‍👩‍👧‍👦", "<b>&amp;</b>", "#", "%s", "${x}", "''' \"\"\"",
)  # fmt: skip


def text_parameters() -> list[Parameter]:
    """Every parameter of a strategy or a cache whose values are texts."""
    found = {}
    for owner in (*core.strategies.registry.values(), *core.caches.registry.values()):
        found.update({p.name: p for p in owner.parameters if setting_values.is_text_parameter(p)})
    return list(found.values())


PARAMETERS = text_parameters()
OF_TEXTS = [p for p in PARAMETERS if p.kind != "text"]
OF_ONE_TEXT = [p for p in PARAMETERS if p.kind == "text"]


def test_text_parameters_are_found() -> None:
    assert {"stop_strings", "bad_words_ids", "must_contain"} <= {p.name for p in PARAMETERS}


def _name(parameter: Parameter) -> str:
    return parameter.name


@pytest.mark.parametrize("parameter", OF_TEXTS, ids=_name)
@pytest.mark.parametrize("text", NASTY)
def test_text_lists_survive_command_line_round_trip(parameter: Parameter, text: str) -> None:
    for texts in ([text], ["first", text], [text, "last"]):
        assert setting_values.parse(parameter, setting_values.format_text(texts)) == texts
        assert setting_values.parse(parameter, json.dumps(texts)) == texts


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (" was", [" was"]), ("was ", ["was "]), ("\n", ["\n"]), ("\n\n", ["\n\n"]), ("\\n", ["\n"]), ("none", ["none"]),
        ("off", ["off"]), ("auto", ["auto"]), ("", None), ("a\nb", ["a", "b"]), ("\u00a0", ["\u00a0"]), (" ", [" "]),
        ("C:\\dir", ["C:\\dir"]), ("\t", ["\t"]), ("x\\r\\ny", ["x\r\ny"]), ("a\u2028b", ["a\u2028b"]),
    ],
)  # fmt: skip
def test_typed_stop_strings_are_parsed(text: str, read: Any) -> None:
    assert setting_values.parse(core.strategies.registry["greedy"].parameter("stop_strings"), text) == read


@pytest.mark.parametrize("text", ["none", " cat", "cat ", "off"])
def test_typed_banned_word_is_kept_unchanged(text: str) -> None:
    assert setting_values.parse(core.strategies.registry["greedy"].parameter("bad_words_ids"), text) == [text]


@pytest.mark.parametrize("parameter", OF_ONE_TEXT, ids=_name)
@pytest.mark.parametrize("text", NASTY)
def test_text_survives_command_line_parsing(parameter: Parameter, text: str) -> None:
    assert setting_values.parse(parameter, text) == text


@pytest.mark.parametrize("texts", [[text] for text in NASTY] + [list(NASTY), ["", "a"], ["a", ""]], ids=repr)
def test_text_lines_survive_round_trip(texts: list[str]) -> None:
    assert text_formats.read_lines(text_formats.write_lines(texts)) == texts
    assert setting_values.parse_lines(setting_values.format_text(texts)) == texts
    assert setting_values.parse_tokens(setting_values.format_text(texts)) == texts
    if all(texts):
        assert from_text("choice", to_text("choice", texts)) == {"choice": texts}


def _values(strategy: core.strategies.Strategy) -> dict[str, Any]:
    """Every text parameter of a strategy with all nasty values."""
    made = {
        p.name: list(NASTY) for p in strategy.parameters if setting_values.is_text_parameter(p) and p.kind != "text"
    }
    return {**made, **{p.name: "".join(NASTY) for p in strategy.parameters if p.kind == "text"}}


@pytest.mark.parametrize("name", core.strategies.registry)
def test_presets_survive_round_trip(name: str, tmp_path: Path) -> None:
    made = _values(core.strategies.registry[name])
    path = presets.save_preset(tmp_path, presets.Preset("mine", name, made))
    assert dict(presets.load_preset(path).values) == made


@pytest.mark.parametrize("name", core.strategies.registry)
def test_requests_survive_json_round_trip(name: str) -> None:
    request = RunRequest("".join(NASTY), strategy=name, config=_values(core.strategies.registry[name]), beginning=NASTY)
    back = request_json.request_from_json(json.loads(json.dumps(request_json.request_to_json(request))))
    assert (back.prompt, dict(back.config), dict(back.options)) == (request.prompt, request.config, request.options)
    assert tuple(back.beginning) == NASTY


@pytest.mark.parametrize("text", [*NASTY, "".join(NASTY), "word " * 60 + "\u2028" + "word\u00a0" * 60])
def test_source_literals_survive_evaluation(text: str) -> None:
    assert eval(literal(text)) == text
    assert eval(multiline_literal(text)) == text
    assert eval(literal({"stop_strings": [text]})) == {"stop_strings": [text]}


def test_recording_keeps_texts_of_request(tmp_path: Path) -> None:
    model = core.load("storyteller")
    config = {"max_new_tokens": 2, "stop_strings": list(NASTY[4:])}
    request = core.Request("Once upon a\u00a0time\u2028", config)
    path = tmp_path / "run.decodescope"
    for _event in core.record(path, core.stream(model, request), request):
        pass
    stored = core.trace.read(path).header.request
    assert (stored["prompt"], stored["config"]["stop_strings"]) == (request.prompt, config["stop_strings"])
