"""The offloaded cache: layers wait elsewhere and come back one ahead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.caches.base import EDITS, CacheBackend
from core.caches.dynamic import measure
from core.caches.reasons import keys_and_values_only
from core.parameter import Parameter

if TYPE_CHECKING:
    from core.caches.needs import Need
    from core.models.model import LoadedModel

PLACE = Parameter(
    "place", "Where layers wait", "choice", "auto",
    "host: main memory, for a model on a graphics card. disk: a temporary file, removed afterwards. "
    "auto: host where there is a card, else disk.",
    choices=("auto", "host", "disk"), option=True,
)  # fmt: skip
FOLDER = Parameter(
    "folder", "Folder of the file", "text", "",
    "Where the temporary file goes. Empty: the program's own cache folder.",
    option=True, advanced=True,
)  # fmt: skip


def build(model: LoadedModel, length: int, options: Mapping[str, Any]) -> Any:
    """An empty cache whose layers wait in host memory or on disk. Raises CacheError when there is no such place."""
    from core.caches.tensors.places import offloaded  # torch is loaded only when something runs

    return offloaded(model, options.get("place") or "auto", options.get("folder") or "")


def predict(model: LoadedModel, length: int, batch: int, options: Mapping[str, Any]) -> int:
    """As dynamic; with layers on disk one of them waits in memory besides."""
    from core.caches.tensors.places import predict_offloaded  # needs torch
    from core.caches.tensors.shapes import predict_cross

    cross = predict_cross(model, length, batch, options)
    return predict_offloaded(model, length, batch, options.get("place") or "auto") + cross


def refuse(model: LoadedModel, needs: frozenset[Need], options: Mapping[str, Any]) -> str | None:
    """A state of constant size is needed whole at every step."""
    return keys_and_values_only(model)


BACKEND = CacheBackend(
    name="offloaded",
    title="Offloaded",
    summary="layers wait in main memory or on disk",
    build=build,
    measure=measure,
    predict=predict,
    parameters=(PLACE, FOLDER),
    order=70,
    refuse=refuse,
    offers=EDITS | {"drafts"},
)
