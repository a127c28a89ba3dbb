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

from core.models.quantized.packed_layers import PackedModule, quantize_matrix
from core.models.quantized.replace_modules import expert_tensors, replace_experts, replace_layers
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
        self._tied_names: dict[str, tuple[str, ...]] = {}
        """Names of weights that share their numbers, by each of them."""
        self._expert_tensors: dict[str, tuple[nn.Module, str]] = {}

    def _process_model_before_weight_loading(self, model: Network, **_: object) -> Network:
        replace_layers(model, self.quantization_config.kind)
        names = {module: name for name, module in model.named_modules()}
        self._expert_tensors = {f"{names[module]}.{name}": (module, name) for module, name, _ in expert_tensors(model)}
        self._untie(model)
        return model

    def _untie(self, model: Network) -> None:
        """Take weights that are shared and packed out of transformers' hands, which would tie parameters; what is added
        (BERT's and BLIP's shared bias) is not packed."""
        tied: dict[str, str] = model.all_tied_weights_keys
        for target, source in list(tied.items()):
            if not target.endswith(".weight"):
                continue
            if isinstance(_owning_module(model, target), PackedModule) or isinstance(
                _owning_module(model, source), PackedModule
            ):
                del tied[target]
                group = tuple(dict.fromkeys((*self._tied_names.get(source, (source,)), target)))
                self._tied_names.update(dict.fromkeys(group, group))

    def param_needs_quantization(self, model: PreTrainedModel, param_name: str, **_: object) -> bool:
        """Whether `pack` takes a weight."""
        return (
            param_name in self._expert_tensors
            or param_name in self._tied_names
            or (param_name.endswith(".weight") and isinstance(_owning_module(model, param_name), PackedModule))
        )

    def get_quantize_ops(self) -> ConversionOps:
        """What is done with it."""
        return _PackOperation(self)

    def pack(self, model: Network, name: str, value: torch.Tensor | LazyWeights) -> dict[str, torch.Tensor]:
        """Pack one weight into the modules that hold it; what transformers shall still set itself is given back."""
        if name in self._expert_tensors:
            replace_experts(*self._expert_tensors[name], PACKED[self.quantization_config.kind]).pack(_read_fully(value))
            return {}
        rows = value.stored if isinstance(value, LazyWeights) else value
        names = self._tied_names.get(name, (name,))
        owners = [(other, _owning_module(model, other)) for other in names]
        pack_all([module for _, module in owners if isinstance(module, PackedModule)], rows)
        return {other: _read_fully(value) for other, module in owners if not isinstance(module, PackedModule)}

    def loaded_names(self, name: str) -> tuple[str, ...]:
        """Everything that is there once `name` was read."""
        return self._tied_names.get(name, (name,))

    @staticmethod
    def clean_up(model: Network) -> None:
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


class _PackOperation(ConversionOps):
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
            more["missing_keys"].difference_update(self._quantizer.loaded_names(name))
        return left


def pack_all(modules: Sequence[PackedModule], rows: Any) -> None:
    """Pack the same rows into each of them; read once where all keep them in eight bits."""
    if len(modules) == 1:
        modules[0].pack(rows)
        return
    numbers, scales = quantize_matrix(rows)
    for module in modules:
        module.set_quantized(numbers, scales)


def _read_fully(value: torch.Tensor | LazyWeights) -> torch.Tensor:
    return value.stored[...].float() if isinstance(value, LazyWeights) else value


def _owning_module(model: nn.Module, name: str) -> nn.Module:
    return model.get_submodule(name.rpartition(".")[0])
