"""Models on this disk and on the Hugging Face Hub. Importing this package imports neither torch nor huggingface_hub.

for found in core.catalog.search("small stories"): print(found.name, found.size, found.why_not or "fits")
core.load(core.catalog.download("owner/name", progress=print))
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _PUBLIC_NAMES:
    from decodescope.core.catalog.download_store import UnfinishedDownload, delete, discard, unfinished
    from decodescope.core.catalog.file_download import DownloadProgress, verify
    from decodescope.core.catalog.hub_model import GgufVariant, HubFile, HubModel
    from decodescope.core.catalog.model_download import download
    from decodescope.core.catalog.model_search import find, judge, look, search
    from decodescope.core.models.catalog import (
        BUNDLED,
        available,
        bundled,
        display_name,
        hub_cached,
        hub_entry,
        hub_gguf,
        hub_has_models,
        inspect,
        locate,
        other_programs,
        same_tokenizer,
    )
    from decodescope.core.models.config_validation import KINDS, PACKED, QUANTIZED_FORMATS
    from decodescope.core.models.gguf.file_names import split_name
    from decodescope.core.models.gguf.file_summary import gguf_problem, gguf_remedy, is_gguf_model
    from decodescope.core.models.gguf.local_models import PROGRAMS
    from decodescope.core.models.model_entry import Fit, ModelEntry, describe, fits, read_config, weight_bytes
    from decodescope.core.models.model_files import find_weights

__all__ = sorted(_PUBLIC_NAMES)
