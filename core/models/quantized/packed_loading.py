"""Load a module with packed weights from its folder, layer by layer, so that the full float weights are never in
memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch
from torch import nn
from transformers import GenerationConfig
from transformers.core_model_loading import ConversionOps
from transformers.pytorch_utils import Conv1D
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from decodescope.core.errors import UnpackableError
from decodescope.core.models.config_validation import PACKED
from decodescope.core.models.lazy_import import load_state_dict
from decodescope.core.models.mapped_files import MappedFiles
from decodescope.core.models.model_files import WeightFiles
from decodescope.core.models.quantized.packed_layers import (
    PackedEmbedding,
    PackedExperts,
    PackedLinear,
    PackedModule,
    quantize_matrix,
)
from decodescope.core.models.quantized.tensor_files import FileTensor, LazyWeights, stored_tensors
from decodescope.core.models.text_decoder import as_encoder_decoder, dummy_encoder_outputs
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedConfig, PreTrainedModel
    from transformers.utils.quantization_config import QuantizationMethod

    from decodescope.core.models.text import Network


_EXPERT_NAMES = ("gate_up_proj", "up_proj", "down_proj")
"""transformers' names of the tensors [experts, outputs, inputs] of a mixture's experts."""
_PORTION = 2**22
"""Numbers compared at a time."""
_MIN_FRACTION = 0.5
"""Minimum fraction of the weights that must be packed."""


class PlannedModel(Protocol):
    """A model that is to be loaded from a folder."""

    @property
    def path(self) -> Path: ...

    @property
    def config(self) -> PreTrainedConfig: ...


def replace_with_packed_layers(network: Network, kind: str) -> None:
    """Replace the linear layers, embeddings and experts of a network on torch's meta device.

    Norms, position embeddings, routers and convolutions are kept. Embedding and output head always use 8 bits, because
    every choice depends on them. Raises UnpackableError if most weights remain unpacked.
    """
    before = sum(p.numel() for p in network.parameters())
    head, words = network.get_output_embeddings(), network.get_input_embeddings()
    for parent, name, child in list(_children(network)):
        packed = _packed_embedding(child, words) or _packed_layer(child, 8 if child is head else PACKED[kind])
        if packed is not None:
            setattr(parent, name, packed)
    if any(expert_tensors(network)):
        network.set_experts_implementation("eager")  # run expert by expert: other implementations need a single tensor
    reached = sum(m.weight.numel() for m in network.modules() if isinstance(m, PackedModule))
    reached += sum(bank.numel() for _, _, bank in expert_tensors(network))
    if reached < _MIN_FRACTION * before:
        raise UnpackableError(
            tr("{model} has most of its weights in layers that do not support {kind}.").format(
                model=type(network).__name__, kind=kind
            ),
            tr("Choose bfloat16 or float32 weights for this model."),
        )


def expert_tensors(
    network: nn.Module, transposed: bool = False
) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:  # fmt: skip
    """Yield every tensor of experts that is not packed yet: its module, its name there, the tensor. `transposed`:
    include those that are multiplied as [inputs, outputs] (GPT-OSS).
    """
    for module in network.modules():
        for name in _EXPERT_NAMES:
            tensor = module._parameters.get(name)
            if tensor is not None and tensor.dim() == 3 and (transposed or not _is_transposed(module)):
                yield module, name, tensor


def replace_experts(module: nn.Module, name: str, bits: int) -> PackedExperts:
    """Replace a module's tensor `name` with empty packed experts."""
    tensor = module._parameters.pop(name)
    assert tensor is not None
    experts, outputs, inputs = tensor.shape
    bank = PackedExperts(experts, outputs, inputs, bits)
    module.add_module(name, bank)
    return bank


def _is_transposed(module: nn.Module) -> bool:
    """Return whether its experts are stored as [inputs, outputs], which are multiplied differently."""
    return bool(vars(module).get("is_transposed", False))


