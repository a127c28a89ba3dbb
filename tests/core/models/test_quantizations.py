"""Quantized weights that the installed transformers cannot load: named with a true reason, before anything is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

import core
from core.errors import ConfigInvalidError
from core.models.entry import describe
from core.models.quantizations import unloadable_quantization

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
def test_it_is_named_by_load_blueprint_and_list(folder: Path, values: dict[str, Any]) -> None:
    change(folder, **values)
    for use in (core.load, core.blueprint):
        with pytest.raises(ConfigInvalidError, match="quantized in a form that the installed transformers") as caught:
            use(folder)
        assert "GPTQ, AWQ" in caught.value.remedy
        assert "again" not in caught.value.remedy
    problem = describe(folder, str(folder), "folder").problem
    assert "nobody_knows" in str(values) or "cannot read" in str(problem)


def test_the_file_of_modelopt_beside_the_configuration_is_read(folder: Path) -> None:
    (folder / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}), "utf-8")
    with pytest.raises(ConfigInvalidError, match="NVIDIA ModelOpt, NVFP4"):
        core.blueprint(folder)


@pytest.mark.parametrize("method", [*AUTO_QUANTIZATION_CONFIG_MAPPING, "bitsandbytes"])
def test_what_transformers_can_read_is_not_refused(method: str) -> None:
    assert unloadable_quantization({"quantization_config": {"quant_method": method}}) is None
    assert unloadable_quantization({"quantization_config": {"load_in_8bit": True}}) is None
