"""Quantized weights that the installed transformers cannot load: refused with the reason before a read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

from decodescope import core
from decodescope.core.errors import ConfigInvalidError
from decodescope.core.models.config_validation import missing_requirement, unloadable_quantization
from decodescope.core.models.model_entry import describe

MODELOPT = {"quant_method": "modelopt", "quant_algo": "NVFP4", "config_groups": {}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
                         num_attention_heads=2, num_key_value_heads=2)  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def change(folder: Path, **values: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **values}), "utf-8")


@pytest.mark.parametrize("values", [
    {"quantization_config": MODELOPT}, {"quantization_config": {"quant_method": "exl2", "bits": 4.0}},
    {"quantization_config": {"quant_method": "nobody_knows"}}, {"quantization": {"bits": 4, "group_size": 64}},
    {"text_config": {"quantization_config": MODELOPT}},
])  # fmt: skip
def test_unloadable_quantization_is_named_by_load_and_blueprint(folder: Path, values: dict[str, Any]) -> None:
    change(folder, **values)
    for use in (core.load, core.blueprint):
        with pytest.raises(ConfigInvalidError, match="a quantization format that the installed transformers") as caught:
            use(folder)
        assert "GPTQ, AWQ" in caught.value.remedy
        assert "again" not in caught.value.remedy
    problem = describe(folder, str(folder), "folder").problem
    assert "nobody_knows" in str(values) or "cannot read" in str(problem)


def test_modelopt_configuration_file_is_read(folder: Path) -> None:
    (folder / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}), "utf-8")
    with pytest.raises(ConfigInvalidError, match="NVIDIA ModelOpt, NVFP4"):
        core.blueprint(folder)


@pytest.mark.parametrize("method", [*AUTO_QUANTIZATION_CONFIG_MAPPING, "bitsandbytes"])
def test_formats_that_transformers_reads_are_not_refused(method: str) -> None:
    assert unloadable_quantization({"quantization_config": {"quant_method": method}}) is None
    assert unloadable_quantization({"quantization_config": {"load_in_8bit": True}}) is None


@pytest.mark.parametrize("method", ["eetq", "vptq", "aqlm", "spqr"])
def test_missing_requirement_is_named_without_weights(folder: Path, method: str) -> None:
    """The Hub's list judges by a blueprint of config.json alone."""
    config = LlamaConfig.from_pretrained(folder)
    config.quantization_config = {"quant_method": method}
    if missing_requirement(config) is None:
        pytest.skip(f"{method} can be loaded here")
    change(folder, quantization_config={"quant_method": method})
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigInvalidError, match="cannot be loaded on this computer: ") as caught:
        core.blueprint(folder)
    assert "Install what is missing" in caught.value.remedy


def test_invalid_values_are_not_a_missing_requirement() -> None:
    config = LlamaConfig()
    config.quantization_config = {"quant_method": "hqq"}
    assert missing_requirement(config) is None


@pytest.mark.parametrize("method", ["fp8", "mxfp8"])
def test_weights_unpacked_on_loading_are_estimated_unpacked(folder: Path, method: str) -> None:
    change(folder, quantization_config={"quant_method": method})
    loaded = core.load(folder)
    assert isinstance(loaded, core.LoadedModel)
    assert core.blueprint(folder).weight_bytes == pytest.approx(loaded.weight_bytes, rel=0.1)


def test_weights_kept_quantized_are_estimated_by_stored_size(tmp_path: Path) -> None:
    config = LlamaConfig(vocab_size=512, hidden_size=128, intermediate_size=512, num_hidden_layers=2,
                         num_attention_heads=2, num_key_value_heads=2, tie_word_embeddings=True)  # fmt: skip
    folder = tmp_path / "ternary"
    LlamaForCausalLM(config).save_pretrained(folder)
    stored = load_file(folder / "model.safetensors")
    for name, weight in list(stored.items()):
        if "proj" in name:  # four numbers a byte
            stored[name] = torch.zeros(weight.shape[0] // 4, weight.shape[1], dtype=torch.uint8)
            stored[name.replace("weight", "weight_scale")] = torch.ones(1)
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    change(folder, quantization_config={"quant_method": "bitnet"})
    size = sum(tensor.numel() * tensor.element_size() for tensor in stored.values())
    loaded, planned = core.load(folder), core.blueprint(folder)
    assert isinstance(loaded, core.LoadedModel)
    assert loaded.weight_bytes == pytest.approx(size, rel=0.01)
    assert planned.weight_bytes == pytest.approx(loaded.weight_bytes, rel=0.1)
