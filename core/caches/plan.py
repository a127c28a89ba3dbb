"""Predict the cache size of a run: bytes by text length, and the formula."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.core.caches import CacheBackend, registry
from decodescope.core.caches.base import has_no_cache
from decodescope.core.caches.measurement import CacheEstimate, RunShape
from decodescope.core.errors import UnpredictableError
from decodescope.core.parameter import Settings
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.caches.base import CacheBackend
    from decodescope.core.events import CachePlan, Notice
    from decodescope.core.models.loaded_model import LoadedModel

_POINTS = 16
"""Number of evenly spaced lengths between the prompt and the limit to predict, besides the bends of the curve."""
_MAX_BLOCKS = 8
"""Number of blocks of a quantized cache whose two ends are predicted; longer runs show only the trend."""


def predict_cache(
    model: LoadedModel, backend: CacheBackend, run: RunShape, start: int, max_length: int
) -> CachePlan | None:
    """Predict the cache of a text that grows from `start` to `max_length` tokens; return None if the size is
    unpredictable.
    """
    from decodescope.core.common.size_terms import evaluate
    from decodescope.core.events import CachePlan  # the event classes are slow to create: import on demand

    try:
        described = backend.describe(model, run)
        plain = registry["dynamic"].describe(model, run)
    except UnpredictableError:
        return None
    lengths = _predicted_lengths(start, max(max_length, start), described)
    return CachePlan(
        backend=backend.name,
        size=described.size,
        start=start,
        lengths=lengths,
        predicted=tuple(evaluate(described.size, length) for length in lengths),
        dynamic=tuple(evaluate(plain.size, length) for length in lengths),
        capacity=described.capacity,
        sinks=described.sinks,
        window=described.window,
        block=described.block,
        bits=described.bits,
    )


def _predicted_lengths(start: int, max_length: int, estimate: CacheEstimate) -> tuple[int, ...]:
    """Return ascending lengths that include `start` and `max_length`: even steps and both sides of every bend."""
    points = {start + round((max_length - start) * step / _POINTS) for step in range(_POINTS + 1)}
    if estimate.window is not None:
        points |= {estimate.window - 1, estimate.window}
    if (block := estimate.block) is not None:
        first = start // block + 1
        points |= {k * block + side for k in range(first, first + _MAX_BLOCKS) for side in (-1, 0)}
    return tuple(sorted(point for point in points if start <= point <= max_length))


def cache_notices(model: LoadedModel, backend: CacheBackend, settings: Settings, speculates: bool) -> Iterator[Notice]:
    """Yield the notices for a run with `settings` (defaults filled in) on the cache `backend`; `speculates`: drafts are
    verified.
    """
    from decodescope.core.events import Notice  # the event classes are slow to create: import on demand

    if speculates and not model.has_exact_dtype:
        yield Notice(
            "half_precision",
            tr(
                "Drafts are verified several tokens at a time. In half precision such a pass rounds "
                "differently from one over a single token, so where two tokens are almost equally "
                "likely, the text may differ from the one generated without drafts. In float32 it does "
                "not."
            ),
        )
    if has_no_cache(model):
        yield Notice(
            "read_anew",
            tr(
                "{model} keeps no cache between tokens, so it reads the full text again for each new "
                "token: the longer the text, the slower the generation."
            ).format(model=model.name),
        )
    requested = settings.get("cache_implementation")
    if requested and (known := registry.get(requested)) is not backend:
        there = tr("Select “{title}” to use it.").format(title=tr(known.title)) if known else ""
        yield Notice(
            "setting_ignored",
            tr(
                "The generation settings request the cache “{wanted}” (cache_implementation), but this "
                "run uses “{title}”. {how}"
            ).format(wanted=requested, title=tr(backend.title), how=there or tr("This cache does not exist here.")),
        )
