"""Load a module from a folder: only safetensors and none of the model's own code, unless explicitly allowed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from transformers import GenerationConfig, modeling_utils

from decodescope.core.errors import (
    ConfigInvalidError,
    CorruptWeightsError,
    ModelError,
    ModelFileError,
    ModelTooLargeError,
    UnpackableError,
)
from decodescope.core.models.gguf.gguf_file import GgufFile
from decodescope.core.models.gguf.loading import load_blocks
from decodescope.core.models.gguf.loading import load_floats as load_gguf_floats
from decodescope.core.models.layer_offload import DiskOffload, load_offloaded
from decodescope.core.models.load_plan import BUILD_LOCK, ModelPlan
from decodescope.core.models.mapped_files import MappedFiles
from decodescope.core.models.model_files import (
    WeightFiles,
    corrupt_weights_error,
    damage_description,
    find_weights,
    full_message,
    is_file,
    pickled_weights_error,
    read_json,
    readable_reason,
)
from decodescope.core.models.quantized.card_quantization import quantize_for_card
from decodescope.core.models.quantized.packed_loading import (
    LoadingReport,
    is_already_quantized,
    load_floats,
    load_packed,
)
from decodescope.core.models.quantized.tensor_files import has_known_types, is_conversion
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import join_names, tr

if TYPE_CHECKING:
    from decodescope.core.models.text import Network

log = logging.getLogger(__name__)


class LoadedNetwork(NamedTuple):
    """A module with its weights, and the files whose pages it uses."""

    network: Network
    mapped_files: MappedFiles | None
    """None if all of its weights are copies."""


def load_network(
    plan: ModelPlan, dtype: torch.dtype, device: torch.device, allow_pickle: bool, packed: str | None = None,
    disk_offload: DiskOffload | None = None, on_card: str | None = None, is_spread: bool = False,
) -> LoadedNetwork:  # fmt: skip
    """Load the module with its weights on its device, ready to run.

    `packed`: int8 or int4, the format of the weights; `disk_offload`: the layers that stay on disk; `on_card`: the
    format in which torchao stores the weights on a card; `is_spread`: over all cards and main memory. Raises ModelError
    subclasses and OutOfMemoryError.
    """
    path = plan.path
    if plan.gguf is not None:
        return _load_gguf(plan, plan.gguf, dtype, device, packed)
    _check_generation_config(path)
    weights = _check_weights(path, allow_pickle)
    outline = plan.outline(dtype)
    plan.check_size(outline, weights)
    sources = _open_files(weights)
    is_read_here = packed is not None or (not (is_spread or is_already_quantized(plan)) and has_known_types(weights))
    uses_pages = device.type == "cpu" and packed is None and not is_conversion(weights, dtype)
    try:
        with BUILD_LOCK:
            if disk_offload is not None:
                network, report = load_offloaded(plan, outline, disk_offload)
            elif packed is not None:
                network, report = load_packed(plan, outline, weights, packed, None if weights.pickled else sources)
            elif is_read_here:
                is_mapped = uses_pages and sources.is_mapped
                network, report = load_floats(plan, outline, weights, dtype, sources, is_mapped)
            else:
                network, report = _load_by_transformers(plan, weights, dtype, is_spread)
            if on_card is not None:
                quantize_for_card(network, on_card, device)
        ready: Network = network.eval() if is_spread else _move_to(network, device).eval()
        sources.check()
    except UnpackableError:
        raise
    except Exception as error:  # pickles, headers and checkpoints of other libraries raise many exception types
        sources.check()
        log.debug("weights of %s", path, exc_info=True)
        raise error if isinstance(error, ModelError) else _loading_error(error, path) from error
    _check_complete(report, path)
    is_mapped = disk_offload is None and is_read_here and uses_pages and sources.is_mapped
    return LoadedNetwork(ready, sources if is_mapped else None)


def _open_files(weights: WeightFiles) -> MappedFiles:
    """Open the files of weights. Raises CorruptWeightsError."""
    try:
        return MappedFiles(weights.files)
    except (OSError, ValueError) as error:
        file = Path(getattr(error, "filename", None) or weights.files[0])
        raise corrupt_weights_error(file, system_error_reason(error), str(error)) from error


def _load_gguf(
    plan: ModelPlan, file: GgufFile, dtype: torch.dtype, device: torch.device, packed: str | None
) -> LoadedNetwork:  # fmt: skip
    """Load a GGUF file: in its blocks if `packed`, else converted to `dtype`."""
    outline = plan.outline(torch.float32 if packed else dtype)
    plan.check_gguf_size(outline)
    try:
        with BUILD_LOCK:
            if packed:
                network, report = load_blocks(file, plan.config, outline)
            else:
                network, report = load_gguf_floats(file, plan.config, outline, dtype)
        ready: Network = _move_to(network, device).eval()
        file.sources.check()
    except Exception as error:  # transformers' own
        file.sources.check()
        log.debug("weights of %s", plan.path, exc_info=True)
        raise error if isinstance(error, ModelError) else _loading_error(error, plan.path) from error
    _check_complete(report, plan.path)
    uses_pages = device.type == "cpu" and file.sources.is_mapped
    return LoadedNetwork(ready, file.sources if uses_pages else None)


def _move_to(network: Any, device: torch.device) -> Any:
    """Move the module with torch's `to`, whose annotation transformers hides."""
    return network.to(device)


