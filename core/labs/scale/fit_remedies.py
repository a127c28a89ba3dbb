"""What would make a model fit: one lever after another, each as little as is enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from core.errors import ParameterError
from core.labs.scale.cluster import Cluster, Layout, Reckoning, Training, check_setting, reckoned
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
    check_setting(shape, cluster, layout, training)
    here = _tried(shape, (cluster, layout, training))
    if here is not None and here.fits:
        return ()
    levers = (_schemes, _recompute, _tensors, _pipelines, _devices)
    found = tuple(remedy for lever in levers if (remedy := _first(shape, lever(cluster, layout, training))))
    return found or tuple(filter(None, (_first(shape, _all(shape, cluster, training)),)))


Try = tuple[str, str, Setting]


def _first(shape: Shape, tries: Iterator[Try]) -> Remedy | None:
    for lever, value, setting in tries:
        found = _tried(shape, setting)
        if found is not None and found.fits:
            return Remedy(lever, value, *setting, bytes=found.fullest.total)
    return None


def _tried(shape: Shape, setting: Setting) -> Reckoning | None:
    """None where the division does not come out even."""
    try:
        return reckoned(shape, *setting)
    except ParameterError:
        return None


def _schemes(cluster: Cluster, layout: Layout, training: Training) -> Iterator[Try]:
    for scheme in SCHEMES[SCHEMES.index(layout.scheme) + 1 :]:
        yield "scheme", scheme, (cluster, replace(layout, scheme=scheme), training)


def _recompute(cluster: Cluster, layout: Layout, training: Training) -> Iterator[Try]:
    if not training.recompute:
        yield "recompute", "", (cluster, layout, replace(training, recompute=True))


def _tensors(cluster: Cluster, layout: Layout, training: Training) -> Iterator[Try]:
    """Within a machine: what tensor parallel sends is too much for the way between machines."""
    for tensor in _doubled(layout.tensor, cluster.per_machine):
        yield "tensor", str(tensor), (cluster, replace(layout, tensor=tensor), training)


def _pipelines(cluster: Cluster, layout: Layout, training: Training) -> Iterator[Try]:
    for stages in _doubled(layout.pipeline, cluster.devices):
        yield "pipeline", str(stages), (cluster, replace(layout, pipeline=stages), training)


def _devices(cluster: Cluster, layout: Layout, training: Training) -> Iterator[Try]:
    for devices in _doubled(cluster.devices, _MOST_DEVICES):
        yield "devices", str(devices), (replace(cluster, devices=devices), layout, training)


def _all(shape: Shape, cluster: Cluster, training: Training) -> Iterator[Try]:
    for devices in (cluster.devices, *_doubled(cluster.devices, _MOST_DEVICES)):
        for tensor in (1, *_doubled(1, cluster.per_machine)):
            layout = Layout("zero3", tensor)
            yield "all", "", (replace(cluster, devices=devices), layout, replace(training, recompute=True))


_MOST_DEVICES = 65_536


def _doubled(start: int, most: int) -> Iterator[int]:
    value = start * 2
    while value <= most:
        yield value
        value *= 2
