"""Plan how to build a model from its folder: check config.json and permissions, and outline the module without
memory.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForSeq2SeqLM,
    AutoModelForSpeechSeq2Seq,
    PreTrainedConfig,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
)

from decodescope.core.errors import (
    ConfigInvalidError,
    CorruptWeightsError,
    ModelFileError,
    RemoteCodeError,
    UnknownArchitectureError,
)
from decodescope.core.explain.words import size
from decodescope.core.models.config_validation import (
    MODELOPT_FILE,
    external_attention_repository,
    impossible_value_reason,
    invalid_names_reason,
    missing_requirement,
    modelopt_quantization,
    unloadable_quantization,
)
from decodescope.core.models.gguf.file_names import is_gguf
from decodescope.core.models.gguf.gguf_file import GgufFile, read_gguf
from decodescope.core.models.gguf.model_config import build_config, check_formats, metadata_error
from decodescope.core.models.modalities import (
    OTHER_DRAFTS,
    TEXT,
    Modalities,
    is_draft_head,
    modalities_of,
    non_text_modality,
    not_text_reason,
)
from decodescope.core.models.model_entry import free_memory, read_config
from decodescope.core.models.model_files import (
    WeightFiles,
    check_folder,
    count_stored,
    find_weights,
    full_message,
    read_json,
    readable_reason,
)
from decodescope.resources.language import join_names, tr

if TYPE_CHECKING:
    from transformers.models.auto.auto_factory import _BaseAutoModelClass

    from decodescope.core.models.text import Network

_LANGUAGE_CLASSES = {
    *MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values(),
    *MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES.values(),
}
_WEIGHTS_PER_NUMBER = 8
"""Maximum number of weights per stored number: quantized formats store eight 4-bit weights in an int32."""
_EXTRA_NUMBERS = 2**24
"""Numbers that a module may compute in addition to its weights (masks, position tables)."""


BUILD_LOCK = threading.RLock()
"""Held while transformers builds a module, which changes process-wide settings: of two modules built at the same time,
one may end up without its tied weights.
"""


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """The plan of a model: transformers' config and the matching auto class."""

    path: Path
    config: PreTrainedConfig
    auto: type[_BaseAutoModelClass]
    allow_remote_code: bool
    modalities: Modalities = TEXT
    """Modalities the model reads: text, audio, images."""
    gguf: GgufFile | None = None
    """The headers of the GGUF file that it is in; None for a folder in Hugging Face's layout."""

    @property
    def gguf_format(self) -> str:
        """The mixture of formats of its GGUF file; empty for a folder."""
        return "" if self.gguf is None else self.gguf.format_name

    def outline(self, dtype: torch.dtype) -> Network:
        """Build the module without memory (torch's meta device). Raises ConfigInvalidError if that fails."""
        try:
            with BUILD_LOCK, torch.device("meta"):
                outline: Network = self.auto.from_config(
                    self.config, dtype=dtype, trust_remote_code=self.allow_remote_code
                )
                return outline
        except Exception as error:  # architectures raise different exceptions for inconsistent values
            if self.gguf is not None:
                raise metadata_error(self.gguf, error) from error
            raise _build_error(self.path, error) from error

    def check_gguf_size(self, outline: Network) -> None:
        """Check that the weights and tables of the module are not many more than the numbers in the GGUF file, before
        memory is allocated. Raises CorruptWeightsError.
        """
        assert self.gguf is not None
        promised = sum(tensor.numel() for tensor in (*outline.parameters(), *outline.buffers()))
        if promised > 2 * self.gguf.numbers + _EXTRA_NUMBERS:
            raise CorruptWeightsError(
                tr(
                    "The metadata of {file} describe a model of {promised:,} numbers, but it contains {there:,}: a "
                    "length such as {key} is wrong."
                ).format(
                    file=self.path.name, promised=promised, there=self.gguf.numbers,
                    key=f"{self.gguf.architecture}.context_length",
                ),
                tr("Copy or download the file again."),
            )  # fmt: skip

    def check_size(self, outline: Network, weights: WeightFiles) -> None:
        """Check that the files contain as many weights as the config describes, before memory is allocated.

        Raises CorruptWeightsError.
        """
        stored = count_stored(weights)
        there = stored.numbers if stored is not None else weights.bytes
        promised = sum(tensor.numel() for tensor in (*outline.parameters(), *outline.buffers()))
        if promised <= _WEIGHTS_PER_NUMBER * there + _EXTRA_NUMBERS:
            return
        raise CorruptWeightsError(
            tr(
                "The weights in {folder} do not match its config.json, which describes {promised:,} "
                "numbers; the files contain {there:,} ({free} of memory are free)."
            ).format(folder=self.path.name, promised=promised, there=there, free=size(free_memory())),
            tr("Copy or download the complete model again."),
        )