def _children(network: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    for parent in network.modules():
        for name, child in parent.named_children():
            yield parent, name, child


def _packed_layer(child: nn.Module, bits: int) -> PackedModule | None:
    """Return the packed replacement of a module, or None to keep it."""
    if type(child) is nn.Linear:
        return PackedLinear(child.out_features, child.in_features, bits, child.bias)
    if type(child) is Conv1D:
        inputs, outputs = child.weight.shape
        return PackedLinear(outputs, inputs, bits, child.bias, transposed=True)
    return None


def _packed_embedding(child: nn.Module, words: nn.Module) -> PackedModule | None:
    """Return the packed replacement of a token embedding; position embeddings are short and read in different ways."""
    if not isinstance(child, nn.Embedding) or child.weight.shape != words.weight.shape:
        return None
    factor = embedding_factor(child)
    rows, width = child.weight.shape
    return None if factor is None else PackedEmbedding(rows, width, child.weight.dtype, child.padding_idx, factor)


def embedding_factor(table: nn.Embedding) -> float | None:
    """Return the factor by which an embedding's rows are multiplied (Gemma, BART); None for an unknown class."""
    if type(table) is nn.Embedding:
        return 1.0
    factor = vars(table).get("scalar_embed_scale", vars(table).get("embed_scale"))
    return float(factor) if isinstance(factor, (int, float)) else None


_METHOD = "decodescope"


@register_quantization_config(_METHOD)
class PackedConfig(QuantizationConfigMixin):
    """Quantization config that passes the format to the quantizer; removed from the model's config after loading."""

    def __init__(self, kind: str, tensors: Mapping[str, object] | None = None) -> None:
        self.quant_method = cast("QuantizationMethod", _METHOD)  # transformers' type lists only its own methods
        self.kind, self._tensors = kind, tensors or {}

    def __deepcopy__(self, memo: object) -> PackedConfig:
        return self

    def to_dict(self) -> dict[str, object]:
        """Return what transformers compares and logs: not the tensors."""
        return {"quant_method": _METHOD, "kind": self.kind}

    def is_shared(self, target: str, source: str) -> bool:
        """Return whether a weight that may be tied to another is: not if the files contain both with different values
        (T5 1.1).
        """
        one, other = self._tensors.get(target), self._tensors.get(source)
        return one is None or other is None or _are_equal(one, other)


@register_quantizer(_METHOD)
class PackedQuantizer(HfQuantizer):
    """Replaces layers before weights are read, and packs the weights that are read for them."""

    quantization_config: PackedConfig

    def __init__(self, quantization_config: PackedConfig, **more: object) -> None:
        super().__init__(quantization_config, **more)
        self._tied_names: dict[str, tuple[str, ...]] = {}
        """Names of tied weights, by each of their names."""
        self._expert_tensors: dict[str, tuple[nn.Module, str]] = {}

    def _process_model_before_weight_loading(self, model: Network, **_: object) -> Network:
        replace_with_packed_layers(model, self.quantization_config.kind)
        names = {module: name for name, module in model.named_modules()}
        self._expert_tensors = {f"{names[module]}.{name}": (module, name) for module, name, _ in expert_tensors(model)}
        self._untie(model)
        return model

    def _untie(self, model: Network) -> None:
        """Remove tied packed weights from transformers' list, which would tie parameters. Added weights (the shared
        bias of BERT and BLIP) are not packed.
        """
        tied: dict[str, str] = model.all_tied_weights_keys
        for target, source in list(tied.items()):
            if not target.endswith(".weight"):
                continue
            if not self.quantization_config.is_shared(target, source):
                del tied[target]
                continue
            if isinstance(_owning_module(model, target), PackedModule) or isinstance(
                _owning_module(model, source), PackedModule
            ):
                del tied[target]
                group = tuple(dict.fromkeys((*self._tied_names.get(source, (source,)), target)))
                self._tied_names.update(dict.fromkeys(group, group))

    def param_needs_quantization(self, model: PreTrainedModel, param_name: str, **_: object) -> bool:
        """Return whether `pack` handles a weight."""
        return (
            param_name in self._expert_tensors
            or param_name in self._tied_names
            or (param_name.endswith(".weight") and isinstance(_owning_module(model, param_name), PackedModule))
        )

    def get_quantize_ops(self) -> ConversionOps:
        """Return the conversion operation for a weight."""
        return _PackOperation(self)

    def pack(self, model: Network, name: str, value: torch.Tensor | LazyWeights) -> dict[str, torch.Tensor]:
        """Pack one weight into the modules that hold it; return the weights that transformers must set itself."""
        if name in self._expert_tensors:
            replace_experts(*self._expert_tensors[name], PACKED[self.quantization_config.kind]).pack(_read_fully(value))
            return {}
        rows = value.stored if isinstance(value, LazyWeights) else value
        names = self._tied_names.get(name, (name,))
        owners = [(other, _owning_module(model, other)) for other in names]
        pack_all([module for _, module in owners if isinstance(module, PackedModule)], rows)
        return {other: _read_fully(value) for other, module in owners if not isinstance(module, PackedModule)}

    def loaded_names(self, name: str) -> tuple[str, ...]:
        """Return all names that are loaded once `name` was read."""
        return self._tied_names.get(name, (name,))

    @staticmethod
    def clean_up(model: Network) -> None:
        """Remove transformers' changes from a model and its config, so that they are as in its folder."""
        quantizer: Any = model.hf_quantizer
        quantizer.remove_quantization_config(model)

    def is_serializable(self) -> bool:
        """Return False: packed models are not saved."""
        return False

    @property
    def is_trainable(self) -> bool:
        """Return False: integers have no gradients."""
        return False


class _PackOperation(ConversionOps):
    """Conversion of one weight from the file into its module."""

    def __init__(self, quantizer: PackedQuantizer) -> None:
        self._quantizer = quantizer

    def convert(  # type: ignore[override]  # transformers takes single tensors too
        self, input_dict: Mapping[str, Any], source_patterns: list[str], target_patterns: list[str], **more: Any
    ) -> dict[str, torch.Tensor]:
        """Convert {name: tensor or [tensor]} for transformers; return the weights that it must set itself."""
        left: dict[str, torch.Tensor] = {}
        for name, value in input_dict.items():
            single = value[0] if isinstance(value, list) else value
            left.update(self._quantizer.pack(more["model"], name, single))
            more["missing_keys"].difference_update(self._quantizer.loaded_names(name))
        return left


def pack_all(modules: Sequence[PackedModule], rows: Any) -> None:
    """Pack the same rows into each module; read them once if there are several, which then all use 8 bits."""
    if len(modules) == 1:
        modules[0].pack(rows)
        return
    numbers, scales = quantize_matrix(rows)
    for module in modules:
        module.set_quantized(numbers, scales)


def _are_equal(one: object, other: object) -> bool:
    """Compare two stored matrices, a portion of rows at a time."""
    first, second = _as_rows(one), _as_rows(other)
    if tuple(first.shape) != tuple(second.shape):
        return False
    rows, width = first.shape
    step = max(1, _PORTION // width)
    with torch.device("cpu"):  # instead of the meta device on which transformers builds the module
        return all(torch.equal(first[at : at + step], second[at : at + step]) for at in range(0, rows, step))


def _as_rows(value: object) -> FileTensor | torch.Tensor:
    stored = value.stored if isinstance(value, LazyWeights) else value
    assert isinstance(stored, (FileTensor, torch.Tensor))
    return stored


def _read_fully(value: torch.Tensor | LazyWeights) -> torch.Tensor:
    return value.stored[...].float() if isinstance(value, LazyWeights) else value


def _owning_module(model: nn.Module, name: str) -> nn.Module:
    return model.get_submodule(name.rpartition(".")[0])


LoadingReport = Mapping[str, Iterable[str | tuple[object, ...]]]


def load_packed(
    plan: PlannedModel, outline: Network, weights: WeightFiles, kind: str, sources: MappedFiles | None = None
) -> tuple[Network, LoadingReport]:
    """Load the module on the CPU, computing in float32 around its packed layers, with transformers' report of key
    names.

    Raises UnpackableError and transformers' own exceptions.
    """
    check_not_quantized(plan)
    tensors = _tensors_to_read(outline, weights, sources)
    network, report = read_tensors(plan, outline, tensors, torch.float32, PackedConfig(kind, tensors))
    PackedQuantizer.clean_up(network)
    _check_runs(as_encoder_decoder(network), kind)
    return network, report


def outline_packed(plan: PlannedModel, outline: Network, kind: str) -> None:
    """Turn a module without memory into what `load_packed` would return. Raises UnpackableError."""
    check_not_quantized(plan)
    replace_with_packed_layers(outline, kind)
    for module, name, _ in list(expert_tensors(outline)):
        replace_experts(module, name, PACKED[kind])


def load_floats(
    plan: PlannedModel, outline: Network, weights: WeightFiles, dtype: torch.dtype, sources: MappedFiles,
    is_mapped: bool,
) -> tuple[Network, LoadingReport]:  # fmt: skip
    """Load the module in a float dtype: `is_mapped`, with the weights that have it as views of the mapped files, else
    with all as copies. Mapped files would take extra memory for weights that are converted.
    """
    tensors = stored_tensors(weights, read_dtype=dtype, sources=sources, is_mapped=is_mapped)
    return read_tensors(plan, outline, dict(tensors), dtype, None)


def check_not_quantized(plan: PlannedModel) -> None:
    """Check that a model's files contain unquantized floats. Raises UnpackableError."""
    if is_already_quantized(plan):
        raise UnpackableError(
            tr("{model} is already quantized in its own format.").format(model=plan.path.name),
            tr("Load it with its weights as stored, or choose the original model."),
        )


def is_already_quantized(plan: PlannedModel) -> bool:
    """Return whether the config names a quantization."""
    return vars(plan.config).get("quantization_config") is not None


def _tensors_to_read(outline: Network, weights: WeightFiles, sources: MappedFiles | None) -> dict[str, object]:
    """Return the stored tensors by name. Embeddings, the largest of all, and matrices of linear layers are read in
    portions, and in the dtype of the file: a float32 copy of all of them takes longer than the rest of the loading.
    """
    if weights.pickled:
        whole: dict[str, object] = {}
        for file in weights.files:
            whole.update(load_state_dict(file))
        return whole
    linear = {f"{name}.weight" for name, module in outline.named_modules() if type(module) is nn.Linear}
    return dict(stored_tensors(weights, {_embedding_shape(outline), *linear}, torch.float32, sources))


def _embedding_shape(outline: Network) -> tuple[int, ...]:
    words = outline.get_input_embeddings()
    return tuple(words.weight.shape) if isinstance(words.weight, torch.Tensor) else ()


def read_tensors(
    plan: PlannedModel, outline: Network, tensors: dict[str, object], dtype: torch.dtype, packing: PackedConfig | None
) -> tuple[Network, LoadingReport]:
    """Read the tensors with transformers' loader, which handles the names of each model family."""
    more: dict[str, Any] = {"quantization_config": packing} if packing is not None else {}
    loaded: Any = type(outline).from_pretrained(
        None, config=plan.config, state_dict=tensors, dtype=dtype, output_loading_info=True,
        generation_config=_generation_config(plan), **more,
    )  # fmt: skip
    network: Network = loaded[0]
    network.config._name_or_path = network.name_or_path = str(plan.path)
    return network, loaded[1]


def _generation_config(plan: PlannedModel) -> GenerationConfig:
    """Return the folder's generation config, or the one derived from its config."""
    try:
        config: GenerationConfig = GenerationConfig.from_pretrained(plan.path, local_files_only=True)
    except OSError:
        config = GenerationConfig.from_model_config(plan.config)
    return config


def _check_runs(network: Network, kind: str) -> None:
    """Run one pass over three tokens. Raises UnpackableError if the module cannot use its packed weights."""
    ids = torch.arange(1, 4)[None]
    given: dict[str, object] = {"input_ids": ids}
    try:
        with torch.inference_mode():
            if network.config.is_encoder_decoder:
                given = {"decoder_input_ids": ids, "encoder_outputs": dummy_encoder_outputs(network, ids)}
            scores = network(**given).logits
        if not bool(scores.isfinite().all()):
            raise ValueError(tr("the scores are not finite"))
    except Exception as error:  # the family's own code computes with the weights themselves
        raise UnpackableError(
            tr("{model} does not work with its layers in {kind}.").format(model=type(network).__name__, kind=kind),
            tr("Choose bfloat16 or float32 weights for this model."),
            f"{type(error).__name__}: {error}",
        ) from error
