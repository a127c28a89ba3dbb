"""The offloaded cache: layers are kept in another memory and prefetched one layer ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.caches.base import (
    EDITS,
    CacheBackend,
    extra_tensors_reason,
    repeated_layers_reason,
    windows_required_reason,
)
from decodescope.core.caches.measurement import CacheEstimate, RunShape
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.parameter import Parameter, Settings
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from decodescope.core.caches.base import CacheOperation
    from decodescope.core.models.loaded_model import LoadedModel

PLACE = Parameter(
    "place", mark("Offload to"), "choice", "auto",
    mark("host: main memory, for a model on a GPU. disk: a temporary file, removed afterwards. auto: host "
        "if there is a GPU, otherwise disk."),
    choices=("auto", "host", "disk"), option=True,
)  # fmt: skip
FOLDER = Parameter(
    "folder", mark("File folder"), "text", "",
    mark("Folder for the temporary file. Empty: the program's own cache folder."),
    option=True, advanced=True,
)  # fmt: skip


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """Build an empty cache whose layers are kept in host memory or on disk. Raises CacheError if neither is
    available.
    """
    from decodescope.core.caches.tensors.disk_cache import build_offloaded  # torch is loaded only when something runs

    return build_offloaded(model, options.get("place") or "auto", options.get("folder") or "")


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """Estimate the size as that of a dynamic cache; on disk, the first layer is also in memory with capacity for one
    more token.
    """
    from decodescope.core.caches.tensors.cache_sizes import (
        all_tokens,
        cache_size,
        model_layer_shapes,
        prepared_tokens,
        resident_size,
    )
    from decodescope.core.caches.tensors.disk_cache import is_on_disk  # needs torch

    shapes = model_layer_shapes(model)
    extra = prepared_tokens() if is_on_disk(model, run.options.get("place")) else ()
    return CacheEstimate(cache_size(shapes, run, all_tokens, extra), resident=resident_size(shapes, run))


def rejection_reason(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """Return why models with states are not supported: a state of constant size is needed in full at every step."""
    return extra_tensors_reason(model) or repeated_layers_reason(model) or windows_required_reason(model)


def generate_equivalent(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """Return the `generate` equivalent, which exists for GPUs."""
    return offloading_generate_equivalent("offloaded", options, device)


def offloading_generate_equivalent(name: str, options: Settings, device: str) -> GenerateEquivalent:
    """Return the `cache_implementation` called `name` if layers are offloaded from a GPU to main memory."""
    if not device.startswith("cuda") or options.get("place") == "disk":
        return GenerateEquivalent(missing=tr("transformers offloads from a GPU to main memory only, not to disk."))
    return GenerateEquivalent({"cache_implementation": name})


BACKEND = CacheBackend(
    name="offloaded",
    title=mark("Offloaded"),
    summary=mark("layers are kept in main memory or on disk"),
    build=build,
    describe=describe,
    parameters=(PLACE, FOLDER),
    order=70,
    rescue=2,
    rejection_reason=rejection_reason,
    offers=EDITS | {"drafts"},
    generate_equivalent=generate_equivalent,
)
