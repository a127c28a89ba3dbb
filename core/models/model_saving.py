"""Save a loaded model as a file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import torch

from decodescope.core.errors import ModelFileError, ParameterError
from decodescope.core.models.gguf.export import EXPORT_FORMATS, ExportedModel, export_model
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.parameter import short_repr
from decodescope.core.system.torch_state import isolated_construction
from decodescope.resources.language import tr


@isolated_construction
def save_gguf(model: LoadedModel, path: str | Path, weights: str = "Q8_0") -> Path:
    """Write a model with its tokenizer and chat template, with adapters merged into it, its matrices in the format
    `weights` (EXPORT_FORMATS).

    The file appears at `path` once it is complete. Raises ParameterError for an unknown format, or a value that is not
    a loaded model or a path, UnpackableError for an architecture or a tokenizer that cannot be written, and
    ModelFileError if the file cannot be written; a file that was there is then unchanged.
    """
    check_model(model)
    if weights not in EXPORT_FORMATS:
        raise ParameterError(
            tr("“{wish}” is not a format that can be written.").format(wish=str(weights)[:40]),
            tr("Use {names}.").format(names=", ".join(EXPORT_FORMATS)),
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
        export_model(exported_model(model), target, weights)
    except (OSError, ValueError) as error:
        raise ModelFileError(
            tr("{file} cannot be written: {reason}.").format(
                file=target.name or target, reason=getattr(error, "strerror", None) or error
            ),
            tr("Choose a name in an existing folder that you may write to, on a disk with enough free space."),
        ) from error
    return target


def exported_model(model: LoadedModel) -> ExportedModel:
    """Return what is written of a model, with the effect of its adapters."""
    ends = model.generation_config.eos_token_id
    return ExportedModel(
        model.name, model.config, _weights(model), bool(model.config.tie_word_embeddings) and not _has_own_head(model),
        model.tokenizer, model.vocabulary, ends if isinstance(ends, list) else [], model.context,
    )  # fmt: skip


def _has_own_head(model: LoadedModel) -> bool:
    """Return whether adapters change the embedding or the head, which share their weights otherwise."""
    if not model.adapters.active:
        return False
    shared = (model.model.get_input_embeddings(), model.model.get_output_embeddings())
    named = [(name, module) for name, module in model.model.named_modules(remove_duplicate=False) if module in shared]
    one, other = (model.adapters.merged(f"{name}.weight", module, "weight") for name, module in named)
    return not torch.equal(one, other)


def _weights(model: LoadedModel) -> Iterable[tuple[str, torch.Tensor]]:
    """Yield every weight as floats, packed matrices converted, with the effect of adapters."""
    for path, module in model.model.named_modules():
        for own, _ in module.named_parameters(recurse=False):
            name = f"{path}.{own}" if path else own
            yield name, model.adapters.merged(name, module, own)
        for own, buffer in module.named_buffers(recurse=False):
            if own.endswith("_bias") and own not in module._non_persistent_buffers_set:
                yield f"{path}.{own}" if path else own, buffer.float()  # the routers' biases of LFM2-MoE