def plan_model(path: Path, allow_remote_code: bool) -> ModelPlan:
    """Check everything that can be checked before weights are read.

    Raises ConfigMissingError, ModelFileError, ConfigInvalidError, RemoteCodeError, UnknownArchitectureError.
    """
    if is_gguf(path):
        return _plan_gguf(path)
    check_folder(path)
    raw = read_config(path)
    _check_config(invalid_names_reason(raw), path)
    _check_reads_text(raw, path)
    _check_permission(raw, path, allow_remote_code)
    _check_architecture(raw, path, allow_remote_code)
    _check_config(impossible_value_reason(raw, _stored_tensors(path)), path)
    _check_quantization(raw, path)
    config = _build_config(path, allow_remote_code)
    _check_requirement(config, path)
    config.return_dict = True  # regardless of the folder's config: it affects only the form of the output
    _check_purpose(raw, config, path)
    reads = modalities_of(raw)
    return ModelPlan(path, config, _auto_class(config, reads), allow_remote_code, reads)


def _plan_gguf(path: Path) -> ModelPlan:
    file = read_gguf(path)
    check_formats(file)
    config = build_config(file)
    config.return_dict = True
    return ModelPlan(path, config, _auto_class(config, TEXT), False, gguf=file)


def _auto_class(config: PreTrainedConfig, modalities: Modalities) -> type[_BaseAutoModelClass]:
    if modalities.sound:
        return AutoModelForSpeechSeq2Seq
    if modalities.picture:
        return AutoModelForImageTextToText
    return AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM


def _check_config(problem: str | None, path: Path) -> None:
    if problem is not None:
        raise ConfigInvalidError(
            tr("{file} cannot be loaded: {trouble}.").format(file=path.name, trouble=problem),
            tr("Copy or download config.json again, or correct the value."),
        )


def _check_quantization(raw: Mapping[str, object], path: Path) -> None:
    reason = unloadable_quantization(raw)
    if reason is None and (path / MODELOPT_FILE).is_file():
        with suppress(ModelFileError, OSError):
            reason = modelopt_quantization(read_json(path / MODELOPT_FILE))
    if reason is not None:
        raise ConfigInvalidError(
            tr("{file} cannot be loaded: {trouble}.").format(file=path.name, trouble=reason),
            tr("Choose the model in its original form, or a version quantized with GPTQ, AWQ or bitsandbytes."),
        )


def _check_requirement(config: PreTrainedConfig, path: Path) -> None:
    if (missing := missing_requirement(config)) is not None:
        raise ConfigInvalidError(
            tr("The quantized weights of {file} cannot be loaded on this computer: {reason}").format(
                file=path.name, reason=missing
            ),
            tr("Install what is missing, or choose the original model."),
        )


def _check_reads_text(raw: Mapping[str, object], path: Path) -> None:
    if is_draft_head(raw):
        raise UnknownArchitectureError(
            tr("{folder} is only a draft head: it predicts from another model's hidden states and cannot "
                "read text itself.").format(folder=path.name),
            tr(OTHER_DRAFTS),
        )  # fmt: skip


def _stored_tensors(path: Path) -> int | None:
    try:
        stored = count_stored(find_weights(path))
    except CorruptWeightsError:  # reported when the weights are read
        return None
    return stored.tensors if stored is not None else None


def _check_permission(raw: Mapping[str, object], path: Path, allowed: bool) -> None:
    if allowed:
        return
    remedy = tr("Allow it for this model only if you trust its source, or choose a model that transformers supports.")
    code = raw.get("auto_map")
    if isinstance(code, dict) and not _is_supported(raw):
        raise RemoteCodeError(
            tr(
                "{file} includes its own program code ({code}), which would run on this computer with your permissions."
            ).format(file=path.name, code=join_names(sorted(code))),
            remedy,
        )
    if repository := external_attention_repository(raw):
        raise RemoteCodeError(
            tr(
                "{file} requires compiled code from “{repository}” for its attention, which would run "
                "on this computer with your permissions."
            ).format(file=path.name, repository=repository),
            remedy,
        )


