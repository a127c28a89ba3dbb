"""What would make a model fit: one lever after another, each as little as is enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from core.errors import ParameterError
from core.labs.scale.cluster import Cluster, Layout, Reckoning, Training, check_setup, estimate_checked
from core.labs.scale.model_shape import Shape
from core.labs.scale.zero_states import SCHEMES

Setting = tuple[Cluster, Layout, Training]


@dataclass(frozen=True)
class Remedy:
    """One change after which it fits: which lever (`scheme`, `recompute`, `tensor`, `pipeline`, `devices`), its new
    value in words of the settings, and what a device then holds at most."""

    lever: str
    value: str
    cluster: Cluster
    layout: Layout
    training: Training
    bytes: int


def remedies(shape: Shape, cluster: Cluster, layout: Layout, training: Training) -> tuple[Remedy, ...]:
    """For each lever that is enough by itself, its least change; for none, the combination that takes the fewest
    devices, with everything divided and layers computed again. Empty where it fits already. Raises ParameterError."""
    check_setup(shape, cluster, layout, training)
    here = _estimate(shape, (cluster, layout, training))
    if here is not None and here.fits:
        return ()
    levers = (_scheme_candidates, _recompute_candidates, _tensor_candidates, _pipeline_candidates, _device_candidates)
    found = tuple(remedy for lever in levers if (remedy := _first_that_fits(shape, lever(cluster, layout, training))))
    return found or tuple(filter(None, (_first_that_fits(shape, _combined_candidates(shape, cluster, training)),)))


Candidate = tuple[str, str, Setting]


def _first_that_fits(shape: Shape, tries: Iterator[Candidate]) -> Remedy | None:
    for lever, value, setting in tries:
        found = _estimate(shape, setting)
        if found is not None and found.fits:
            return Remedy(lever, value, *setting, bytes=found.fullest.total)
    return None


def _estimate(shape: Shape, setting: Setting) -> Reckoning | None:
    """None where the division does not come out even."""
    try:
        return estimate_checked(shape, *setting)
    except ParameterError:
        return None


def _scheme_candidates(cluster: Cluster, layout: Layout, training: Training) -> Iterator[Candidate]:
    for scheme in SCHEMES[SCHEMES.index(layout.scheme) + 1 :]:
        yield "scheme", scheme, (cluster, replace(layout, scheme=scheme), training)


def _recompute_candidates(cluster: Cluster, layout: Layout, training: Training) -> Iterator[Candidate]:
    if not training.recompute:
        yield "recompute", "", (cluster, layout, replace(training, recompute=True))


def _tensor_candidates(cluster: Cluster, layout: Layout, training: Training) -> Iterator[Candidate]:
    """Within a machine: what tensor parallel sends is too much for the way between machines."""
    for tensor in _doublings(layout.tensor, cluster.per_machine):
        yield "tensor", str(tensor), (cluster, replace(layout, tensor=tensor), training)


def _pipeline_candidates(cluster: Cluster, layout: Layout, training: Training) -> Iterator[Candidate]:
    for stages in _doublings(layout.pipeline, cluster.devices):
        yield "pipeline", str(stages), (cluster, replace(layout, pipeline=stages), training)


def _device_candidates(cluster: Cluster, layout: Layout, training: Training) -> Iterator[Candidate]:
    for devices in _doublings(cluster.devices, _MAX_DEVICES):
        yield "devices", str(devices), (replace(cluster, devices=devices), layout, training)


def _combined_candidates(shape: Shape, cluster: Cluster, training: Training) -> Iterator[Candidate]:
    for devices in (cluster.devices, *_doublings(cluster.devices, _MAX_DEVICES)):
        for tensor in (1, *_doublings(1, cluster.per_machine)):
            layout = Layout("zero3", tensor)
            yield "all", "", (replace(cluster, devices=devices), layout, replace(training, recompute=True))


_MAX_DEVICES = 65_536


def _doublings(start: int, maximum: int) -> Iterator[int]:
    value = start * 2
    while value <= maximum:
        yield value
        value *= 2
