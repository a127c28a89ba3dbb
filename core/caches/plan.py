"""What a run's cache will take, before it does: predicted bytes by length, and the arithmetic behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.caches import CacheBackend, registry
from core.caches.base import CacheEstimate, RunShape, has_no_cache
from core.errors import UnpredictableError
from resources.language import tr

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from core.caches.base import CacheBackend
    from core.events import CachePlan, Notice
    from core.models.loaded_model import LoadedModel

_POINTS = 16
"""Lengths between the prompt and the limit that are predicted, besides those where a curve bends."""
_MAX_BLOCKS = 8
"""Blocks of a quantized cache whose two ends are predicted; longer runs show the trend."""


def predict_cache(
    model: LoadedModel, backend: CacheBackend, run: RunShape, start: int, max_length: int
) -> CachePlan | None:
    """Predictions for a text that grows from `start` to `max_length` tokens; None for a memory that only the model knows."""
    from core.common.size_terms import evaluate
    from core.events import CachePlan  # the events' classes take a while to make: only once something runs

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
    """Ascending, `start` and `max_length` among them: even steps, and both sides of every bend."""
    points = {start + round((max_length - start) * step / _POINTS) for step in range(_POINTS + 1)}
    if estimate.window is not None:
        points |= {estimate.window - 1, estimate.window}
    if (block := estimate.block) is not None:
        first = start // block + 1
        points |= {k * block + side for k in range(first, first + _MAX_BLOCKS) for side in (-1, 0)}
    return tuple(sorted(point for point in points if start <= point <= max_length))


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
