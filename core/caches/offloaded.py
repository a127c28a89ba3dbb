"""The offloaded cache: layers wait elsewhere and come back one ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.caches.base import EDITS, CacheBackend, CacheEstimate, RunShape, extra_tensors_reason, windows_required_reason
from core.common.hf_generation import GenerateEquivalent
from core.parameter import Parameter, Settings
from resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from core.caches.base import CacheOperation
    from core.models.loaded_model import LoadedModel

PLACE = Parameter(
    "place", mark("Where layers wait"), "choice", "auto",
    mark("host: main memory, for a model on a graphics card. disk: a temporary file, removed afterwards. auto: host "
         "where there is a card, else disk."),
    choices=("auto", "host", "disk"), option=True,
)  # fmt: skip
FOLDER = Parameter(
    "folder", mark("Folder of the file"), "text", "",
    mark("Where the temporary file goes. Empty: the program's own cache folder."),
    option=True, advanced=True,
)  # fmt: skip


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """An empty cache whose layers wait in host memory or on disk. Raises CacheError when there is no such place."""
    from core.caches.tensors.disk_cache import build_offloaded  # torch is loaded only when something runs

    return build_offloaded(model, options.get("place") or "auto", options.get("folder") or "")


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """As dynamic; with layers on disk the first of them waits in memory besides, ready for one more token."""
    from core.caches.tensors.cache_sizes import (
        all_tokens,
        cache_size,
        model_layer_shapes,
        prepared_tokens,
        resident_size,
    )
    from core.caches.tensors.disk_cache import is_on_disk  # needs torch

    shapes = model_layer_shapes(model)
    extra = prepared_tokens() if is_on_disk(model, run.options.get("place")) else ()
    return CacheEstimate(cache_size(shapes, run, all_tokens, extra), resident=resident_size(shapes, run))


def refuse(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """A state of constant size is needed whole at every step."""
    return extra_tensors_reason(model) or windows_required_reason(model)


def counterpart(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """`generate` has it for graphics cards."""
    return offloading_counterpart("offloaded", options, device)


def offloading_counterpart(name: str, options: Settings, device: str) -> GenerateEquivalent:
    """The `cache_implementation` of that name, where a graphics card's layers wait in main memory."""
    if not device.startswith("cuda") or options.get("place") == "disk":
        return GenerateEquivalent(
            missing=tr("transformers offloads from a graphics card to main memory only, never to a disk.")
        )
    return GenerateEquivalent({"cache_implementation": name})


BACKEND = CacheBackend(
    name="offloaded",
    title=mark("Offloaded"),
    summary=mark("layers wait in main memory or on disk"),
    build=build,
    describe=describe,
    parameters=(PLACE, FOLDER),
    order=70,
    rescue=2,
    refuse=refuse,
    offers=EDITS | {"drafts"},
    counterpart=counterpart,
)
