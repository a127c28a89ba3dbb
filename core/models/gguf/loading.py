"""Load a model from a GGUF file: its weights stay in the blocks of the file, which is mapped, not read."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from transformers import PreTrainedConfig
from transformers.pytorch_utils import Conv1D
from transformers.quantizers.auto import register_quantization_config, register_quantizer

from decodescope.core.errors import CorruptWeightsError
from decodescope.core.models.gguf.architectures import Config
from decodescope.core.models.gguf.block_layers import GgufEmbedding, GgufExperts, GgufLinear, GgufModule, GgufParameter
from decodescope.core.models.gguf.gguf_file import GgufFile
from decodescope.core.models.gguf.model_config import generation_config
from decodescope.core.models.gguf.tensor_names import PARTS, parameter_names
from decodescope.core.models.gguf.tensor_operations import HeadCounts, join_parts
from decodescope.core.models.quantized.packed_loading import (
    PackedConfig,
    PackedQuantizer,
    embedding_factor,
    expert_tensors,
)
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from transformers.utils.quantization_config import QuantizationMethod

    from decodescope.core.models.text import Network

_METHOD = "decodescope_gguf"
_WEIGHT_USES = re.compile(r"\bself\.(\w+)\.weight(?=\s*@)|@\s*self\.(\w+)\.weight\b")
"""Products with a layer's weights in source text."""


def outline_blocks(file: GgufFile, network: Network, stored: Mapping[str, list[GgufParameter]]) -> None:
    """Replace the layers of a network on torch's meta device whose weights are stored in blocks."""
    words = network.get_input_embeddings()
    for name, child in list(network.named_modules()):
        source = _tied_source(network, f"{name}.weight")
        parts = stored.get(f"{name}.weight") or stored.get(source)
        if parts is None or len(parts) > 1 or parts[0].fmt.name == "F32" or _is_read_by_parent(network, name):
            continue
        made = _replacement(child, child is words or bool(source))
        if made is not None:
            made.file_format = file.format_name
            network.set_submodule(name, made)


def stored_parameters(file: GgufFile, config: PreTrainedConfig) -> dict[str, list[GgufParameter]]:
    """Return the stored tensors of each parameter; of experts' gates and ups, two."""
    heads = HeadCounts.of(config.get_text_config(decoder=True))
    found: dict[str, dict[str, GgufParameter]] = {}
    for name, target in parameter_names(file).items():
        stored = GgufParameter(file, file.tensors[name], target.operation, heads)
        found.setdefault(target.name, {})[target.part] = stored
    return {name: [parts[part] for part in PARTS if part in parts] for name, parts in found.items()}


def check_shapes(file: GgufFile, outline: Network, stored: Mapping[str, list[GgufParameter]]) -> None:
    """Check that every stored tensor has the shape that the module requires. Raises CorruptWeightsError."""
    expected = {name: tuple(tensor.shape) for name, tensor in (*outline.named_parameters(), *outline.named_buffers())}
    for name, parts in stored.items():
        if name not in expected:
            if name.startswith("lm_head"):
                continue
            raise _mismatch(file, tr("the model has no parameter {name}").format(name=name))
        there = _joined_shape(parts)
        if there != expected[name]:
            raise _mismatch(
                file,
                tr("{name} has the shape {there} instead of {wanted}").format(
                    name=parts[0].tensor.name, there=list(there or parts[-1].shape), wanted=list(expected[name])
                ),
            )


def _joined_shape(parts: list[GgufParameter]) -> tuple[int, ...] | None:
    """Return the shape of a parameter; None if its parts do not fit together."""
    outlines = [torch.empty(part.shape, device="meta") for part in parts]
    with suppress(RuntimeError, IndexError, ValueError):
        return tuple(outlines[0].shape if len(parts) == 1 else join_parts(outlines, parts[0].operation).shape)
    return None


def load_blocks(file: GgufFile, config: PreTrainedConfig, outline: Network) -> tuple[Network, Any]:
    """Load the module on the CPU with its matrices in blocks, computing in float32 around them, with transformers'
    report of key names. Raises CorruptWeightsError, and transformers' own exceptions.
    """
    stored = stored_parameters(file, config)
    check_shapes(file, outline, stored)
    network, report = _read(file, config, outline, dict(stored), torch.float32, GgufConfig(file, stored))
    PackedQuantizer.clean_up(network)
    return network, report


def load_floats(
    file: GgufFile, config: PreTrainedConfig, outline: Network, dtype: torch.dtype
) -> tuple[Network, Any]:  # fmt: skip
    """Load the module with all weights converted to `dtype`."""
    stored = stored_parameters(file, config)
    check_shapes(file, outline, stored)
    return _read(file, config, outline, {name: _Floats(parts, dtype) for name, parts in stored.items()}, dtype, None)


def _read(
    file: GgufFile, config: PreTrainedConfig, outline: Network, tensors: dict[str, Any], dtype: torch.dtype,
    packing: GgufConfig | None,
) -> tuple[Network, Any]:  # fmt: skip
    more: dict[str, Any] = {"quantization_config": packing} if packing is not None else {}
    loaded: Any = type(outline).from_pretrained(
        None, config=config, state_dict={name: _CarriedValue(value) for name, value in tensors.items()}, dtype=dtype,
        output_loading_info=True, generation_config=generation_config(file, config), **more,
    )  # fmt: skip
    network: Network = loaded[0]
    network.config._name_or_path = network.name_or_path = str(file.files[0])
    return network, loaded[1]


