"""What a reader should know of a run's memory before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.caches import CacheBackend, registry
from core.caches.reasons import keeps_nothing
from core.events import Notice

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from core.models.model import LoadedModel


def notices(model: LoadedModel, backend: CacheBackend, config: GenerationConfig, speculates: bool) -> Iterator[Notice]:
    """For a run of `config`, every default filled in, on the cache `backend`; `speculates`: drafts are checked."""
    if speculates and not model.counts_finely:
        yield Notice(
            "half_precision",
            "Drafts are checked several at once, and in half precision such a pass rounds otherwise than one over a "
            "single token: where two tokens are almost equally likely, the text may part from the one written without "
            "drafts. In float32 it does not.",
        )
    if keeps_nothing(model):
        yield Notice(
            "read_anew",
            f"{model.name} keeps nothing between tokens, so the whole text is read anew for each of them: the longer "
            "it grows, the slower it is written.",
        )
    wanted = config.cache_implementation
    if wanted and (known := registry.get(wanted)) is not backend:
        how = f"Choose “{known.title}” for that." if known else "There is no such cache here."
        yield Notice(
            "setting_ignored",
            f"The generation settings ask for the cache “{wanted}” (cache_implementation); this run keeps its text in "
            f"“{backend.title}”. {how}",
        )
