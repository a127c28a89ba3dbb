"""transformers' config and decoding settings of a model in a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, GenerationConfig, PreTrainedConfig

from core.errors import ConfigInvalidError, CorruptWeightsError
from core.models.gguf.architectures import transformers_config
from core.models.gguf.block_formats import DEQUANTIZABLE
from core.models.gguf.gguf_file import GgufFile
from core.models.gguf.gguf_tokenizer import end_tokens
from core.models.model_files import full_message, readable_reason
from resources.language import tr

_SAMPLING = {
    "temp": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "penalty_repeat": "repetition_penalty",
}  # fmt: skip
"""Generation settings by llama.cpp's keys `general.sampling.…`."""


def build_config(file: GgufFile) -> PreTrainedConfig:
    """Return transformers' config. Raises UnknownArchitectureError, ConfigInvalidError."""
    content = transformers_config(file)
    try:
        kind = str(content.pop("model_type"))
        config: PreTrainedConfig = AutoConfig.for_model(kind, **content)
        config.architectures = [_class_name(config)]
        return config
    except Exception as error:  # validators, and the arithmetic of each model family
        raise ConfigInvalidError(
            tr("The metadata of {file} do not describe a valid model: {reason}").format(
                file=file.files[0].name, reason=readable_reason(error)
            ),
            tr("Copy or download the file again."),
            full_message(error),
        ) from error


def _class_name(config: PreTrainedConfig) -> str:
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    mapping: Mapping[Any, Any] = auto._model_mapping
    return str(mapping[type(config)].__name__)


def generation_config(file: GgufFile, config: PreTrainedConfig) -> GenerationConfig:
    """Return the file's own decoding settings: its end tokens, and sampling settings if it contains any."""
    made = GenerationConfig.from_model_config(config)
    ends = end_tokens(file)
    made.eos_token_id = ends if len(ends) > 1 else next(iter(ends), None)
    for key, name in _SAMPLING.items():
        value = file.number(f"general.sampling.{key}")
        if value is not None and value >= 0:
            setattr(made, name, int(value) if name == "top_k" else float(value))
    return made


def check_formats(file: GgufFile) -> None:
    """Check that the formats of all tensors can be read. Raises CorruptWeightsError."""
    unknown = sorted({tensor.fmt.name for tensor in file.tensors.values()} - DEQUANTIZABLE)
    if unknown:
        raise CorruptWeightsError(
            tr("{file} has weights in {formats}, which this program cannot read.").format(
                file=file.files[0].name, formats=", ".join(unknown)
            ),
            tr("Choose a file in another format, such as Q4_K_M or Q8_0."),
        )
