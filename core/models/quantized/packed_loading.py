"""From a folder to a module with packed weights, layer by layer: floats and packed numbers never lie side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from transformers import GenerationConfig

from core.errors import UnpackableError
from core.models.captioner import as_encoder_decoder
from core.models.lazy_import import load_state_dict
from core.models.load_plan import ModelPlan
from core.models.quantized.quantizer import PackedConfig, PackedQuantizer
from core.models.quantized.replace_modules import expert_tensors, replace_experts, replace_layers
from core.models.quantized.tensor_files import stored_tensors
from core.models.quantized.weight_formats import PACKED
from core.models.text_decoder import dummy_encoder_outputs
from core.models.weights import WeightFiles
from resources.language import tr

if TYPE_CHECKING:
    from core.models.hf_protocols import Network

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
