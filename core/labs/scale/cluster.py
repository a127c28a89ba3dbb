"""A model on a cluster: the memory, traffic and idle time of each device, and changes that make it fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from decodescope.core.checks.arguments import check_bool, check_integer, check_number, check_one_of
from decodescope.core.errors import ParameterError
from decodescope.core.labs.arguments import check_lab_object
from decodescope.core.labs.scale.model_shape import Shape
from decodescope.core.labs.scale.pipeline_schedule import SCHEDULE_KINDS
from decodescope.core.labs.scale.zero_states import PRECISIONS, SCHEMES, Parts, plan, ring_share, traffic
from decodescope.resources.language import tr

MAX_DEVICES = 1_000_000
MAX_TEXTS = 1_000_000
"""Maximum batch size and micro-batches."""
MAX_TOKENS = 100_000_000
MAX_BYTES = 10**18
"""Maximum memory of a device, and maximum bytes per second."""
PURPOSES = ("train", "write")


@dataclass(frozen=True)
class Cluster:
    """Identical devices. Speeds are in bytes per second, between devices of one machine and between machines."""

    devices: int = 8
    memory: float = 80e9
    per_machine: int = 8
    within: float = 300e9
    between: float = 25e9

    def check(self) -> None:
        """Raise ParameterError if a field is invalid."""
        check_integer("devices", self.devices, 1, MAX_DEVICES)
        check_integer("per_machine", self.per_machine, 1, MAX_DEVICES)
        for name, value in (("memory", self.memory), ("within", self.within), ("between", self.between)):
            check_number(name, value, 1, MAX_BYTES)


@dataclass(frozen=True)
class Layout:
    """The division of work: `tensor` parts of every matrix and `pipeline` stages of layers.

    The remaining devices repeat that with other texts (data parallelism), with states divided by `scheme`.
    """

    scheme: str = "ddp"
    tensor: int = 1
    pipeline: int = 1

    def check(self) -> None:
        """Raise ParameterError if a field is invalid."""
        check_one_of("scheme", self.scheme, SCHEMES)
        check_integer("tensor", self.tensor, 1, MAX_DEVICES)
        check_integer("pipeline", self.pipeline, 1, MAX_DEVICES)


@dataclass(frozen=True)
class Training:
    """One step: `micro_batches` of `batch` texts with `length` tokens each.

    `recompute` keeps only a layer's input and recomputes the rest in the backward pass. With purpose "write", text is
    generated instead.
    """

    batch: int = 1
    length: int = 2_048
    micro_batches: int = 8
    precision: str = "mixed"
    recompute: bool = False
    kind: str = "1f1b"
    purpose: str = "train"

    def check(self) -> None:
        """Raise ParameterError if a field is invalid."""
        check_integer("batch", self.batch, 1, MAX_TEXTS)
        check_integer("length", self.length, 1, MAX_TOKENS)
        check_integer("micro_batches", self.micro_batches, 1, MAX_TEXTS)
        check_one_of("precision", self.precision, PRECISIONS)
        check_bool("recompute", self.recompute)
        check_one_of("kind", self.kind, SCHEDULE_KINDS)
        check_one_of("purpose", self.purpose, PURPOSES)


@dataclass(frozen=True)
class Traffic:
    """Bytes that a device sends in one step, by purpose, and the seconds this takes at the cluster's speeds."""

    data: int
    tensor: int
    pipeline: int
    seconds: float

    @property
    def total(self) -> int:
        """Total bytes."""
        return self.data + self.tensor + self.pipeline


@dataclass(frozen=True)
class SetupEstimate:
    """Estimate for a setup: memory of a device of each stage, traffic of the busiest device, idle fraction, and whether
    it fits.
    """

    stages: tuple[Parts, ...]
    data: int
    """Copies of the model that read different texts."""
    memory: float
    traffic: Traffic
    idle: float

    @property
    def fullest(self) -> Parts:
        """Memory of the device that holds most."""
        return max(self.stages, key=lambda parts: parts.total)

    @property
    def fits(self) -> bool:
        """Whether every device has enough memory."""
        return self.fullest.total <= self.memory


def estimate_setup(shape: Shape, cluster: Cluster, layout: Layout, training: Training) -> SetupEstimate:
    """Estimate what the model needs in this setup. Raises ParameterError for invalid or uneven divisions."""
    check_setup(shape, cluster, layout, training)
    return estimate_checked(shape, cluster, layout, training)


def check_setup(shape: Shape, cluster: Cluster, layout: Layout, training: Training) -> None:
    """Raise ParameterError for invalid arguments."""
    check_lab_object("shape", shape, Shape)
    check_lab_object("cluster", cluster, Cluster)
    check_lab_object("layout", layout, Layout)
    check_lab_object("training", training, Training)
    for given in (shape, cluster, layout, training):
        given.check()


def estimate_checked(shape: Shape, cluster: Cluster, layout: Layout, training: Training) -> SetupEstimate:
    """Return the estimate for arguments that are already checked."""
    data = data_parallel_size(shape, cluster, layout)
    stages = tuple(_stage_memory(shape, layout, training, data, stage) for stage in range(layout.pipeline))
    is_steady = training.kind == "pipedream" or training.purpose == "write"
    idle = 0.0 if is_steady else (layout.pipeline - 1) / (training.micro_batches + layout.pipeline - 1)
    return SetupEstimate(stages, data, cluster.memory, _step_traffic(shape, cluster, layout, training, data), idle)


