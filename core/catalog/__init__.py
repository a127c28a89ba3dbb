"""Models: those on this disk, and those that the hub has. Importing this imports neither torch nor the hub's library.

for found in core.catalog.search("small stories"): print(found.name, found.size, found.why_not or "fits")
core.load(core.catalog.download("owner/name", progress=print))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.catalog.checking import verify
    from core.catalog.fetching import download
    from core.catalog.finding import find, judge, look, search
    from core.catalog.found import HubFile, HubModel
    from core.catalog.leftovers import Unfinished, delete, discard, unfinished
    from core.catalog.progress import Progress
    from core.models.catalog import (
        BUNDLED,
        KINDS,
        PACKED,
        Fit,
        ModelEntry,
        available,
        bundled,
        describe,
        display_name,
        find_weights,
        fits,
        hub_cached,
        hub_entry,
        hub_has_models,
        inspect,
        locate,
        read_config,
        same_tokenizer,
        weight_bytes,
    )

__all__ = [
    "BUNDLED",
    "KINDS",
    "PACKED",
    "Fit",
    "HubFile",
    "HubModel",
    "ModelEntry",
    "Progress",
    "Unfinished",
    "available",
    "bundled",
    "delete",
    "describe",
    "discard",
    "display_name",
    "download",
    "find",
    "find_weights",
    "fits",
    "hub_cached",
    "hub_entry",
    "hub_has_models",
    "inspect",
    "judge",
    "locate",
    "look",
    "read_config",
    "same_tokenizer",
    "search",
    "unfinished",
    "verify",
    "weight_bytes",
]

_OF_THE_HUB = {
    "HubFile": "core.catalog.found",
    "HubModel": "core.catalog.found",
    "Progress": "core.catalog.progress",
    "Unfinished": "core.catalog.leftovers",
    "delete": "core.catalog.leftovers",
    "discard": "core.catalog.leftovers",
    "download": "core.catalog.fetching",
    "find": "core.catalog.finding",
    "judge": "core.catalog.finding",
    "look": "core.catalog.finding",
    "search": "core.catalog.finding",
    "unfinished": "core.catalog.leftovers",
    "verify": "core.catalog.checking",
}
"""All else is what `core.models.catalog` knows of this disk."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'core.catalog' has no attribute {name!r}")
    return getattr(importlib.import_module(_OF_THE_HUB.get(name, "core.models.catalog")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
