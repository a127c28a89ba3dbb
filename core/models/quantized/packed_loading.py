"""From a folder to a module with packed weights, layer by layer: floats and packed numbers never lie side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from transformers import GenerationConfig
from transformers.core_model_loading import ConversionOps
from transformers.pytorch_utils import Conv1D
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from core.errors import UnpackableError
from core.models.config_validation import PACKED
from core.models.lazy_import import load_state_dict
from core.models.load_plan import ModelPlan
from core.models.model_files import WeightFiles
from core.models.quantized.packed_layers import (
    PackedEmbedding,
    PackedExperts,
    PackedLinear,
    PackedModule,
    quantize_matrix,
)
from core.models.quantized.tensor_files import LazyWeights, stored_tensors
from core.models.text_decoder import as_encoder_decoder, dummy_encoder_outputs
from resources.language import tr

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel
    from transformers.utils.quantization_config import QuantizationMethod

    from core.models.text import Network


_EXPERT_NAMES = ("gate_up_proj", "up_proj", "down_proj")
"""What transformers calls the tensors [experts, outputs, inputs] of a mixture's experts."""
_MIN_FRACTION = 0.5
"""Share of the weights that packing has to reach, to be worth its name."""


def replace_layers(network: Network, kind: str) -> None:
    """Replace linear layers, tables of words and experts of a network on torch's meta device.

    Norms, tables of positions, routers and convolutions stay as they are. Embedding and head have eight bits in any
    case: every choice rests on them. Raises UnpackableError where that leaves most weights unpacked.
    """
    before = sum(p.numel() for p in network.parameters())
    head, words = network.get_output_embeddings(), network.get_input_embeddings()
    for parent, name, child in list(_children(network)):
        packed = _packed_embedding(child, words) or _packed_layer(child, 8 if child is head else PACKED[kind])
        if packed is not None:
            setattr(parent, name, packed)
    if any(expert_tensors(network)):
        network.set_experts_implementation("eager")  # expert by expert: others want one tensor of them all
    reached = sum(m.weight.numel() for m in network.modules() if isinstance(m, PackedModule))
    reached += sum(bank.numel() for _, _, bank in expert_tensors(network))
    if reached < _MIN_FRACTION * before:
        raise UnpackableError(
            tr("{model} keeps most of its weights in layers that cannot be kept in {kind}.").format(
                model=type(network).__name__, kind=kind
            ),
            tr("Choose bfloat16 or float32 weights for it."),
        )


