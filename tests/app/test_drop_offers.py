"""Uses offered for dragged files, folders and addresses."""

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
    droppable_kinds,
    offer_for_address,
    offer_for_files,
)
from decodescope.core.explain.sentence import Sentence, capitalize
from decodescope.resources.language import start_sentence


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
        ("https://huggingface.co/gpt2", HUB, "gpt2"),
        ("https://www.huggingface.co/Qwen/Qwen3-0.6B/blob/main/README.md", HUB, "Qwen/Qwen3-0.6B"),
        ("http://192.168.1.20:8000", ENGINE, "http://192.168.1.20:8000"),
        ("http://[::1]:8080/v1", ENGINE, "http://[::1]:8080/v1"),
        ("http://workstation/", ENGINE, "http://workstation/"),
        ("http://studio.local", ENGINE, "http://studio.local"),
        ("https://engine.example.org/v1", ENGINE, "https://engine.example.org/v1"),
        ("https://engine.example.org:8443", ENGINE, "https://engine.example.org:8443"),
        ("https://huggingface.co", "", ""),
        ("https://huggingface.co/datasets/x/y", "", ""),
        ("https://huggingface.co/docs/transformers/index", "", ""),
        ("https://huggingface.co/papers/2401.00001", "", ""),
        ("https://huggingface.co/spaces/a/b", "", ""),
        ("https://lmstudio.ai/models/qwen", "", ""),
        ("https://ollama.com/library/llama3", "", ""),
        ("https://en.wikipedia.org/wiki/Language_model", "", ""),
        ("https://example.org", "", ""),
        ("http://example.org:port/", "", ""),
        ("ftp://example.org/model", "", ""),
        ("mailto:someone@example.org", "", ""),
        ("javascript:alert(1)", "", ""),
    ],
)
def test_offer_for_address_is_model_engine_or_none(address: str, action: str, value: str) -> None:
    offer = offer_for_address(address)
    assert offer.action == action
    assert offer.values == ((value,) if value else ())


@pytest.mark.parametrize(
    ("name", "content"),
    [("story.txt", b""), ("story.txt", b" \n\t"), ("model.gguf", b""), ("settings.json", b""), ("run.decodescope", b""),
     ("weights.safetensors", b""), ("rules.gbnf", b"")],
)  # fmt: skip
def test_empty_file_is_refused_as_empty(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    offer = offer_for_files([str(tmp_path / name)])
    assert not offer.action
    assert "empty" in offer.title
    assert name in offer.detail


@pytest.mark.parametrize("name", ["broken.gguf", "my-model.Q4_K_M.gguf", "llama3.gguf"])
def test_refusal_of_damaged_gguf_keeps_its_name_and_helps(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"GGUF")
    offer = offer_for_files([str(tmp_path / name)])
    assert not offer.action
    assert offer.detail.startswith(name)
    assert "download it again" in offer.detail
    assert "llama.cpp" not in offer.detail


def test_refusal_of_unknown_file_names_everything_that_can_be_dropped(tmp_path: Path) -> None:
    (tmp_path / "letter.docx").write_text("PK")
    detail = offer_for_files([str(tmp_path / "letter.docx")]).detail
    kinds = droppable_kinds()
    assert len(kinds) > 8
    assert all(kind in detail for kind in kinds)
    for suffix in (".decodescope", ".gbnf", ".jsonl", "GGUF", "adapter", "address", "picture", "sound"):
        assert suffix in detail, suffix


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("it is not a GGUF file", "It is not a GGUF file"),
        ("top-p 0.9 left 14 tokens", "Top-p 0.9 left 14 tokens"),
        ("broken.gguf ends in the middle", "broken.gguf ends in the middle"),
        ("my_model is missing", "my_model is missing"),
        ("gpt2 rises", "gpt2 rises"),
        ("storyTeller falls", "storyTeller falls"),
        ("the model. It is large", "The model. It is large"),
        ("", ""),
    ],
)
def test_sentence_starts_with_capital_unless_with_name(text: str, sentence: str) -> None:
    assert start_sentence(text) == sentence
    assert capitalize(Sentence(text)) == sentence
