"""Shape and decoding settings of a model: metadata of a GGUF file, and transformers' config, in both directions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    GenerationConfig,
    PreTrainedConfig,
)

from decodescope.core.errors import ConfigInvalidError, CorruptWeightsError, ModelError
from decodescope.core.models.gguf.architectures import (
    ARCHITECTURES,
    Config,
    Metadata,
    architecture_of,
    invalid_value_error,
    missing_key_error,
    whole_number,
    window_layers,
)
from decodescope.core.models.gguf.block_formats import DEQUANTIZABLE
from decodescope.core.models.gguf.config_comparison import adjusted_width, head_width
from decodescope.core.models.gguf.gguf_file import GgufFile, TextArray
from decodescope.core.models.gguf.metadata_checks import check_metadata
from decodescope.core.models.gguf.rotary_positions import add_rope_parameters, rope_metadata
from decodescope.core.models.gguf.tensor_names import LAYER_NAME
from decodescope.core.models.gguf.vocabulary import end_tokens
from decodescope.core.models.model_files import full_message, readable_reason
from decodescope.resources.language import join_names, tr

_SAMPLING = {
    "temp": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "penalty_repeat": "repetition_penalty",
}  # fmt: skip
"""Generation settings by llama.cpp's keys `general.sampling.…`."""
_REQUIRED = ("block_count", "embedding_length", "attention.head_count")
"""Metadata without which an architecture cannot be built; transformers would take its own default values."""
_MAY_BE_ZERO = ("leading_dense_block_count", "attention.sliding_window", "expert_shared_count")
_FLOATS = ("epsilon", "scale", "softcapping", "clamp_kqv")
"""Endings of keys whose values are no whole numbers."""


def build_config(file: GgufFile) -> PreTrainedConfig:
    """Return transformers' config. Raises UnknownArchitectureError, ConfigInvalidError."""
    try:
        content = transformers_config(file)
        kind = str(content.pop("model_type"))
        config: PreTrainedConfig = AutoConfig.for_model(kind, **content)
        config.architectures = [_class_name(config)]
        _check_windows(file, config)
        return config
    except ModelError:
        raise
    except Exception as error:  # validators, and the arithmetic of each model family
        raise metadata_error(file, error) from error


def _check_windows(file: GgufFile, config: PreTrainedConfig) -> None:
    """Check that layers with a window have one. Raises ConfigInvalidError."""
    kinds: object = getattr(config, "layer_types", None)
    if isinstance(kinds, list) and "sliding_attention" in kinds and not getattr(config, "sliding_window", None):
        key = f"{file.architecture}.attention.sliding_window"
        if key not in file.metadata:
            raise missing_key_error(file, key)
        raise invalid_value_error(file, key, file.metadata[key], tr("a whole number of at least 1"))


def metadata_error(file: GgufFile, error: Exception) -> ConfigInvalidError:
    """Return the error of metadata from which transformers cannot build a model."""
    return ConfigInvalidError(
        tr("The metadata of {file} do not describe a valid model: {reason}").format(
            file=file.files[0].name, reason=readable_reason(error)
        ),
        tr("Copy or download the file again."),
        full_message(error),
    )


def _class_name(config: PreTrainedConfig) -> str:
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    mapping: Mapping[Any, Any] = auto._model_mapping
    return str(mapping[type(config)].__name__)


def transformers_config(file: GgufFile) -> Config:
    """Return what config.json would contain. Raises UnknownArchitectureError, ConfigInvalidError."""
    if file.text("general.type") == "adapter":
        raise ConfigInvalidError(
            tr("{file} is an adapter, not a model.").format(file=file.files[0].name),
            tr("Open the model that it was trained for, and add the adapter to it."),
        )
    known, prefix = architecture_of(file), file.architecture
    check_metadata(file, known)
    config: Config = {"model_type": known.model_type, "dtype": "float32", **known.defaults, **known.variant}
    for key, name in known.keys.items():
        value = _checked_number(file, f"{prefix}.{key}")
        if value is not None:
            config[name] = value
        elif key in _REQUIRED:
            raise missing_key_error(file, f"{prefix}.{key}")
    width = known.keys.get("attention.key_length")
    if width is not None and config.get(width) is None:
        config[width] = _width_of_heads(file)
    if config.get("sliding_window") == 0:
        config["sliding_window"] = None
    _check_layers(file)
    _check_heads(file)
    words = file.tensors.get("token_embd.weight")
    if words is None or len(words.shape) != 2:
        raise ConfigInvalidError(
            tr("{file} contains no token embeddings.").format(file=file.files[0].name),
            tr("Choose a language model; adapters and projectors are not models."),
        )
    config["vocab_size"] = words.shape[0]
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, TextArray) and len(tokens) > words.shape[0]:
        raise ConfigInvalidError(
            tr("The vocabulary of {file} has {tokens:,} tokens, but its embeddings only {rows:,}.").format(
                file=file.files[0].name, tokens=len(tokens), rows=words.shape[0]
            ),
            tr("Copy or download the file again."),
        )
    config["tie_word_embeddings"] = "output.weight" not in file.tensors
    for special in ("bos", "eos"):
        config[f"{special}_token_id"] = _token_id(file, f"tokenizer.ggml.{special}_token_id", words.shape[0])
    config["pad_token_id"] = _token_id(file, "tokenizer.ggml.padding_token_id", words.shape[0])
    config |= {own: tensor in file.tensors for own, tensor in known.present.items()}
    for key, own in known.flags.items():
        config[own] = bool(file.metadata.get(f"{prefix}.{key}", config.get(own)))
    add_rope_parameters(file, config)
    known.finish(file, config)
    _add_further_fields(file, config)
    return config


