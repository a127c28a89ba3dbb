"""What dragged files, folders and addresses can be used for."""

from __future__ import annotations

from pathlib import Path

import pytest

from decodescope.app.storage.drop_offers import (
    ENGINE,
    GRAMMAR,
    HUB,
    MODEL,
    SETTINGS,
    TEXT,
    offer_for_address,
    offer_for_files,
)


@pytest.mark.parametrize(
    ("name", "content", "action"),
    [
        ("Big O.yaml", "temperature: 0.9", SETTINGS),
        ("preset.yml", "temperature: 0.9", SETTINGS),
        ("Modelfile", "FROM x\nPARAMETER temperature 0.9", SETTINGS),
        ("preset.json", '\ufeff{"temperature": 0.9}', SETTINGS),
        ("rules.gbnf", 'root ::= "yes"', GRAMMAR),
        ("rules.LARK", 'start: "yes"', GRAMMAR),
        ("schema.json", '{"type": "object", "properties": {}}', GRAMMAR),
        ("schema-of-type.json", '{"type": ["string", "null"]}', GRAMMAR),
        ("schema-by-reference.json", '{"$ref": "#/$defs/x", "$defs": {"x": {}}}', GRAMMAR),
        ("preset-with-type.json", '{"type": "sampler", "temperature": 0.9}', SETTINGS),
        ("list.json", "[1, 2]", ""),
        ("words.json", '"hello"', ""),
        ("tokenizer.json", "{}", ""),
        ("model.safetensors.index.json", '{"weight_map": {}}', ""),
        ("subtitles.srt", "1\n00:00 --> 00:01\nHello", TEXT),
        ("story.log", "Once", TEXT),
        ("letter.docx", "PK", ""),
    ],
)
def test_offer_for_file_matches_its_content(name: str, content: str, action: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    offer = offer_for_files([str(file)])
    assert offer.action == action
    assert offer.title
    assert offer.detail


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors.index.json", "config.json", "weights.bin"])
def test_offer_for_model_file_selects_its_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / name).write_text("{}")
    assert offer_for_files([str(tmp_path / name)])[::3] == (MODEL, (str(tmp_path),))


@pytest.mark.parametrize(
    ("address", "action", "value"),
    [
        ("https://huggingface.co/Qwen/Qwen3-0.6B", HUB, "Qwen/Qwen3-0.6B"),
        ("HTTPS://HuggingFace.co/Qwen/Qwen3-0.6B/tree/main", HUB, "Qwen/Qwen3-0.6B"),
        ("hf.co/Qwen/Qwen3-0.6B", HUB, "Qwen/Qwen3-0.6B"),
        ("http://127.0.0.1:11434", ENGINE, "http://127.0.0.1:11434"),
        ("HTTP://localhost:8080/v1", ENGINE, "HTTP://localhost:8080/v1"),
        ("huggingface.co/datasets/a/b", "", ""),
        ("ftp://example.org/model", "", ""),
        ("mailto:someone@example.org", "", ""),
        ("javascript:alert(1)", "", ""),
    ],
)
def test_offer_for_address_is_model_engine_or_none(address: str, action: str, value: str) -> None:
    offer = offer_for_address(address)
    assert offer.action == action
    assert offer.values == ((value,) if value else ())
