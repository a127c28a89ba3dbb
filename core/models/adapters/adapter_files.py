"""Read adapters without trusting them: folders of PEFT (adapter_config.json with safetensors) and GGUF files.

PEFT's format: https://huggingface.co/docs/peft/developer_guides/checkpoint. GGUF adapters: llama.cpp's
convert_lora_to_gguf.py and llama-adapter.cpp.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch
from safetensors import SafetensorError, safe_open

from decodescope.core.common.text import cut_short
from decodescope.core.errors import AdapterError
from decodescope.core.models.adapters.adapter_choice import (
    CONFIG_FILE,
    PICKLED_FILE,
    WEIGHTS_FILE,
    adapter_name,
    check_supported,
    missing_weights,
    read_adapter_config,
)
from decodescope.core.models.adapters.low_rank_path import LowRankFactors
from decodescope.core.models.gguf.adapter import read_gguf_adapter, unknown_tensor_error
from decodescope.core.models.gguf.file_names import is_gguf
from decodescope.core.models.gguf.tensor_operations import HeadCounts
from decodescope.core.models.model_files import (
    JsonObject,
    corrupt_weights_error,
    damage_description,
    is_file,
    pickled_weights_error,
)
from decodescope.core.parameter import short_repr
from decodescope.resources.language import tr

MAX_SHOWN_NAME = 80
"""Maximum characters of a name from a file in a sentence."""
_PREFIX = "base_model.model."
_PARTS = ("lora_A", "lora_B", "lora_embedding_A", "lora_embedding_B", "lora_magnitude_vector")
_QUICK_PATTERN = re.compile(r"(?:[^)]|\)(?![*+?{])){1,200}")
"""Regular expressions without repeated groups: those may take forever, and files may come from anywhere."""
_MAX_QUANTIFIERS = 3
_MAX_RANK, _MAX_ALPHA = 2**20, 2.0**64


FileStamp: TypeAlias = "tuple[tuple[int, int] | None, ...]"
"""Size and time of each file of an adapter; None for a missing one."""


@dataclass(frozen=True)
class AdapterWeights:
    """The content of an adapter, with names of a module's layers and parameters."""

    path: Path
    name: str
    kind: str
    """Kind of adapter and of file, for people: `LoRA`, `DoRA`, `LoRA (GGUF)`."""
    base: str
    """The model it was trained for, as its file says; empty if it does not."""
    layers: Mapping[str, LowRankFactors]
    """Factors by the name of the layer."""
    replacements: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """New values of whole parameters by name: modules to save, biases, embeddings."""
    stamp: str = ""
    """Hash of all tensors."""
    file_stamp: FileStamp = ()
    """Sizes and times of its files when it was read."""

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        own = sum(tensor.nbytes for tensor in self.replacements.values())
        return own + sum(factors.nbytes for factors in self.layers.values())

    @property
    def ranks(self) -> tuple[int, ...]:
        """All ranks that occur, ascending."""
        return tuple(sorted({factors.rank for factors in self.layers.values()}))


def read_adapter(path: Path, model_type: str, heads: tuple[int, int], allow_pickle: bool = False) -> AdapterWeights:
    """Read an adapter for a model of this type. `heads`: the numbers of heads of queries and of keys.

    Raises AdapterError, PickledWeightsError, ModelFileError, CorruptWeightsError.
    """
    file_stamp = read_file_stamp(path)  # before the content, which may be changed meanwhile
    with torch.inference_mode(False), torch.no_grad():
        found = _read_gguf(path, model_type, heads) if is_gguf(path) else _read_peft(path, allow_pickle)
        for name, factors in found.layers.items():
            scaled = factors.up * factors.scale
            _check_finite(found.name, name, (factors.down, scaled, factors.bias, factors.magnitude))
        for name, tensor in found.replacements.items():
            _check_finite(found.name, name, (tensor,))
        return replace(found, stamp=_hash_of(found), file_stamp=file_stamp)


def read_file_stamp(path: Path) -> FileStamp:
    """Return what identifies the content of an adapter's files without reading them. Never raises."""
    files = (path,) if is_gguf(path) else (path / name for name in (CONFIG_FILE, WEIGHTS_FILE, PICKLED_FILE))
    return tuple(map(_stamp_of, files))


def _stamp_of(file: Path) -> tuple[int, int] | None:
    try:
        about = file.stat()
    except (OSError, ValueError):
        return None
    return about.st_size, about.st_mtime_ns