class _Floats:
    """Weights that are converted when they are read."""

    def __init__(self, parts: list[GgufParameter], dtype: torch.dtype) -> None:
        self.parts, self.dtype = parts, dtype

    def read(self) -> torch.Tensor:
        """Return the parameter."""
        return read_floats(self.parts, self.dtype)


def read_floats(parts: list[GgufParameter], dtype: torch.dtype) -> torch.Tensor:
    """Return a parameter of its stored tensors."""
    found = [part.floats(dtype) for part in parts]
    return found[0].contiguous() if len(found) == 1 else join_parts(found, parts[0].operation)


class _CarriedValue:
    """Carries a value through transformers' loader, which indexes it with `...` and moves the result."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getitem__(self, everything: object) -> Any:
        return self.value.read() if isinstance(self.value, _Floats) else self

    def to(self, **_: object) -> _CarriedValue:
        """Ignore the device and dtype that transformers requests."""
        return self


@register_quantization_config(_METHOD)
class GgufConfig(PackedConfig):
    """Passes the stored tensors to the quantizer; removed from the model's config after loading."""

    def __init__(self, file: GgufFile, stored: Mapping[str, list[GgufParameter]]) -> None:
        super().__init__("gguf")
        self.quant_method = cast("QuantizationMethod", _METHOD)  # transformers' type lists only its own methods
        self.file, self.stored = file, stored

    def __deepcopy__(self, memo: object) -> GgufConfig:
        return self

    def is_shared(self, target: str, source: str) -> bool:
        """Return whether a weight that may be tied to another is; a GGUF file has a tensor of its own for it if not."""
        return target not in self.stored or source not in self.stored

    def to_dict(self) -> Config:
        """Return what transformers compares and logs."""
        return {"quant_method": _METHOD}


@register_quantizer(_METHOD)
class GgufQuantizer(PackedQuantizer):
    """Replaces layers before weights are read, and gives each the blocks that are stored for it."""

    def _process_model_before_weight_loading(self, model: Network, **_: object) -> Network:
        given: Any = self.quantization_config
        outline_blocks(given.file, model, given.stored)
        names = {module: name for name, module in model.named_modules()}
        self._expert_tensors = {
            f"{names[module]}.{name}": (module, name) for module, name, _ in expert_tensors(model, transposed=True)
        }
        if self._expert_tensors:
            model.set_experts_implementation("eager")
        self._untie(model)
        return model

    def pack(self, model: Network, name: str, value: Any) -> dict[str, torch.Tensor]:
        """Give one weight to the modules that hold it; return the weights that transformers must set itself."""
        parts: list[GgufParameter] = value.value if isinstance(value, _CarriedValue) else value
        if name in self._expert_tensors:
            module, own = self._expert_tensors[name]
            del module._parameters[own]
            bank = GgufExperts()
            bank.set_blocks(parts)
            module.add_module(own, bank)
            return {}
        left: dict[str, torch.Tensor] = {}
        for other in self._tied_names.get(name, (name,)):
            owner = model.get_submodule(other.rpartition(".")[0])
            if isinstance(owner, GgufModule) and other.endswith(".weight"):
                owner.set_blocks(parts[0])
            else:
                left[other] = read_floats(parts, torch.float32)
        return left

    def param_needs_quantization(self, model: Any, param_name: str, **_: object) -> bool:
        """Return whether `pack` handles a weight: all of them, because all are stored in the file's own way."""
        return True


def _tied_source(model: Network, name: str) -> str:
    tied: Mapping[str, str] = model.all_tied_weights_keys
    return tied.get(name, "")


def _is_read_by_parent(network: Network, name: str) -> bool:
    """Return whether the module around a layer computes with its weights itself instead of calling it (the projection
    of Mamba's time steps).
    """
    parent, _, own = name.rpartition(".")
    kind: Any = type(network.get_submodule(parent))
    return bool(parent) and own in _weights_read_by(kind)


@cache
def _weights_read_by(kind: Any) -> frozenset[str]:
    """Return the names of the layers whose weights a class multiplies, by its source."""
    names: set[str] = set()
    for function in vars(kind).values():
        if inspect.isfunction(function) and not function.__name__.startswith("__"):
            with suppress(OSError, TypeError):  # a class without source
                names |= {own for pair in _WEIGHT_USES.findall(inspect.getsource(function)) for own in pair if own}
    return frozenset(names)


def _replacement(child: nn.Module, reads_words: bool) -> GgufModule | None:
    if type(child) is nn.Linear:
        return GgufLinear(child.out_features, child.in_features, child.bias)
    if type(child) is Conv1D:
        inputs, outputs = child.weight.shape
        return GgufLinear(outputs, inputs, child.bias, transposed=True)
    if isinstance(child, nn.Embedding) and reads_words:
        factor = embedding_factor(child)
        rows, width = child.weight.shape
        if factor is not None:
            return GgufEmbedding(rows, width, child.weight.dtype, child.padding_idx, factor)
    return None


def _mismatch(file: GgufFile, reason: str) -> CorruptWeightsError:
    return CorruptWeightsError(
        tr("The weights in {file} do not match its metadata: {reason}.").format(file=file.files[0].name, reason=reason),
        tr("Copy or download the file again."),
    )