def _width_of_heads(file: GgufFile) -> int:
    """Return the numbers of a head by llama.cpp's rule for files that do not say. Raises ConfigInvalidError."""
    prefix = file.architecture
    hidden, heads = (file.number(f"{prefix}.{key}") for key in ("embedding_length", "attention.head_count"))
    if not isinstance(hidden, int) or not isinstance(heads, int) or not 0 < heads <= hidden:
        raise missing_key_error(file, f"{prefix}.attention.key_length")
    return hidden // heads


class _FurtherField(NamedTuple):
    """A config field that a file may give for every architecture whose config has it."""

    key: str
    read: Callable[[Any, int], object]
    """Returns the config's value of the file's, and of the number of layers; None for one that it cannot be."""
    write: Callable[[Any], Any]
    """Returns what is written for a value; None if there is no such value in a file."""


def _layer_types(value: Any, layers: int) -> list[str] | None:
    if isinstance(value, memoryview):
        return ["sliding_attention" if one else "full_attention" for one in value] if len(value) == layers else None
    return window_layers(value, layers) if isinstance(value, int) and 0 <= value <= layers else None


def _window_pattern(kinds: Any) -> int | list[bool] | None:
    """Return after how many layers one follows without a window, or else whether each layer has one."""
    layers = list(kinds or ())
    if not layers or not set(layers) <= {"sliding_attention", "full_attention"}:
        return None
    periods = (period for period in range(len(layers) + 1) if window_layers(period, len(layers)) == layers)
    return next(periods, [kind == "sliding_attention" for kind in layers])


def _positive(value: Any, _layers: int) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
        return None
    return float(value)


