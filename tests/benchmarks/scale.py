"""The Scale lab: predicted ÷ measured values of every scheme that runs on this machine."""

from __future__ import annotations

from collections.abc import Iterator

from decodescope.core.labs.scale import PIPELINES, RUNS, Options, RankMeasurement, Residual, measuring_memory
from decodescope.core.labs.scale import measure as measured

PROCESSES, MICRO_BATCHES = 2, 4
QUICK = ("zero2", "tensor", "pipedream")


def of_scheme(scheme: str) -> Iterator[tuple[str, float]]:
    """Yield predicted ÷ measured values of a scheme: bytes on the fullest rank, bytes sent, and step time."""
    found = measured("storyteller", scheme, PROCESSES, options=Options(MICRO_BATCHES))
    fullest = max(range(PROCESSES), key=lambda rank: found.ranks[rank].total)
    yield f"{scheme}: bytes, predicted ÷ measured", found.predicted[fullest].total / found.ranks[fullest].total
    yield f"{scheme}: traffic, predicted ÷ measured", found.predicted_traffic / max(found.traffic)
    yield f"{scheme}: loss, one process ÷ measured", found.alone[-1] / found.loss
    if scheme in PIPELINES:
        yield f"{scheme}: time of a step, predicted ÷ measured", _lasts(found, False) / _lasts(found, True)


def measure(quick: bool = False) -> Iterator[tuple[str, float]]:
    """All figures, a scheme after the other; then ZeRO-R's."""
    for scheme in QUICK if quick else RUNS:
        yield from of_scheme(scheme)
    for event in measuring_memory("storyteller", PROCESSES):
        if isinstance(event, Residual):
            stored, without = event.kept[0], event.without[0]
            yield "zeror: checkpoints, predicted ÷ measured", event.expected.checkpoints / stored.checkpoints
            yield "zeror: traffic, predicted ÷ measured", event.expected.sent / event.sent
            yield "zeror: checkpoints ÷ without", stored.checkpoints / without.checkpoints
            yield "zeror: memory ÷ without", event.arenas[1].top / event.arenas[0].top


def _lasts(found: RankMeasurement, by_the_clock: bool) -> float:
    return max(box.stop for box in (found.boxes if by_the_clock else found.expected_boxes))
