"""Settings files of other programs: each is recognised, and every setting is read or reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from decodescope.app.storage import presets, programs

FILES: dict[str, tuple[str, str | dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "kobold preset of SillyTavern": (
        "KoboldCpp",
        {"temp": 1.15, "rep_pen": 1.05, "rep_pen_range": 2048, "top_p": 0.95, "top_k": 0, "typical": 1, "tfs": 0.8,
         "sampler_order": [6, 3, 2, 0, 5, 1, 4], "mirostat": 0, "max_length": 8192, "genamt": 300},
        {"temperature": 1.15, "repetition_penalty": 1.05, "top_p": 0.95, "top_k": 0, "max_new_tokens": 300},
        ("tfs", "rep_pen_range", "max_context_length"),
    ),
    "story of KoboldAI Lite": (
        "KoboldCpp",
        {"gamestarted": True, "prompt": "", "savedsettings": {"temperature": 0.6, "rep_pen": 1.1, "max_length": 220}},
        {"temperature": 0.6, "repetition_penalty": 1.1, "max_new_tokens": 220}, (),
    ),
    "text completion preset of SillyTavern": (
        "SillyTavern (text completion)",
        {"temp": 1.25, "top_p": 1, "min_p": 0.1, "rep_pen": 1, "do_sample": True, "mirostat_mode": 0,
         "mirostat_tau": 5, "mirostat_eta": 0.1, "freq_pen": 0.4, "dynatemp": False, "min_temp": 0.5, "max_temp": 3},
        {"temperature": 1.25, "min_p": 0.1, "mirostat_tau": None, "dynatemp_high": None, "frequency_penalty": 0.4},
        ("freq_pen: here it counts the tokens of the answer",),
    ),
    "mirostat of SillyTavern": (
        "SillyTavern (text completion)",
        {"temp": 1, "mirostat_mode": 2, "mirostat_tau": 4, "mirostat_eta": 0.2, "dynatemp": True, "min_temp": 0.5,
         "max_temp": 3},
        {"mirostat_tau": 4, "mirostat_eta": 0.2, "dynatemp_low": 0.5, "dynatemp_high": 3}, (),
    ),
    "chat preset of SillyTavern": (
        "SillyTavern (chat completion)",
        {"temperature": 0.9, "frequency_penalty": 0.2, "top_p": 0.8, "openai_max_context": 4095,
         "openai_max_tokens": 300, "stream_openai": True},
        {"temperature": 0.9, "top_p": 0.8, "max_new_tokens": 300, "frequency_penalty": 0.2}, ("context length",),
    ),
    "preset of LM Studio": (
        "LM Studio",
        {"identifier": "@local:x", "name": "x", "operation": {"fields": [
            {"key": "llm.prediction.temperature", "value": 0.3}, {"key": "llm.prediction.topKSampling", "value": 20},
            {"key": "llm.prediction.topPSampling", "value": {"checked": False, "value": 0.5}},
            {"key": "llm.prediction.repeatPenalty", "value": {"checked": True, "value": 1.2}},
            {"key": "llm.prediction.maxPredictedTokens", "value": {"checked": True, "value": 99}},
            {"key": "llm.prediction.stopStrings", "value": ["END"]},
            {"key": "llm.prediction.systemPrompt", "value": "Be kind."}]},
         "load": {"fields": [{"key": "llm.load.contextLength", "value": 4096}]}},
        {"temperature": 0.3, "top_k": 20, "repetition_penalty": 1.2, "max_new_tokens": 99, "stop_strings": ["END"]},
        ("systemPrompt (system prompt)", "contextLength (context length)"),
    ),
    "older preset of LM Studio": (
        "LM Studio",
        {"name": "x", "inference_params": {"temp": 0.2, "n_predict": 50, "repeat_penalty": 1.15, "antiprompt": ["A"]}},
        {"temperature": 0.2, "max_new_tokens": 50, "repetition_penalty": 1.15}, ("antiprompt",),
    ),
    "options of Ollama": (
        "Ollama", {"temperature": 0.6, "num_predict": 128, "num_ctx": 8192, "repeat_penalty": 1.0},
        {"temperature": 0.6, "max_new_tokens": 128, "repetition_penalty": 1.0, "top_k": 40},
        ("num_ctx (context length)",),
    ),
    "request of Ollama": (
        "Ollama", {"model": "x", "prompt": "Hi", "options": {"temperature": 0.1, "stop": ["a"], "mirostat": 0}},
        {"temperature": 0.1, "stop_strings": ["a"]}, (),
    ),
    "request of OpenAI": (
        "OpenAI", {"model": "x", "temperature": 0.2, "top_p": 0.9, "max_tokens": 256, "logit_bias": {"5": 3}},
        {"temperature": 0.2, "top_p": 0.9, "max_new_tokens": 256, "top_k": 0}, ("logit_bias", "model"),
    ),
    "request of OpenAI with penalties": (
        "OpenAI", {"messages": [], "temperature": 1, "frequency_penalty": 0.5, "presence_penalty": -0.5},
        {"frequency_penalty": 0.5, "presence_penalty": -0.5}, (),
    ),
    "greedy request of OpenAI": (
        "OpenAI", {"messages": [], "temperature": 0, "max_completion_tokens": 9}, {"max_new_tokens": 9}, (),
    ),
    "sampling parameters of vLLM": (
        "vLLM",
        {"temperature": 0.5, "top_k": -1, "min_tokens": 3, "max_tokens": 16, "stop_token_ids": [7], "seed": 5,
         "skip_special_tokens": True, "repetition_penalty": 1.1},
        {"temperature": 0.5, "top_k": 0, "max_new_tokens": 16, "repetition_penalty": 1.1}, ("stop_token_ids", "seed"),
    ),
    "request of Anthropic": (
        "OpenAI", {"model": "x", "messages": [], "max_tokens": 9, "top_k": 5, "stop_sequences": ["A"], "system": "x"},
        {"max_new_tokens": 9, "top_k": 5, "stop_strings": ["A"]}, ("system (system prompt)",),
    ),
    "preset of text-generation-webui.json": (
        "text-generation-webui",
        {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.15, "repetition_penalty_range": 1024,
         "do_sample": True, "epsilon_cutoff": 3, "dynamic_temperature": False, "dynatemp_low": 1, "dynatemp_high": 1},
        {"temperature": 0.7, "repetition_penalty": 1.15, "epsilon_cutoff": 3e-4, "dynatemp_high": None},
        ("repetition_penalty_range",),
    ),
    "Big O.yaml": (
        "text-generation-webui", "temperature: 0.87\ntop_p: 0.99\ntypical_p: 0.68\ntfs: 0.68\n",
        {"temperature": 0.87, "top_p": 0.99, "typical_p": 0.68}, ("tfs",),
    ),
    "Modelfile": (
        "Ollama",
        'FROM x\nPARAMETER temperature 0.3\nPARAMETER stop "<a>"\nPARAMETER stop b\nPARAMETER num_ctx 512\nSYSTEM Hi\n',
        {"temperature": 0.3, "stop_strings": ["<a>", "b"]}, ("num_ctx", "system"),
    ),
}  # fmt: skip


def read(folder: Path, name: str, data: object) -> presets.Preset:
    path = folder / (name if "." in name or name == "Modelfile" else f"{name}.json")
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return presets.load_preset(path)


@pytest.mark.parametrize("name", FILES)
def test_every_setting_is_read_or_reported_unsupported(name: str, tmp_path: Path) -> None:
    program, data, expected, named = FILES[name]
    found = read(tmp_path, name, data)
    assert found.program == program
    assert found.strategy == ("greedy" if name.startswith("greedy") else "sampling")
    assert {key: found.values.get(key) for key in expected} == expected
    reported = " ".join(found.unsupported)
    assert all(one in reported for one in named), reported
    assert (found.rejected, bool(found.unsupported)) == ((), bool(named) or bool(reported))


@pytest.mark.parametrize("data", [{"a": 1}, {"theme": "dark", "size": 3}, {"gamestarted": True, "actions": []}])
def test_file_without_settings_error_lists_readable_programs(data: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(presets.PresetProblem, match=r"other\.json contains no settings") as caught:
        read(tmp_path, "other", data)
    assert all(name in caught.value.remedy for name in programs.readable_programs())
    assert {"Ollama", "LM Studio", "SillyTavern (text completion)", "llama.cpp"} <= set(programs.readable_programs())


@pytest.mark.parametrize(("name", "text"), [("x.yaml", "a: [1"), ("x.yaml", "- 1"), ("x.yml", "a\0")])
def test_a_broken_file_is_refused(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(presets.PresetProblem, match="cannot be read"):
        read(tmp_path, name, text)


def test_generation_config_is_not_attributed_to_other_program(tmp_path: Path) -> None:
    for data in ({"do_sample": True, "temperature": 0.4, "max_new_tokens": 5},
                 {"bos_token_id": 1, "eos_token_id": 2, "transformers_version": "4.50", "temperature": 0.6},
                 {"repetition_penalty": 1.1, "top_k": 20}):  # fmt: skip
        assert read(tmp_path, "generation_config", data).program == ""