def _as_float(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value else None


FURTHER_FIELDS: Mapping[str, _FurtherField] = {
    "sliding_window": _FurtherField(
        "attention.sliding_window", lambda value, _: value if isinstance(value, int) and value > 0 else None,
        lambda value: int(value) if value else None,
    ),
    "layer_types": _FurtherField("attention.sliding_window_pattern", _layer_types, _window_pattern),
    "norm_topk_prob": _FurtherField("expert_weights_norm", lambda value, _: bool(value), bool),
    "routed_scaling_factor": _FurtherField("expert_weights_scale", _positive, _as_float),
    "clip_qkv": _FurtherField("attention.clamp_kqv", _positive, _as_float),
    "attn_logit_softcapping": _FurtherField("attn_logit_softcapping", _positive, _as_float),
    "final_logit_softcapping": _FurtherField("final_logit_softcapping", _positive, _as_float),
    "query_pre_attn_scalar": _FurtherField(
        "attention.scale", lambda value, _: _whole_inverse_square(value), lambda value: float(value) ** -0.5
    ),
}  # fmt: skip
"""By the config's field. llama.cpp reads these keys for some architectures and assumes the values of others, so they
are written where the value is another one.
"""


def _whole_inverse_square(scale: Any) -> float | None:
    """Return 1 / scale², a whole number if it is one but for rounding; None for a scale that no model has."""
    number = _positive(scale, 0)
    if number is None or not 1e-6 < number < 1e6:
        return None
    square = 1 / (number * number)
    whole = max(round(square), 1)
    return whole if math.isclose(whole**-0.5, number, rel_tol=1e-6) else square


def _add_further_fields(file: GgufFile, config: Config) -> None:
    """Add the values of FURTHER_FIELDS that the file contains. Raises ConfigInvalidError."""
    kind: Any = CONFIG_MAPPING[str(config["model_type"])]
    layers = int(file.number(f"{file.architecture}.block_count") or 0)
    for own, field in FURTHER_FIELDS.items():
        key = f"{file.architecture}.{field.key}"
        value = file.metadata.get(key)
        if value is None or not hasattr(kind, own) or (own == "sliding_window" and not value):
            continue
        found = field.read(value, layers)
        if found is None:
            raise invalid_value_error(file, key, value, tr("a value that fits the model"))
        config[own] = found
    if getattr(kind, "head_dim", 0) is None and config.get("head_dim") is None:
        config["head_dim"] = whole_number(config, "hidden_size") // whole_number(config, "num_attention_heads")
    if config.get("sliding_window") and hasattr(kind, "use_sliding_window"):
        config["use_sliding_window"] = True
        config.setdefault("layer_types", window_layers(0, layers))


def _check_layers(file: GgufFile) -> None:
    """Check that the metadata count the layers that are there, before anything is built of them.

    Raises ConfigInvalidError.
    """
    there: dict[str, set[int]] = {}
    for name in file.tensors:
        if found := LAYER_NAME.match(name):
            there.setdefault(found["stack"], set()).add(int(found["number"]))
    key = f"{file.architecture}.block_count"
    stated = {stack: (key, file.number(key)) for stack in there or ("",)}
    if "dec." in stated:
        own = f"{file.architecture}.decoder_block_count"
        stated["dec."] = (own, file.number(own)) if file.number(own) is not None else stated["dec."]
    for stack, (key, number) in stated.items():
        numbers = there.get(stack, set())
        if number != len(numbers) or numbers != set(range(len(numbers))):
            raise ConfigInvalidError(
                tr("{file} gives {stated} as its number of layers ({key}), but contains {contained}.").format(
                    file=file.files[0].name, stated=number, key=key, contained=len(numbers)
                ),
                tr("Copy or download the file again."),
            )


def _checked_number(file: GgufFile, key: str) -> int | float | None:
    """Return a number of the shape, or None without one; of an array with one value per layer, the value that all
    layers share. Raises ConfigInvalidError for a value that no model can have.
    """
    value = file.metadata.get(key)
    if isinstance(value, memoryview):
        values = set(value)
        if len(values) != 1:
            reason = tr("a list of different numbers")
            raise invalid_value_error(file, key, reason, tr("the same number for all layers"))
        (value,) = values
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise invalid_value_error(file, key, tr("not a number"), tr("a number"))
    if key.endswith(_FLOATS):
        if not math.isfinite(value) or (key.endswith("epsilon") and value < 0):
            raise invalid_value_error(file, key, value, tr("a finite number of at least 0"))
        return value
    if not math.isfinite(value) or value != int(value) or value < (0 if key.endswith(_MAY_BE_ZERO) else 1):
        raise invalid_value_error(file, key, value, tr("a whole number of at least 1"))
    return int(value)


def _check_heads(file: GgufFile) -> None:
    """Check that numbers of heads divide what they split, and that rotated numbers are part of a head.

    Raises ConfigInvalidError.
    """
    prefix = file.architecture
    heads = file.number(f"{prefix}.attention.head_count")
    hidden, kv_heads = file.number(f"{prefix}.embedding_length"), file.number(f"{prefix}.attention.head_count_kv")
    if not isinstance(heads, int) or not isinstance(hidden, int) or heads < 1:
        return
    width = file.number(f"{prefix}.attention.key_length")
    if width is None:
        if hidden % heads:
            raise invalid_value_error(
                file, f"{prefix}.attention.head_count", heads,
                tr("a divisor of {key} ({value})").format(key=f"{prefix}.embedding_length", value=hidden),
            )  # fmt: skip
        width = hidden // heads
    if isinstance(kv_heads, int) and kv_heads > 0 and heads % kv_heads:
        raise invalid_value_error(
            file, f"{prefix}.attention.head_count_kv", kv_heads,
            tr("a divisor of {key} ({value})").format(key=f"{prefix}.attention.head_count", value=heads),
        )  # fmt: skip
    rotated = file.number(f"{prefix}.rope.dimension_count")
    if rotated is not None and not (0 <= rotated <= width and rotated % 2 == 0):
        raise invalid_value_error(
            file, f"{prefix}.rope.dimension_count", rotated,
            tr("an even number of at most {width}, the width of a head").format(width=width),
        )  # fmt: skip
    base = file.number(f"{prefix}.rope.freq_base")
    if base is not None and not 0 < base < math.inf:
        raise invalid_value_error(file, f"{prefix}.rope.freq_base", base, tr("a number above 0"))


def _token_id(file: GgufFile, key: str, vocabulary: int) -> int | None:
    value = file.number(key)
    return value if isinstance(value, int) and 0 <= value < vocabulary else None


def config_metadata(config: PreTrainedConfig, name: str, context: int | None) -> Metadata:
    """Return the metadata of a model with transformers' config that is written by the entry `name`."""
    known = ARCHITECTURES[name]
    found: Metadata = {"vocab_size": int(config.vocab_size)}
    for key, own in known.keys.items():
        value = getattr(config, own, None)
        if own == "intermediate_size" and hasattr(config, "block_auto_adjust_ff_dim"):
            value = adjusted_width(config)
        is_unset = key.endswith("scale") and not value  # a factor of 0 stands for none
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not is_unset:
            found[key] = float(value) if key.endswith(_FLOATS) else int(value)
    found.setdefault("context_length", int(context or 2048))
    found |= {key: bool(getattr(config, own)) for key, own in known.flags.items()}
    found |= {**known.constants, **known.more_metadata(config)}
    width = head_width(config)
    if "attention.key_length" in known.keys:
        found["attention.key_length"] = found["attention.value_length"] = width
    found |= rope_metadata(config, width)
    prefix = known.stored_name or name
    return {"general.architecture": prefix} | {f"{prefix}.{key}": value for key, value in found.items()}


def further_metadata(config: PreTrainedConfig, name: str, fields: Iterable[str]) -> Metadata:
    """Return the metadata of those of these config fields that FURTHER_FIELDS has keys for."""
    known = ARCHITECTURES[name]
    values = {
        field.key: field.write(getattr(config, own))
        for own in fields
        if (field := FURTHER_FIELDS.get(own)) is not None and getattr(config, own, None) is not None
    }
    return {f"{known.stored_name or name}.{key}": value for key, value in values.items() if value is not None}


def generation_config(file: GgufFile, config: PreTrainedConfig) -> GenerationConfig:
    """Return the file's own decoding settings: its end tokens, suppressed tokens, and sampling settings if any."""
    made = GenerationConfig.from_model_config(config)
    ends = end_tokens(file)
    if ends:
        made.eos_token_id = ends if len(ends) > 1 else ends[0]
    suppressed = file.metadata.get("tokenizer.ggml.suppress_tokens")
    if isinstance(suppressed, memoryview) and suppressed.format in ("i", "I"):
        rows = config.get_text_config().vocab_size
        made.suppress_tokens = [number for number in suppressed if 0 <= number < rows] or None
    for key, name in _SAMPLING.items():
        value = file.number(f"general.sampling.{key}")
        if value is not None and value >= 0:
            setattr(made, name, int(value) if name == "top_k" else float(value))
    if made.temperature:
        made.do_sample = True
    return made


def sampling_metadata(settings: GenerationConfig) -> Metadata:
    """Return the metadata of a model's own settings for sampling, if it samples, and of suppressed tokens."""
    values = {key: getattr(settings, name, None) for key, name in _SAMPLING.items()}
    if not settings.do_sample:
        values = {"penalty_repeat": values["penalty_repeat"]}
    elif values["temp"] is None:
        values["temp"] = 1.0
    found: Metadata = {
        f"general.sampling.{key}": int(value) if key == "top_k" else float(value)
        for key, value in values.items()
        if value is not None
    }
    if settings.suppress_tokens:
        found["tokenizer.ggml.suppress_tokens"] = list(map(int, settings.suppress_tokens))
    return found


_WRITTEN_SETTINGS = frozenset({
    *_SAMPLING.values(), "do_sample", "suppress_tokens", "bos_token_id", "eos_token_id", "pad_token_id",
    "decoder_start_token_id", "transformers_version", "_from_model_config", "max_length", "max_new_tokens", "use_cache",
    "cache_implementation",
})  # fmt: skip
"""Decoding settings that a file contains, or that do not choose tokens."""


def unwritten_settings(settings: GenerationConfig) -> list[str]:
    """Return a model's own decoding settings that a file does not contain."""
    own: Mapping[str, Any] = settings.to_diff_dict()
    return sorted(name for name, value in own.items() if value and name not in _WRITTEN_SETTINGS)


def check_formats(file: GgufFile) -> None:
    """Check that the formats of all tensors can be read. Raises CorruptWeightsError."""
    unknown = sorted({tensor.fmt.name for tensor in file.tensors.values()} - DEQUANTIZABLE)
    if unknown:
        raise CorruptWeightsError(
            tr("{file} has weights in {formats}, which this program cannot read.").format(
                file=file.files[0].name, formats=join_names(unknown)
            ),
            tr("Choose a file in another format, such as Q4_K_M or Q8_0."),
        )
