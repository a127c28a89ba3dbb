"""Generation configs as files, compared with transformers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from decodescope import resources
from decodescope.app.storage import presets
from decodescope.app.storage.presets import Preset, PresetProblem
from decodescope.core import strategies
from decodescope.core.strategies import registry


def saved(folder: Path, strategy: str, values: dict[str, Any], **extra: Any) -> Path:
    return presets.save_preset(folder, Preset("mine", strategy, values, extra))


@pytest.mark.parametrize(
    ("strategy", "values"),
    [
        ("greedy", {"max_new_tokens": 50, "repetition_penalty": 1.3, "stop_strings": ["The end"]}),
        ("sampling", {"temperature": 0.7, "top_p": 0.9, "top_k": 0, "num_return_sequences": 3}),
        ("contrastive", {"penalty_alpha": 0.6, "top_k": 4}),
        ("dola", {"dola_layers": "low", "do_sample": False, "repetition_penalty": 1.2}),
    ],
)
def test_saved_preset_is_loaded_unchanged(tmp_path: Path, strategy: str, values: dict[str, Any]) -> None:
    preset = presets.load_preset(saved(tmp_path, strategy, values))
    assert (preset.strategy, dict(preset.values)) == (strategy, values)
    assert preset.notice == ""


def test_transformers_reads_saved_presets_by_file_name(tmp_path: Path) -> None:
    from transformers import GenerationConfig

    presets.save_preset(tmp_path, Preset("careful", "sampling", {"temperature": 0.7}))
    presets.save_preset(tmp_path, Preset("contrastive", "contrastive", {"penalty_alpha": 0.5, "top_k": 6}))
    careful = GenerationConfig.from_pretrained(tmp_path, "careful.json")
    assert (careful.do_sample, careful.temperature) == (True, 0.7)
    contrastive = GenerationConfig.from_pretrained(tmp_path, "contrastive.json")
    assert (contrastive.penalty_alpha, contrastive.top_k) == (0.5, 6)
    assert [name for name, _path in presets.folder_presets(tmp_path)] == ["careful", "contrastive"]


def test_load_preset_reads_generation_config_of_transformers(tmp_path: Path) -> None:
    from transformers import GenerationConfig

    config = GenerationConfig(do_sample=True, temperature=0.6, top_p=0.8, pad_token_id=3, watermark_me=1)
    config.save_pretrained(tmp_path, "theirs.json")
    preset = presets.load_preset(tmp_path / "theirs.json")
    assert preset.strategy == "sampling"
    assert preset.values["temperature"] == 0.6
    assert "pad_token_id" in preset.notice
    assert "transformers_version" not in preset.notice
    again = presets.load_preset(presets.save_preset(tmp_path, preset))
    assert again.extra["pad_token_id"] == 3


def test_strategy_options_are_saved_separately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    own = replace(registry["greedy"].parameter("max_new_tokens"), name="width", option=True)
    changed = replace(registry["greedy"], parameters=(*registry["greedy"].parameters, own))
    monkeypatch.setitem(registry._entries, "greedy", changed)  # type: ignore[arg-type, attr-defined]
    path = saved(tmp_path, "greedy", {"width": 3, "max_new_tokens": 9})
    assert json.loads(path.read_text(encoding="utf-8"))[presets.OWN_KEY] == {"options": {"width": 3}}
    assert presets.load_preset(path).values == {"width": 3, "max_new_tokens": 9}


@pytest.mark.parametrize(
    ("data", "mode"),
    [
        ({}, "greedy"),
        ({"do_sample": True, "penalty_alpha": 0.6}, "sampling"),
        ({"penalty_alpha": 0.6}, "contrastive"),
        ({"penalty_alpha": 0.6, "top_k": 1}, "greedy"),
        ({"dola_layers": "high"}, "dola"),
        ({"num_beams": 4}, "beam_search"),
        ({"num_beams": 4, "do_sample": True}, "beam_sampling"),
        ({"num_beams": 4, "num_beam_groups": 2}, "diverse_beam_search"),
        ({"force_words_ids": [[1]]}, "constrained_beam_search"),
        ({"prompt_lookup_num_tokens": 3}, "prompt_lookup"),
    ],
)
def test_mode_of_config_matches_transformers(data: dict[str, Any], mode: str) -> None:
    assert presets.mode_of(data) == mode


def test_unknown_strategy_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PresetProblem, match="reading tea leaves"):
        presets.preset_from_config("odd", {presets.OWN_KEY: {"strategy": "reading_tea_leaves"}})


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_invalid_json_preset_is_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PresetProblem, match=r"x\.json"):
        presets.load_preset(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "9" * 5000, "\xff"])
def test_extreme_json_preset_is_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(PresetProblem, match=r"x\.json cannot be read"):
        presets.load_preset(path)


def test_pipe_folder_or_missing_path_is_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    for name in ("pipe.json", "folder.json", "absent.json"):
        with pytest.raises(PresetProblem, match=name):
            presets.load_preset(tmp_path / name)
    assert presets.folder_presets(tmp_path) == []


def test_unreadable_folder_has_no_presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "glob", refuse)
    assert presets.folder_presets(tmp_path) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"top_k": "many"}, {"top_k": 2**31}, {"top_k": 2.5}, {"temperature": float("inf")}, {"temperature": "warm"},
        {"max_new_tokens": 10**400}, {"renormalize_logits": "yes"}, {"stop_strings": [1]},
        {"bad_words_ids": [[[[[1]]]]]}, {"bad_words_ids": {"a": 1}}, {"stop_strings": ["\ud83d"]},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_values_are_dropped_individually(wrong: dict[str, Any]) -> None:
    preset = presets.preset_from_config("odd", {"do_sample": True, "top_p": 0.5, **wrong})
    assert dict(preset.values) == {"top_p": 0.5}
    assert next(iter(wrong)) in preset.notice


@pytest.mark.parametrize(
    "data",
    [
        {"num_beams": "four"}, {"num_beams": 4, "num_beam_groups": []}, {"penalty_alpha": "x"}, {"top_k": {}},
        {"penalty_alpha": 0.5, "top_k": "x"}, {presets.OWN_KEY: 5}, {presets.OWN_KEY: {"strategy": 5, "options": 5}},
        {presets.OWN_KEY: {"strategy": "assisted", "drafters": 5}},
        {presets.OWN_KEY: {"strategy": "assisted", "drafters": ["a", 5, None]}}, {"forced_bos_token_id": float("inf")},
    ],
    ids=str,
)  # fmt: skip
def test_values_of_any_type_are_read(data: dict[str, Any]) -> None:
    preset = presets.preset_from_config("odd", data)
    assert preset.name == "odd"
    assert preset.strategy in ("", *strategies.registry)
    assert all(isinstance(name, str) for name in preset.drafters)


@pytest.mark.parametrize("name", ["", "  ", "a/b", "..", 'a"b'])
def test_invalid_preset_name_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(PresetProblem, match="is not a valid file name"):
        presets.save_preset(tmp_path, Preset(name, "greedy"))


def test_shipped_presets_load_without_notices() -> None:
    shipped = presets.folder_presets(resources.path("presets"))
    assert [name for name, _path in shipped] == ["Balanced", "Predictable", "Surprising", "Wide choice"]
    for _name, path in shipped:
        assert presets.load_preset(path).notice == ""
