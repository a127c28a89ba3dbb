"""Models on this disk and on the Hugging Face Hub. Importing this package imports neither torch nor huggingface_hub.

for found in core.catalog.search("small stories"): print(found.name, found.size, found.why_not or "fits")
core.load(core.catalog.download("owner/name", progress=print))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.catalog.download_store import UnfinishedDownload, delete, discard, unfinished
    from core.catalog.file_download import Progress, verify
    from core.catalog.hub_model import GgufVariant, HubFile, HubModel
    from core.catalog.model_download import download
    from core.catalog.model_search import find, judge, look, search
    from core.models.catalog import (
        BUNDLED,
        KINDS,
        PACKED,
        QUANTIZED_FORMATS,
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
        hub_gguf,
        hub_has_models,
        inspect,
        locate,
        other_programs,
        read_config,
        same_tokenizer,
        weight_bytes,
    )
    from core.models.gguf.file_names import split_name
    from core.models.gguf.file_summary import gguf_problem, is_gguf_model
    from core.models.gguf.local_models import PROGRAMS

__all__ = [
    "BUNDLED",
    "KINDS",
    "PACKED",
    "PROGRAMS",
    "QUANTIZED_FORMATS",
    "Fit",
    "GgufVariant",
    "HubFile",
    "HubModel",
    "ModelEntry",
    "Progress",
    "UnfinishedDownload",
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
    "gguf_problem",
    "hub_cached",
    "hub_entry",
    "hub_gguf",
    "hub_has_models",
    "inspect",
    "is_gguf_model",
    "judge",
    "locate",
    "look",
    "other_programs",
    "read_config",
    "same_tokenizer",
    "search",
    "split_name",
    "unfinished",
    "verify",
    "weight_bytes",
]

_HUB_MODULES = {
    "PROGRAMS": "core.models.gguf.local_models",
    "gguf_problem": "core.models.gguf.file_summary",
    "is_gguf_model": "core.models.gguf.file_summary",
    "GgufVariant": "core.catalog.hub_model",
    "split_name": "core.models.gguf.file_names",
    "HubFile": "core.catalog.hub_model",
    "HubModel": "core.catalog.hub_model",
    "Progress": "core.catalog.file_download",
    "UnfinishedDownload": "core.catalog.download_store",
    "delete": "core.catalog.download_store",
    "discard": "core.catalog.download_store",
    "download": "core.catalog.model_download",
    "find": "core.catalog.model_search",
    "judge": "core.catalog.model_search",
    "look": "core.catalog.model_search",
    "search": "core.catalog.model_search",
    "unfinished": "core.catalog.download_store",
    "verify": "core.catalog.file_download",
}
"""All other names come from `core.models.catalog`, which covers the models on this disk."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'core.catalog' has no attribute {name!r}")
    return getattr(importlib.import_module(_HUB_MODULES.get(name, "core.models.catalog")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