def _is_supported(raw: Mapping[str, object]) -> bool:
    kind = raw.get("model_type")
    if modalities_of(raw).media:
        return kind in MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES or kind in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    return kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or kind in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES


def _check_architecture(raw: Mapping[str, object], path: Path, allow_remote_code: bool) -> None:
    kind = raw.get("model_type")
    if _is_supported(raw) or (allow_remote_code and "auto_map" in raw):
        return
    if kind in CONFIG_MAPPING:
        raise _no_text_error(path.name, kind, non_text_modality(raw) or _modality_by_class(kind))
    cause = (
        tr("{folder} has the model type “{kind}”, with which the installed transformers cannot generate text.")
        if kind
        else tr("{folder} does not state its model type, so the installed transformers cannot generate text with it.")
    )
    raise UnknownArchitectureError(
        cause.format(folder=path.name, kind=kind),
        tr("Update transformers, or choose a decoder-only or encoder–decoder language model."),
    )


def _modality_by_class(kind: object) -> str | None:
    """Return the media input of a model type according to transformers' lists of classes: audio, images, or None."""
    if kind in MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES:
        return "hears"
    return "sees" if kind in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES else None


def _build_config(path: Path, allow_remote_code: bool) -> PreTrainedConfig:
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            path, trust_remote_code=allow_remote_code, local_files_only=True
        )
        return config
    except Exception as error:  # validators, missing libraries, and the arithmetic of each model family
        raise _build_error(path, error) from error


def _check_purpose(raw: Mapping[str, object], config: PreTrainedConfig, path: Path) -> None:
    """Refuse encoder–decoders whose encoder does not read text; they are in the table of decoders only (Musicgen)."""
    kind = raw.get("model_type")
    if (
        not modalities_of(raw).media
        and config.is_encoder_decoder
        and _is_supported(raw)
        and kind not in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    ):
        raise _no_text_error(path.name, kind, non_text_modality(raw))


def check_reads_text(network: Network) -> None:
    """Check that a transformers module reads text. Raises UnknownArchitectureError.

    Modules that transformers lists as language models do, whatever else they accept; third-party classes are trusted.
    """
    kind, listed = network.config.model_type, type(network).__name__
    if modalities_of(network.config.to_dict()).needs:
        raise UnknownArchitectureError(
            tr("{model} needs audio or an image as input, but was passed without its processor.").format(model=listed),
            tr("Pass its processor too (decodescope.wrap(…, processor=…))."),
        )
    if network.main_input_name == "input_ids" and (
        kind not in CONFIG_MAPPING or listed in _LANGUAGE_CLASSES or _reads_text_beside_media(network)
    ):
        return
    sense = non_text_modality(network.config.to_dict())
    if network.main_input_name != "input_ids" or sense is not None:
        raise _no_text_error(listed, kind, sense)


def _reads_text_beside_media(network: Network) -> bool:
    """Return whether a module that accepts images or audio reads text alone as well, so that `load` of its folder
    without a processor accepts it.
    """
    kind, listed = network.config.model_type, type(network).__name__
    raw = {**network.config.to_dict(), "architectures": [listed]}
    return listed == MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.get(kind) and _is_supported(raw)


def _no_text_error(name: str, kind: object, modality: str | None) -> UnknownArchitectureError:
    return UnknownArchitectureError(
        not_text_reason(name, kind, modality), tr("Choose a decoder-only or encoder–decoder language model.")
    )


def _build_error(path: Path, error: Exception) -> ConfigInvalidError:
    if isinstance(error, ImportError):
        remedy = tr("Install the library named in the details, or choose another model.")
    else:
        remedy = tr("Copy or download config.json again, or correct the value.")
    return ConfigInvalidError(
        tr("The config.json of {file} does not describe a valid model: {reason}").format(
            file=path.name, reason=readable_reason(error)
        ),
        remedy,
        full_message(error),
    )