def _check_finite(adapter: str, name: str, tensors: tuple[torch.Tensor | None, ...]) -> None:
    for tensor in tensors:
        if tensor is not None and not bool(torch.isfinite(tensor).all()):
            raise AdapterError(
                tr("The adapter {adapter} contains numbers that are not finite, in {name}.").format(
                    adapter=adapter, name=cut_short(name, MAX_SHOWN_NAME)
                ),
                tr("Its training failed, or the file is damaged. Choose another one."),
            )


def _hash_of(weights: AdapterWeights) -> str:
    total = hashlib.blake2b(digest_size=16)
    for name, factors in sorted(weights.layers.items()):
        total.update(f"{name} {factors.scale}".encode())
        for tensor in (factors.down, factors.up, factors.bias, factors.magnitude):
            if tensor is not None:
                total.update(tensor.contiguous().numpy().data)
    for name, tensor in sorted(weights.replacements.items()):
        total.update(name.encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


# PEFT


def _read_peft(folder: Path, allow_pickle: bool) -> AdapterWeights:
    config = read_adapter_config(folder)
    name = adapter_name(str(folder))
    check_supported(name, config)
    tensors = _tensors(folder, name, allow_pickle)
    return _sorted_tensors(folder, name, config, tensors)


def _tensors(folder: Path, name: str, allow_pickle: bool) -> dict[str, torch.Tensor]:
    file = folder / WEIGHTS_FILE
    if not is_file(file):
        return _pickled_tensors(folder, name, allow_pickle)
    try:
        with safe_open(file, framework="pt", backend="pread") as handle:
            return {key: handle.get_tensor(key) for key in handle.keys()}  # not a mapping
    except (SafetensorError, OSError, ValueError) as error:
        raise corrupt_weights_error(file, damage_description(file), str(error)) from error


def _pickled_tensors(folder: Path, name: str, allow_pickle: bool) -> dict[str, torch.Tensor]:
    file = folder / PICKLED_FILE
    if not is_file(file):
        raise missing_weights(name)
    if not allow_pickle:
        raise pickled_weights_error(name, file)
    try:
        loaded: dict[str, torch.Tensor] = dict(torch.load(file, map_location="cpu", weights_only=True))
    except Exception as error:  # pickles raise many types
        raise corrupt_weights_error(file, str(error).strip().partition("\n")[0], str(error)) from error
    return loaded


def _sorted_tensors(
    folder: Path, name: str, config: JsonObject, tensors: Mapping[str, torch.Tensor]
) -> AdapterWeights:  # fmt: skip
    parts: dict[str, dict[str, torch.Tensor]] = {}
    replacements: dict[str, torch.Tensor] = {}
    for key, tensor in tensors.items():
        found = _split_key(key)
        if not found.layer:
            raise unknown_tensor_error(name, key)
        if not tensor.is_floating_point():
            raise AdapterError(
                tr("The adapter {name} contains numbers of the type {dtype}, in {layer}.").format(
                    name=name, dtype=str(tensor.dtype).removeprefix("torch."), layer=cut_short(key, MAX_SHOWN_NAME)
                ),
                tr("Save it again in float32, float16 or bfloat16."),
            )
        if tensor.element_size() == 1:
            tensor = tensor.float()  # torch computes nothing in float8
        if found.part:
            parts.setdefault(found.layer, {})[found.part] = tensor
        else:
            replacements[found.layer] = tensor
    scales = _LayerScales(name, config)
    layers = {layer: _factors(name, layer, stored, scales) for layer, stored in parts.items()}
    if not layers and not replacements:
        raise AdapterError(
            tr("The adapter {name} contains no weights.").format(name=name),
            tr("Copy or download the complete adapter again."),
        )
    kind = "DoRA" if any(factors.magnitude is not None for factors in layers.values()) else "LoRA"
    base = config.get("base_model_name_or_path")
    return AdapterWeights(folder, name, kind, _shown_base(base), layers, replacements)


def _shown_base(base: object) -> str:
    """Return the stated name of the base model on one line, shortened; empty if it is no text."""
    return cut_short(" ".join(base.split()), MAX_SHOWN_NAME) if isinstance(base, str) else ""


class _TensorName(NamedTuple):
    layer: str
    """Name of a layer; of a whole parameter where `part` is empty."""
    part: str


def _split_key(key: str) -> _TensorName:
    """Take the name of a tensor apart: the layer, and which of its tensors."""
    names = [name for name in key.removeprefix(_PREFIX).split(".") if name != "base_layer"]
    at = next((place for place, name in enumerate(names) if name in _PARTS), None)
    if at is not None:
        is_bias = names[-1] == "bias"
        return _TensorName(".".join(names[:at]), names[at] + (".bias" if is_bias else ""))
    if "modules_to_save" in names:
        place = names.index("modules_to_save")
        names = names[:place] + names[place + (2 if len(names) > place + 2 else 1) :]
    return _TensorName(".".join(names), "")


class _LayerScales:
    """Rank and scale of each layer, by PEFT's rules."""

    def __init__(self, name: str, config: JsonObject) -> None:
        self._name, self._config = name, config
        self._is_stabilized = bool(config.get("use_rslora"))

    def of(self, layer: str) -> tuple[int, float]:
        """Return rank and scale of a layer. Raises AdapterError."""
        rank = self._value(layer, "rank_pattern", "r")
        alpha = self._value(layer, "alpha_pattern", "lora_alpha")
        if not isinstance(rank, int) or not 1 <= rank <= _MAX_RANK:
            raise AdapterError(
                tr("The adapter {name} states the rank {rank}.").format(name=self._name, rank=short_repr(rank)),
                tr("A rank is a positive whole number. Correct adapter_config.json, or copy it again."),
            )
        if not abs(alpha) <= _MAX_ALPHA:  # also if it is not a number (NaN)
            raise AdapterError(
                tr("The adapter {name} states the scale {alpha}.").format(name=self._name, alpha=short_repr(alpha)),
                tr("Correct lora_alpha in adapter_config.json, or copy the file again."),
            )
        return rank, alpha / math.sqrt(rank) if self._is_stabilized else alpha / rank

    def _value(self, layer: str, patterns: str, default: str) -> int | float:
        known = self._config.get(patterns)
        value = self._config.get(default, 8)
        if isinstance(known, dict):
            value = next((number for pattern, number in known.items() if _matches(pattern, layer)), value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise AdapterError(
                tr("{key} in adapter_config.json of {name} is not a number.").format(key=default, name=self._name),
                tr("Correct the value, or copy the file again."),
            )
        return value


def _matches(pattern: str, layer: str) -> bool:
    """Return whether a pattern names a layer: by its last names, or as a regular expression."""
    if layer == pattern or layer.endswith(f".{pattern}"):
        return True
    if not _QUICK_PATTERN.fullmatch(pattern) or sum(map(pattern.count, "*+?{")) > _MAX_QUANTIFIERS:
        return False
    try:
        return re.match(rf"(.*\.)?({pattern})$", layer) is not None
    except re.error:
        return False


def _factors(name: str, layer: str, stored: Mapping[str, torch.Tensor], scales: _LayerScales) -> LowRankFactors:
    shown = cut_short(layer, MAX_SHOWN_NAME)
    kind = "embedding_" if "lora_embedding_A" in stored or "lora_embedding_B" in stored else ""
    down, up = stored.get(f"lora_{kind}A"), stored.get(f"lora_{kind}B")
    if down is None or up is None:
        raise AdapterError(
            tr("The adapter {name} has only one of the two matrices for {layer}.").format(name=name, layer=shown),
            tr("Copy or download the complete adapter again."),
        )
    rank, scale = scales.of(layer)
    if down.dim() != 2 or up.dim() != 2 or len(down) != up.shape[1] or len(down) != rank:
        raise AdapterError(
            tr(
                "The adapter {name} has matrices of the shapes {down} and {up} for {layer}, whose rank is {rank}."
            ).format(name=name, down=list(down.shape), up=list(up.shape), layer=shown, rank=rank),
            tr("The file and adapter_config.json do not belong together. Copy or download both again."),
        )
    bias, magnitude = stored.get("lora_B.bias"), stored.get("lora_magnitude_vector")
    for vector in (bias, magnitude):
        if vector is not None and vector.numel() != len(up):
            raise AdapterError(
                tr("The adapter {name} has {count} numbers for {layer}, which has {wanted} outputs.").format(
                    name=name, count=vector.numel(), layer=shown, wanted=len(up)
                ),
                tr("Copy or download the complete adapter again."),
            )
    return LowRankFactors(
        down.float(), up.float(), scale, None if bias is None else bias.float().flatten(),
        None if magnitude is None else magnitude.float().flatten(),
    )  # fmt: skip


# GGUF


def _read_gguf(path: Path, model_type: str, heads: tuple[int, int]) -> AdapterWeights:
    name = adapter_name(str(path))
    stored = read_gguf_adapter(path, name, model_type, HeadCounts(*heads))
    layers = {layer: LowRankFactors(*factors) for layer, factors in stored.layers.items()}
    return AdapterWeights(path, name, "LoRA (GGUF)", _shown_base(stored.base), layers)
