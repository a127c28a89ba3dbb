"""Save a loaded model as a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from decodescope.core.errors import ModelFileError, ParameterError
from decodescope.core.models.gguf.export import EXPORT_FORMATS, ExportedModel, export_model
from decodescope.core.models.load_plan import BUILD_LOCK
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.models.quantized.packed_layers import ExpertBank, PackedExperts, PackedModule
from decodescope.core.parameter import short_repr
from decodescope.core.system.system_errors import system_error_reason
from decodescope.core.system.torch_state import isolated_construction
from decodescope.resources.language import join_names, tr


@isolated_construction
def save_gguf(
    model: LoadedModel, path: str | Path, weights: str = "Q8_0", notes: list[str] | None = None
) -> Path:  # fmt: skip
    """Write a model with its tokenizer and chat template, with adapters merged into it, its matrices in the format
    `weights` (EXPORT_FORMATS).

    The file appears at `path` once it is complete, after it was read back: a setting of the model's config that would
    be lost is refused by its name. Sentences about what is merged, what the file does not contain, and what llama.cpp
    does not read are added to `notes`; without that list they are a warning. Raises ParameterError for an unknown
    format, or a value that is not a loaded model or a path, UnpackableError for an architecture, a setting or a
    tokenizer that cannot be written, and ModelFileError if the file cannot be written; a file that was there is then
    unchanged.
    """
    check_model(model)
    if weights not in EXPORT_FORMATS:
        raise ParameterError(
            tr("“{wish}” is not a format that can be written.").format(wish=str(weights)[:40]),
            tr("Use {names}.").format(names=join_names(EXPORT_FORMATS)),
            "weights",
        )
    if not isinstance(path, (str, Path)):
        raise ParameterError(
            tr("{value} is not a path.").format(value=short_repr(path)),
            tr("Pass the path of the file to write."),
            "path",
        )
    target = Path(os.path.expanduser(path))
    try:
        if not target.parent.is_dir():
            raise FileNotFoundError(tr("the folder {folder} does not exist").format(folder=target.parent))
        found = [*_adapter_notes(model), *export_model(exported_model(model), target, weights)]
    except (OSError, ValueError) as error:
        raise ModelFileError(
            tr("{file} cannot be written: {reason}.").format(
                file=target.name or target, reason=system_error_reason(error)
            ),
            tr("Choose a name in an existing folder that you may write to, on a disk with enough free space."),
        ) from error
    if notes is not None:
        notes += found
    elif found:
        warnings.warn(" ".join(found), UserWarning, stacklevel=3)
    return target


def _adapter_notes(model: LoadedModel) -> list[str]:
    names = join_names(adapter.name for adapter in model.adapters.active)
    text = tr("The file contains the model with these adapters merged into it: {names}.").format(names=names)
    return [text] if names else []


def exported_model(model: LoadedModel) -> ExportedModel:
    """Return what is written of a model, with the effect of its adapters."""
    ends = model.generation_config.eos_token_id
    return ExportedModel(
        model.name, model.config, _weights(model), _is_head_shared(model), model.tokenizer, model.vocabulary,
        ends if isinstance(ends, list) else [], model.context, model.generation_config, _build_outline,
    )  # fmt: skip


def _build_outline(config: PreTrainedConfig) -> Any:
    with BUILD_LOCK, torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def _is_head_shared(model: LoadedModel) -> bool:
    """Return whether the head has the embedding's weights and nothing else, whatever the config says: adapters, or
    code that replaced one of them, may have changed that.
    """
    head: Any = model.model.get_output_embeddings()
    words: Any = model.model.get_input_embeddings()
    if not model.config.tie_word_embeddings or head is None or getattr(head, "bias", None) is not None:
        return False
    if not model.adapters.active and (head.weight is words.weight or isinstance(head, PackedModule)):
        return True
    shared = (words, head)
    named = [(name, module) for name, module in model.model.named_modules(remove_duplicate=False) if module in shared]
    one, other = (model.adapters.merged(f"{name}.weight", module, "weight") for name, module in named)
    return torch.equal(one, other)


def _weights(model: LoadedModel) -> Iterable[tuple[str, torch.Tensor]]:
    """Yield every weight and every buffer that is saved with them as floats, packed matrices converted, with the effect
    of adapters.
    """
    banks: list[str] = []
    for path, module in model.model.named_modules():
        if isinstance(module, (ExpertBank, PackedExperts)):
            banks.append(f"{path}.")
            yield path, module.floats()
        if path.startswith(tuple(banks)) or isinstance(module, ExpertBank):
            continue
        for own, _ in module.named_parameters(recurse=False):
            name = f"{path}.{own}" if path else own
            yield name, model.adapters.merged(name, module, own)
        for own, buffer in module.named_buffers(recurse=False):
            if own not in module._non_persistent_buffers_set:
                yield f"{path}.{own}" if path else own, buffer.float()  # routers' biases
