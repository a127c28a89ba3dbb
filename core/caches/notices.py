"""What a reader should know of a run's memory before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.caches import CacheBackend, registry
from core.caches.unsupported_reasons import has_no_cache
from resources.language import tr

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from core.events import Notice
    from core.models.loaded_model import LoadedModel


def cache_notices(
    model: LoadedModel, backend: CacheBackend, config: GenerationConfig, speculates: bool
) -> Iterator[Notice]:
    """For a run of `config`, every default filled in, on the cache `backend`; `speculates`: drafts are checked."""
    from core.events import Notice  # the events' classes take a while to make: only once something runs

    if speculates and not model.has_exact_dtype:
        yield Notice(
            "half_precision",
            tr(
                "Drafts are checked several at once, and in half precision such a pass rounds otherwise than one over "
                "a single token: where two tokens are almost equally likely, the text may part from the one written "
                "without drafts. In float32 it does not."
            ),
        )
    if has_no_cache(model):
        yield Notice(
            "read_anew",
            tr(
                "{model} keeps nothing between tokens, so the whole text is read anew for each of them: "
                "the longer it grows, the slower it is written."
            ).format(model=model.name),
        )
    wanted = config.cache_implementation
    if wanted and (known := registry.get(wanted)) is not backend:
        there = tr("Choose “{title}” for that.").format(title=tr(known.title)) if known else ""
        yield Notice(
            "setting_ignored",
            tr(
                "The generation settings ask for the cache “{wanted}” (cache_implementation); this run "
                "keeps its text in “{title}”. {how}"
            ).format(wanted=wanted, title=tr(backend.title), how=there or tr("There is no such cache here.")),
        )