def data_parallel_size(shape: Shape, cluster: Cluster, layout: Layout) -> int:
    """Return the number of copies of the model. Raises ParameterError."""
    one = layout.tensor * layout.pipeline
    if one < 1 or cluster.devices % one:
        raise ParameterError(
            tr("{devices:,} devices cannot be divided into groups of {tensor} × {pipeline}.").format(
                devices=cluster.devices, tensor=layout.tensor, pipeline=layout.pipeline
            ),
            tr("Choose a number of devices that is a multiple of tensor × pipeline."),
        )
    if shape.heads % layout.tensor or layout.pipeline > shape.layers:
        raise ParameterError(
            tr("A model with {layers} layers and {heads} heads cannot be divided this way.").format(
                layers=shape.layers, heads=shape.heads
            ),
            tr("The tensor parts must divide the number of heads, and there can be at most as many stages as layers."),
        )
    return cluster.devices // one


def _stage_memory(shape: Shape, layout: Layout, training: Training, data: int, stage: int) -> Parts:
    """Return the bytes on a device of one stage."""
    size = PRECISIONS[training.precision]
    held = -(-shape.stage_parameters(stage, layout.pipeline) // layout.tensor)
    layers = shape.stage_layers(stage, layout.pipeline)
    if training.purpose == "write":
        cache_elements = 2 * layers * shape.kv_heads * shape.head_width * training.length * training.batch
        return Parts(parameters=held * size.parameter, cache=cache_elements * size.parameter // layout.tensor)
    states = plan(held, data, layout.scheme, training.precision)
    return Parts(
        states.parameters, states.gradients, states.optimizer,
        activations=_activation_bytes(shape, layout, training, stage, layers),
        buffers=_buffer_bytes(shape, layout, training, held, stage),
    )  # fmt: skip


def _activation_bytes(shape: Shape, layout: Layout, training: Training, stage: int, layers: int) -> int:
    """Return the bytes of activations.

    Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", equations 1 and 2:
    s·b·h·(10 + 24/t + 5·a·s/(h·t)) bytes per layer in 16 bits, twice that in 32; with recomputation 2·s·b·h for each
    layer plus one full layer.
    """
    one = training.length * training.batch * shape.width
    scores = 5 * shape.heads * training.length / shape.width
    layer = one * (10 + (24 + scores) / layout.tensor)
    remaining_stages = layout.pipeline - stage
    under_way = training.micro_batches if training.kind == "gpipe" else min(remaining_stages, training.micro_batches)
    held = under_way * layers * (2 * one if training.recompute else layer) + (layer if training.recompute else 0)
    return int(held * PRECISIONS[training.precision].parameter / 2)


def _buffer_bytes(shape: Shape, layout: Layout, training: Training, held: int, stage: int) -> int:
    """Return the bytes of a layer gathered by ZeRO stage 3, and of PipeDream's older weight versions."""
    gathered = max(shape.layer_parameters, shape.table_parameters) // layout.tensor if layout.scheme == "zero3" else 0
    older = layout.pipeline - stage - 1 if training.kind == "pipedream" else 0
    return (gathered + older * held) * PRECISIONS[training.precision].parameter


def _step_traffic(shape: Shape, cluster: Cluster, layout: Layout, training: Training, data: int) -> Traffic:
    """Return the traffic of the busiest device in one step.

    Data parallelism: ZeRO's counts. Tensor parallelism: two all-reduces forward and two backward per layer (two more
    with recomputation), each sending 2·(N − 1)/N of b·s·h elements around a ring. Pipeline: b·s·h forward and back.
    """
    size = PRECISIONS[training.precision].parameter
    trains = training.purpose == "train"
    stage = -(-max(shape.stage_parameters(n, layout.pipeline) for n in range(layout.pipeline)) // layout.tensor)
    between = traffic(stage, data, layout.scheme) * size if trains else 0
    one = training.batch * training.length * shape.width * size * (training.micro_batches if trains else 1)
    meetings = (6 if training.recompute else 4) if trains else 2
    tensor = ring_share(2 * meetings * one * shape.stage_layers(0, layout.pipeline), layout.tensor)
    pipeline = one * (2 if trains else 1) if layout.pipeline > 1 else 0
    inner = cluster.within if layout.tensor <= cluster.per_machine else cluster.between
    outer = cluster.within if cluster.devices <= cluster.per_machine else cluster.between
    return Traffic(between, tensor, pipeline, tensor / inner + (between + pipeline) / outer)


Setting = tuple[Cluster, Layout, Training]


@dataclass(frozen=True)
class Remedy:
    """One change after which the model fits.

    `lever` is the setting (`scheme`, `recompute`, `tensor`, `pipeline`, `devices`), `value` its new value as text, and
    `bytes` the most that a device then holds.
    """

    lever: str
    value: str
    cluster: Cluster
    layout: Layout
    training: Training
    bytes: int


def remedies(shape: Shape, cluster: Cluster, layout: Layout, training: Training) -> tuple[Remedy, ...]:
    """Return the smallest sufficient change of each setting that suffices alone.

    If none does, return the combination with the fewest devices, with everything divided and recomputation. Empty if
    the model already fits. Raises ParameterError.
    """
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


def _estimate(shape: Shape, setting: Setting) -> SetupEstimate | None:
    """Return the estimate, or None for an uneven division."""
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
    """Yield tensor sizes within one machine, because links between machines are too slow for tensor parallelism."""
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