def _load_by_transformers(
    plan: ModelPlan, weights: WeightFiles, dtype: torch.dtype, is_spread: bool
) -> tuple[Network, LoadingReport]:
    """Load pickled or quantized weights, or a module spread over several devices: copies, not pages of files."""
    with _copied_weights():
        loaded: tuple[Network, LoadingReport] = plan.auto.from_pretrained(
            plan.path, config=plan.config, dtype=dtype, trust_remote_code=plan.allow_remote_code, local_files_only=True,
            use_safetensors=not weights.pickled, output_loading_info=True,
            **({"device_map": "auto"} if is_spread else {}),
        )  # fmt: skip
    return loaded


@contextmanager
def _copied_weights() -> Iterator[None]:
    """Let transformers read files of weights: pages that it maps have no guard against a file that is cut.

    It maps safetensors files, except on Windows, and pickles that are zip archives. Its own `disable_mmap` needs the
    memory for a whole file at once, and does not concern pickles. Other threads that load models meanwhile read, too.
    """
    readers: dict[str, object] = {"safe_open": _open_unmapped, "is_zipfile": _is_mappable_pickle}
    before = {name: getattr(modeling_utils, name) for name in readers}
    vars(modeling_utils).update(readers)
    try:
        yield
    finally:
        vars(modeling_utils).update(before)


def _open_unmapped(
    file: str | PathLike[str], framework: str = "pt", device: object = "cpu", **_options: object
) -> safe_open:
    return safe_open(file, framework=framework, device=device, backend="pread")


def _is_mappable_pickle(_file: object) -> bool:
    return False


def _check_generation_config(path: Path) -> None:
    remedy = tr("Correct or delete the file; the model works without it.")
    try:
        read_json(path / "generation_config.json")
        GenerationConfig.from_pretrained(path, local_files_only=True)
    except FileNotFoundError:
        return
    except ModelFileError as error:
        raise ConfigInvalidError(error.cause, remedy) from error
    except Exception as error:  # transformers raises various exceptions for invalid values
        raise ConfigInvalidError(
            tr("The generation_config.json of {model} cannot be used: {reason}").format(
                model=path.name, reason=readable_reason(error)
            ),
            remedy,
            full_message(error),
        ) from error


def _check_weights(path: Path, allow_pickle: bool) -> WeightFiles:
    weights = find_weights(path)
    if not weights.files:
        raise CorruptWeightsError(
            tr("{path} contains no weights (no *.safetensors file).").format(path=path),
            tr("Copy or download the complete model again."),
        )
    if weights.pickled and not allow_pickle:
        raise pickled_weights_error(path.name, weights.files[0])
    for file in weights.files:
        _check_file(file, weights.pickled)
    return weights


def _check_file(file: Path, pickled: bool) -> None:
    """Check that the file exists; for safetensors, that its header and size are consistent."""
    if not is_file(file):
        raise CorruptWeightsError(
            tr("The weights file {file} is missing from {folder}.").format(file=file.name, folder=file.parent),
            tr("Copy or download the complete model again."),
        )
    if pickled:
        return
    try:
        with safe_open(file, framework="pt", backend="pread") as handle:
            handle.keys()
    except (SafetensorError, OSError) as error:
        raise corrupt_weights_error(file, damage_description(file), str(error)) from error


def _check_complete(report: LoadingReport, path: Path) -> None:
    missing = sorted(_parameter_name(name) for name in report.get("missing_keys", ()))
    shapes = [_parameter_name(name) for name in report.get("mismatched_keys", ())]
    if not missing and not shapes:
        return
    names = join_names([*missing, *shapes][:3])
    raise CorruptWeightsError(
        tr(
            "The weights in {file} do not match its config.json. Missing tensors: {missing}; tensors with another "
            "shape: {shapes} ({names} …)."
        ).format(file=path.name, missing=len(missing), shapes=len(shapes), names=names),
        tr("Copy or download the complete model again."),
    )


def _parameter_name(name_or_path: str | tuple[object, ...]) -> str:
    """Return a parameter's name; mismatched ones come as tuples with both shapes."""
    return str(name_or_path[0] if isinstance(name_or_path, tuple) else name_or_path)


def _loading_error(error: Exception, path: Path) -> Exception:
    if is_out_of_memory(error):
        return ModelTooLargeError(
            tr("{file} does not fit into memory.").format(file=path.name),
            tr("Offload layers to disk, choose a smaller model or dtype, or free memory."),
            str(error),
        )
    if isinstance(error, ImportError):
        return ConfigInvalidError(
            tr("{file} needs a library that is not installed: {reason}").format(
                file=path.name, reason=str(error).strip().splitlines()[0]
            ),
            tr("Install the library, or choose another model."),
            str(error),
        )
    return CorruptWeightsError(
        tr("The weights in {file} cannot be read, or do not match its config.json.").format(file=path.name),
        tr("Copy or download the complete model again."),
        full_message(error),
    )
