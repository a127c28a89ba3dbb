"""From a folder to a module: safetensors only, no code of the model's own, unless explicitly allowed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open

from core.device_memory import is_out_of_memory
from core.errors import ConfigInvalidError, CorruptWeightsError, ModelFileError, OutOfMemoryError, PickledWeightsError
from core.models.files import is_file, read_json
from core.models.plan import ModelPlan
from core.models.weights import WeightFiles, find_weights, shortfall

if TYPE_CHECKING:
    from core.models.network import Network

log = logging.getLogger(__name__)


def load_network(plan: ModelPlan, dtype: torch.dtype, device: torch.device, allow_pickle: bool) -> Network:
    """The module with its weights, on its device, ready to run. Raises ModelError subclasses and OutOfMemoryError."""
    path = plan.path
    _check_generation_config(path)
    weights = _check_weights(path, allow_pickle)
    plan.check_size(plan.outline(dtype), weights)
    try:
        network, report = plan.auto.from_pretrained(
            path, config=plan.config, dtype=dtype, trust_remote_code=plan.allow_remote_code, local_files_only=True,
            use_safetensors=not weights.pickled, output_loading_info=True,
        )  # fmt: skip
        ready: Network = network.to(device).eval()
    except Exception as error:  # pickles, headers and checkpoints of other libraries fail in ways of their own
        log.debug("weights of %s", path, exc_info=True)
        raise _loading_error(error, path) from error
    _check_complete(report, path)
    return ready


def _check_generation_config(path: Path) -> None:
    try:
        read_json(path / "generation_config.json")
    except FileNotFoundError:
        return
    except ModelFileError as error:
        raise ConfigInvalidError(error.cause, "Correct or delete the file; the model can do without it.") from error


def _check_weights(path: Path, allow_pickle: bool) -> WeightFiles:
    weights = find_weights(path)
    if not weights.files:
        raise CorruptWeightsError(
            f"{path} holds no weights (no *.safetensors file).", "Copy or download the model again, whole."
        )
    if weights.pickled and not allow_pickle:
        raise PickledWeightsError(
            f"{path.name} has only pickled weights ({weights.files[0].name}). Loading a pickle can run any code in it.",
            "Allow it for this model if you trust its source, or convert the weights to safetensors.",
        )
    for file in weights.files:
        _check_file(file, weights.pickled)
    return weights


def _check_file(file: Path, pickled: bool) -> None:
    """That it is there; of safetensors, that its header and the size it promises agree with the file's own."""
    if not is_file(file):
        raise CorruptWeightsError(
            f"The weights file {file.name} is missing from {file.parent}.", "Copy or download the model again, whole."
        )
    if pickled:
        return
    try:
        with safe_open(file, framework="pt") as handle:
            handle.keys()
    except (SafetensorError, OSError) as error:
        raise CorruptWeightsError(
            f"The weights file {file.name} is truncated or corrupt: {shortfall(file)}.",
            "Copy or download it again; nothing was changed on disk.",
            str(error),
        ) from error


def _check_complete(report: Mapping[str, Iterable[str | tuple[object, ...]]], path: Path) -> None:
    missing = sorted(_key(name) for name in report.get("missing_keys", ()))
    shapes = [_key(name) for name in report.get("mismatched_keys", ())]
    if not missing and not shapes:
        return
    names = ", ".join([*missing, *shapes][:3])
    raise CorruptWeightsError(
        f"The weights in {path.name} do not fit its config.json: {len(missing)} tensors missing, {len(shapes)} of "
        f"another shape ({names} …).",
        "Copy or download the model again, whole.",
    )


def _key(found: str | tuple[object, ...]) -> str:
    """A parameter's name; one of another shape comes with both shapes."""
    return str(found[0] if isinstance(found, tuple) else found)


def _loading_error(error: Exception, path: Path) -> Exception:
    if is_out_of_memory(error):
        return OutOfMemoryError(
            f"{path.name} does not fit into memory.", "Choose a smaller model or number type, or free memory.",
            str(error),
        )  # fmt: skip
    if isinstance(error, ImportError):
        return ConfigInvalidError(
            f"{path.name} needs a library that is not installed: {str(error).strip().splitlines()[0]}",
            "Install the library, or choose another model.",
            str(error),
        )
    return CorruptWeightsError(
        f"The weights in {path.name} cannot be read, or do not fit its config.json.",
        "Copy or download the model again, whole.",
        f"{type(error).__name__}: {error}",
    )