def expert_tensors(network: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:
    """Every bank of experts that is still one tensor: the module that holds it, its name there, the tensor."""
    for module in network.modules():
        for name in _EXPERT_NAMES:
            tensor = module._parameters.get(name)
            if tensor is not None and tensor.dim() == 3 and not _is_transposed(module):
                yield module, name, tensor


def replace_experts(module: nn.Module, name: str, bits: int) -> PackedExperts:
    """A packed bank in the place of a module's tensor `name`, still empty."""
    tensor = module._parameters.pop(name)
    assert tensor is not None
    experts, outputs, inputs = tensor.shape
    bank = PackedExperts(experts, outputs, inputs, bits)
    module.add_module(name, bank)
    return bank


def _is_transposed(module: nn.Module) -> bool:
    """Whether its experts are kept as [inputs, outputs], which is multiplied otherwise."""
    return bool(vars(module).get("is_transposed", False))


def _children(network: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    for parent in network.modules():
        for name, child in parent.named_children():
            yield parent, name, child


def _packed_layer(child: nn.Module, bits: int) -> PackedModule | None:
    """What stands for a module; None for one that stays."""
    if type(child) is nn.Linear:
        return PackedLinear(child.out_features, child.in_features, bits, child.bias)
    if type(child) is Conv1D:
        inputs, outputs = child.weight.shape
        return PackedLinear(outputs, inputs, bits, child.bias, transposed=True)
    return None


def _packed_embedding(child: nn.Module, words: nn.Module) -> PackedModule | None:
    """What stands for a table of words; tables of positions are short, and read in ways of their own."""
    if not isinstance(child, nn.Embedding) or child.weight.shape != words.weight.shape:
        return None
    factor = _embedding_factor(child)
    rows, width = child.weight.shape
    return None if factor is None else PackedEmbedding(rows, width, child.weight.dtype, child.padding_idx, factor)


def _embedding_factor(table: nn.Embedding) -> float | None:
    """What a table's rows are multiplied by (Gemma, BART); None for a table of a kind not known here."""
    if type(table) is nn.Embedding:
        return 1.0
    factor = vars(table).get("scalar_embed_scale", vars(table).get("embed_scale"))
    return float(factor) if isinstance(factor, (int, float)) else None


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


LoadingReport = Mapping[str, Iterable[str | tuple[object, ...]]]


def load_packed(plan: ModelPlan, outline: Network, weights: WeightFiles, kind: str) -> tuple[Network, LoadingReport]:
    """The module on the CPU, computing in float32 around its packed layers, and transformers' report of the names.

    Raises UnpackableError, and what transformers raises.
    """
    check_not_quantized(plan)
    network, report = read_tensors(plan, outline, _tensors_to_read(outline, weights), torch.float32, PackedConfig(kind))
    PackedQuantizer.clean_up(network)
    _check_runs(as_encoder_decoder(network), kind)
    return network, report


def outline_packed(plan: ModelPlan, outline: Network, kind: str) -> None:
    """Make of a module without memory what `load_packed` would make of it. Raises UnpackableError."""
    check_not_quantized(plan)
    replace_layers(outline, kind)
    for module, name, _ in list(expert_tensors(outline)):
        replace_experts(module, name, PACKED[kind])


def load_converted(
    plan: ModelPlan, outline: Network, weights: WeightFiles, dtype: torch.dtype
) -> tuple[Network, LoadingReport]:
    """The module in another float type than its files have, which would lie in memory beside it if they were mapped."""
    return read_tensors(plan, outline, dict(stored_tensors(weights, read_dtype=dtype)), dtype, None)


def check_not_quantized(plan: ModelPlan) -> None:
    """That a model's files hold plain floats. Raises UnpackableError."""
    if is_already_quantized(plan):
        raise UnpackableError(
            tr("{model} is quantized already, in a way of its own.").format(model=plan.path.name),
            tr("Load it with its weights as they are, or choose the original model."),
        )


def is_already_quantized(plan: ModelPlan) -> bool:
    """Whether the configuration names a quantization."""
    return vars(plan.config).get("quantization_config") is not None


def _tensors_to_read(outline: Network, weights: WeightFiles) -> dict[str, object]:
    """What there is to read, by name; tables of words, the largest of all, by portions."""
    if weights.pickled:
        whole: dict[str, object] = {}
        for file in weights.files:
            whole.update(load_state_dict(file))
        return whole
    return dict(stored_tensors(weights, {_embedding_shape(outline)}, torch.float32))


def _embedding_shape(outline: Network) -> tuple[int, ...]:
    words = outline.get_input_embeddings()
    return tuple(words.weight.shape) if isinstance(words.weight, torch.Tensor) else ()


def read_tensors(
    plan: ModelPlan, outline: Network, tensors: dict[str, object], dtype: torch.dtype, packing: PackedConfig | None
) -> tuple[Network, LoadingReport]:
    """By transformers' own loader, which knows each family's names."""
    more: dict[str, Any] = {"quantization_config": packing} if packing is not None else {}
    loaded: Any = type(outline).from_pretrained(
        None, config=plan.config, state_dict=tensors, dtype=dtype, output_loading_info=True,
        generation_config=_generation_config(plan), **more,
    )  # fmt: skip
    network: Network = loaded[0]
    network.config._name_or_path = network.name_or_path = str(plan.path)
    return network, loaded[1]


def _generation_config(plan: ModelPlan) -> GenerationConfig:
    """The folder's own; else what its configuration says of it."""
    try:
        config: GenerationConfig = GenerationConfig.from_pretrained(plan.path, local_files_only=True)
    except OSError:
        config = GenerationConfig.from_model_config(plan.config)
    return config


def _check_runs(network: Network, kind: str) -> None:
    """One pass over three tokens. Raises UnpackableError where the module reads its weights in a way that fails."""
    ids = torch.arange(1, 4)[None]
    given: dict[str, object] = {"input_ids": ids}
    try:
        with torch.inference_mode():
            if network.config.is_encoder_decoder:
                given = {"decoder_input_ids": ids, "encoder_outputs": dummy_encoder_outputs(network, ids)}
            network(**given)
    except Exception as error:  # each family's own code meets something that is no tensor of floats
        raise UnpackableError(
            tr("{model} does not work with its layers kept in {kind}.").format(model=type(network).__name__, kind=kind),
            tr("Choose bfloat16 or float32 weights for it."),
            f"{type(error).__name__}: {error}",
        ) from error
