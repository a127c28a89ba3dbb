"""transformers' loader with packing on the way: each weight is packed as it is read, and its floats are forgotten.

transformers knows how the names and shapes of a checkpoint become those of a module (merged experts, split projections)
and asks a registered quantizer what to do with each weight; this is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from transformers.core_model_loading import ConversionOps
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from core.models.quantized.packed_layers import Packed, quantize
from core.models.quantized.replace_modules import banks, put_bank, swap
from core.models.quantized.tensor_files import LazyWeights
from core.models.quantized.weight_formats import PACKED

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel
    from transformers.utils.quantization_config import QuantizationMethod

    from core.models.hf_protocols import Network

_METHOD = "decodescope"


@register_quantization_config(_METHOD)
class PackedConfig(QuantizationConfigMixin):
    """Which kind is wanted; travels to the quantizer, and is taken off the model's configuration after loading."""

    def __init__(self, kind: str) -> None:
        self.quant_method = cast("QuantizationMethod", _METHOD)  # transformers lists its own methods only
        self.kind = kind


@register_quantizer(_METHOD)
class PackedQuantizer(HfQuantizer):
    """Replaces layers before weights are read, and packs what is read for them."""

    quantization_config: PackedConfig

    def __init__(self, quantization_config: PackedConfig, **more: object) -> None:
        super().__init__(quantization_config, **more)
        self._together: dict[str, tuple[str, ...]] = {}
        """Names of weights that share their numbers, by each of them."""
        self._banks: dict[str, tuple[nn.Module, str]] = {}

    def _process_model_before_weight_loading(self, model: Network, **_: object) -> Network:
        swap(model, self.quantization_config.kind)
        names = {module: name for name, module in model.named_modules()}
        self._banks = {f"{names[module]}.{name}": (module, name) for module, name, _ in banks(model)}
        self._untie(model)
        return model

    def _untie(self, model: Network) -> None:
        """Take weights that are shared and packed out of transformers' hands, which would tie parameters; what is added
        (BERT's and BLIP's shared bias) is not packed."""
        tied: dict[str, str] = model.all_tied_weights_keys
        for target, source in list(tied.items()):
            if not target.endswith(".weight"):
                continue
            if isinstance(_owner(model, target), Packed) or isinstance(_owner(model, source), Packed):
                del tied[target]
                group = tuple(dict.fromkeys((*self._together.get(source, (source,)), target)))
                self._together.update(dict.fromkeys(group, group))

    def param_needs_quantization(self, model: PreTrainedModel, param_name: str, **_: object) -> bool:
        """Whether `pack` takes a weight."""
        return (
            param_name in self._banks
            or param_name in self._together
            or (param_name.endswith(".weight") and isinstance(_owner(model, param_name), Packed))
        )

    def get_quantize_ops(self) -> ConversionOps:
        """What is done with it."""
        return _Pack(self)

    def pack(self, model: Network, name: str, value: torch.Tensor | LazyWeights) -> dict[str, torch.Tensor]:
        """Pack one weight into the modules that hold it; what transformers shall still set itself is given back."""
        if name in self._banks:
            put_bank(*self._banks[name], PACKED[self.quantization_config.kind]).fill(_whole(value))
            return {}
        rows = value.stored if isinstance(value, LazyWeights) else value
        names = self._together.get(name, (name,))
        owners = [(other, _owner(model, other)) for other in names]
        fill_all([module for _, module in owners if isinstance(module, Packed)], rows)
        return {other: _whole(value) for other, module in owners if not isinstance(module, Packed)}

    def names_with(self, name: str) -> tuple[str, ...]:
        """Everything that is there once `name` was read."""
        return self._together.get(name, (name,))

    @staticmethod
    def forget(model: Network) -> None:
        """Take off what transformers wrote into a model and its configuration: it is as its folder says again."""
        quantizer: Any = model.hf_quantizer
        quantizer.remove_quantization_config(model)

    def is_serializable(self) -> bool:
        """Nothing is written in this form."""
        return False

    @property
    def is_trainable(self) -> bool:
        """Whole numbers have no gradients."""
        return False


class _Pack(ConversionOps):
    """One weight on its way from the file into its module."""

    def __init__(self, quantizer: PackedQuantizer) -> None:
        self._quantizer = quantizer

    def convert(  # type: ignore[override]  # transformers takes single tensors too
        self, input_dict: Mapping[str, Any], source_patterns: list[str], target_patterns: list[str], **more: Any
    ) -> dict[str, torch.Tensor]:
        """Called by transformers with {name: tensor or [tensor]}; gives back what it shall set itself."""
        left: dict[str, torch.Tensor] = {}
        for name, value in input_dict.items():
            single = value[0] if isinstance(value, list) else value
            left.update(self._quantizer.pack(more["model"], name, single))
            more["missing_keys"].difference_update(self._quantizer.names_with(name))
        return left


def fill_all(modules: Sequence[Packed], rows: Any) -> None:
    """Pack the same rows into each of them; read once where all keep them in eight bits."""
    if len(modules) == 1:
        modules[0].fill(rows)
        return
    numbers, scales = quantize(rows)
    for module in modules:
        module.take(numbers, scales)


def _whole(value: torch.Tensor | LazyWeights) -> torch.Tensor:
    return value.stored[...].float() if isinstance(value, LazyWeights) else value


def _owner(model: nn.Module, name: str) -> nn.Module:
    return model.get_submodule(name.rpartition(".")[0])
