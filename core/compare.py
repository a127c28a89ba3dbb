"""The same request on several caches: bytes, speed, and where the text first differs."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from core.caches.prefixes.store import shared_length
from core.errors import TokenscopeError
from core.events import CacheMeasured, Finished
from core.request import Request

if TYPE_CHECKING:
    from core.models.model import LoadedModel


@dataclass(frozen=True, slots=True)
class Compared:
    """One cache's row; figures are None where `reason` says why it did not run."""

    cache: str
    title: str
    exact: bool
    reason: str | None = None
    peak_bytes: int | None = None
    places: tuple[tuple[str, int], ...] = ()
    """(place, bytes) at the end: device, host, disk."""
    tokens_per_second: float | None = None
    time_to_first_token: float | None = None
    """Seconds."""
    tokens: int | None = None
    same_tokens: int | None = None
    """Tokens of the first text that agree with the reference's before the first difference."""
    differs: bool = False
    text: str = ""
    growth: tuple[tuple[int, int], ...] = ()
    """(new tokens, bytes) over the run."""
    ids: tuple[int, ...] = ()


def compare(
    model: LoadedModel,
    request: Request,
    names: Sequence[str],
    options: Mapping[str, Mapping[str, Any]] | None = None,
    cancel: threading.Event | None = None,
) -> Iterator[Compared]:
    """Run `request` on each cache of `names` in turn, a row after each; the first that runs is the reference.

    `options`: settings by name of the cache. Kept prefixes and the fall-back when memory ends are switched off, so
    that every cache does all the work itself. Stops after the row in which `cancel` was set.
    """
    cancel, reference = cancel or threading.Event(), None
    for name in names:
        alone = replace(request, cache=name, cache_options=(options or {}).get(name, {}), memory_fallback=False)
        row = _run(model, alone, cancel, reference)
        if reference is None and row.reason is None:
            reference = row.ids
        yield row
        if cancel.is_set():
            return


def _run(model: LoadedModel, request: Request, cancel: threading.Event, reference: tuple[int, ...] | None) -> Compared:
    from core import caches
    from core.running import stream  # torch is loaded only when something runs

    backend = caches.registry[request.cache]
    empty = Compared(backend.name, backend.title, backend.exact)
    measured: list[CacheMeasured] = []
    finished: Finished | None = None
    try:
        for event in stream(model, request, cancel):
            if isinstance(event, CacheMeasured):
                measured.append(event)
            elif isinstance(event, Finished):
                finished = event
    except TokenscopeError as error:
        return replace(empty, reason=str(error))
    except Exception as error:  # whatever a model or a quantizer raises: the others still get their turn
        return replace(empty, reason=f"It failed: {str(error) or type(error).__name__}.")
    assert finished is not None
    return _row(empty, measured, finished, reference)


def _row(
    empty: Compared, measured: list[CacheMeasured], finished: Finished, reference: tuple[int, ...] | None
) -> Compared:
    ids = finished.sequences[0]
    same = shared_length(ids, ids if reference is None else reference)
    places: dict[str, int] = {}
    for place, _, size in measured[-1].parts if measured else ():
        places[place] = places.get(place, 0) + size
    return replace(
        empty,
        peak_bytes=finished.metrics.cache_peak_bytes,
        places=tuple(places.items()),
        tokens_per_second=finished.metrics.decode_tokens_per_second,
        time_to_first_token=finished.metrics.time_to_first_token,
        tokens=finished.metrics.new_tokens,
        same_tokens=same,
        differs=reference is not None and ids != reference,
        text=finished.texts[0],
        growth=tuple((event.step, event.bytes) for event in measured),
        ids=ids,
    )


COLUMNS = (
    "cache", "peak_bytes", "tokens_per_second", "time_to_first_token", "tokens", "same_tokens", "differs", "reason",
    "text",
)  # fmt: skip


def to_csv(rows: Sequence[Compared]) -> str:
    """A table with a head line; empty cells where a cache did not run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        cells = (getattr(row, name) for name in COLUMNS)
        writer.writerow(["" if cell is None else cell for cell in cells])
    return out.getvalue()
