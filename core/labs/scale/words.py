"""Explain the Scale lab's estimates at three levels of detail."""

from __future__ import annotations

from decodescope.core.checks.arguments import check_bool, check_integer, check_number, check_one_of
from decodescope.core.explain.sentence import Sentence, SentenceTemplate, together
from decodescope.core.labs.arguments import check_lab_object
from decodescope.core.labs.formatting import decimal_bytes, duration, percent
from decodescope.core.labs.scale.cluster import Layout, Remedy, SetupEstimate, Training
from decodescope.core.labs.scale.pipeline_schedule import (
    BACKWARD,
    FORWARD,
    MAX_BOXES,
    MAX_TIME,
    SCHEDULE_KINDS,
    SEND,
    UPDATE,
    WAIT,
    Box,
)
from decodescope.core.labs.scale.zero_states import PRECISIONS
from decodescope.resources.language import mark, tr

_FITS = SentenceTemplate(
    mark("It fits: the fullest device needs {total} of memory and has {memory}."),
    mark("It fits: the fullest device uses {total} of its {memory}."),
    mark("It fits: states {states} + activations {activations} + buffers and cache {others} = {total} ≤ {memory}."),
)
_DOES_NOT_FIT = SentenceTemplate(
    mark("It does not fit: the fullest device needs {total} of memory, but has only {memory}."),
    mark("It does not fit: the fullest device needs {total}, but has {memory}."),
    mark(
        "Does not fit: states {states} + activations {activations} + buffers and cache {others} = {total} > {memory}."
    ),
)
_SCHEME_SAYINGS = {
    "ddp": SentenceTemplate(
        mark("Every copy of the model stores everything, so more copies do not free memory."),
        mark("Without ZeRO, each of the {data} copies stores all parameters, gradients and optimizer states."),
        mark("DDP: ({parameter} + {gradient} + {optimizer})·Φ bytes on each of N = {data} devices."),
    ),
    "zero1": SentenceTemplate(
        mark("The data needed only for learning is stored once, divided among the {data} copies."),
        mark("ZeRO stage 1: the optimizer states are divided among the {data} copies."),
        mark("ZeRO P_os: ({parameter} + {gradient})·Φ + {optimizer}·Φ/N bytes, N = {data}."),
    ),
    "zero2": SentenceTemplate(
        mark("The data needed only for learning is divided among the {data} copies, and so are the corrections."),
        mark("ZeRO stage 2: optimizer states and gradients are divided among the {data} copies."),
        mark("ZeRO P_os+g: {parameter}·Φ + ({gradient} + {optimizer})·Φ/N bytes, N = {data}."),
    ),
    "zero3": SentenceTemplate(
        mark("Everything is divided among the {data} copies; each fetches the rest briefly when needed."),
        mark("ZeRO stage 3: parameters are divided among the {data} copies too, and gathered layer by layer."),
        mark(
            "ZeRO P_os+g+p: ({parameter} + {gradient} + {optimizer})·Φ/N bytes, N = {data}; half as "
            "much again is sent, 3·(N − 1)/N·Φ."
        ),
    ),
}
_INFERENCE = SentenceTemplate(
    mark("Only the model and its memory of the text are stored, because nothing is learned."),
    mark("Generating text needs only the parameters and the KV cache."),
    mark("Inference: {parameter}·Φ bytes and 2·layers·kv_heads·head_width·length·batch·{parameter} of cache."),
)
_TRAFFIC = SentenceTemplate(
    mark("In each step a device sends {sent} to others, which takes about {time}."),
    mark("A device sends {sent} per step ({data} data, {tensor} tensor, {pipeline} pipeline parallel) in {time}."),
    mark("Traffic per step and device: {data} (data) + {tensor} (tensor) + {pipeline} (pipeline) = {sent}; {time}."),
)


def explain_estimate(estimate: SetupEstimate, layout: Layout, training: Training) -> Sentence:
    """Explain whether it fits, how the states are divided, the traffic, and the idle time of a pipeline.

    Raises ParameterError.
    """
    check_lab_object("found", estimate, SetupEstimate)
    check_lab_object("layout", layout, Layout)
    check_lab_object("training", training, Training)
    layout.check()
    training.check()
    fullest, size = estimate.fullest, PRECISIONS[training.precision]
    verdict = (_FITS if estimate.fits else _DOES_NOT_FIT).say(
        total=decimal_bytes(fullest.total),
        memory=decimal_bytes(estimate.memory),
        states=decimal_bytes(fullest.states),
        activations=decimal_bytes(fullest.activations),
        others=decimal_bytes(fullest.buffers + fullest.cache),
    )
    why = _INFERENCE if training.purpose == "write" else _SCHEME_SAYINGS[layout.scheme]
    bytes_each = {name: str(value) for name, value in size._asdict().items()}
    stages, count = layout.pipeline, training.micro_batches
    idle = explain_idle(training.kind, stages, count, estimate.idle) if estimate.idle else ""
    return together(verdict, why.say(data=f"{estimate.data:,}", **bytes_each), _explain_traffic(estimate), idle)


def _explain_traffic(estimate: SetupEstimate) -> Sentence:
    sent = estimate.traffic
    if not sent.total:
        return Sentence()
    return _TRAFFIC.say(
        sent=decimal_bytes(sent.total),
        data=decimal_bytes(sent.data),
        tensor=decimal_bytes(sent.tensor),
        pipeline=decimal_bytes(sent.pipeline),
        time=duration(sent.seconds),
    )


_REMEDIES = {
    "scheme": mark("{value}: {bytes}"),
    "recompute": mark("Recompute activations: {bytes}"),
    "tensor": mark("{value} tensor parts: {bytes}"),
    "pipeline": mark("{value} pipeline stages: {bytes}"),
    "devices": mark("Number of devices {value}: {bytes}"),
    "all": mark("ZeRO-3, recomputed activations, tensor parts {tensor}, devices {devices}: {bytes}"),
}
SCHEME_TITLES = {
    "ddp": mark("No ZeRO (DDP)"),
    "zero1": mark("ZeRO-1: optimizer states"),
    "zero2": mark("ZeRO-2: + gradients"),
    "zero3": mark("ZeRO-3: + parameters"),
}
RUN_TITLES = SCHEME_TITLES | {
    "tensor": mark("Tensor parallel"),
    "gpipe": mark("Pipeline: GPipe"),
    "1f1b": mark("Pipeline: 1F1B"),
    "pipedream": mark("Pipeline: PipeDream"),
}
KIND_TITLES = {"gpipe": mark("GPipe"), "1f1b": mark("1F1B"), "pipedream": mark("PipeDream")}
WEIGHTS_TITLES = {
    "stashed": mark("Forward version (stashing)"),
    "synced": mark("First-stage version (sync)"),
    "latest": mark("Latest: neither"),
}
PART_TITLES = {
    "parameters": mark("parameters"),
    "gradients": mark("gradients"),
    "optimizer": mark("optimizer states"),
    "activations": mark("activations"),
    "buffers": mark("buffers"),
    "cache": mark("cache"),
}


def explain_remedy(remedy: Remedy) -> str:
    """Describe a sufficient change, and the bytes on the fullest device. Raises ParameterError."""
    check_lab_object("remedy", remedy, Remedy)
    value = tr(SCHEME_TITLES[remedy.value]) if remedy.lever == "scheme" else remedy.value
    return tr(_REMEDIES[remedy.lever]).format(
        value=value,
        bytes=decimal_bytes(remedy.bytes),
        tensor=remedy.layout.tensor,
        devices=f"{remedy.cluster.devices:,}",
    )


_IDLE = SentenceTemplate(
    mark("While the devices pass the work along, they spend {share} of their time waiting."),
    mark("The devices are idle {share} of the time, because the pipeline fills and drains once per batch."),
    mark("Idle fraction: (K − 1)/(M + K − 1) = {one}/{all} = {share}, K = {stages} stages, M = {count} micro-batches."),
)
_STEADY = SentenceTemplate(
    mark("The devices wait {share} of the time, only at the beginning and the end."),
    mark("{share} idle in the time shown, only while the pipeline fills and drains; none in the steady state."),
    mark("Idle fraction {share}, 0 when steady: no flush, one update per micro-batch, up to K = {stages} versions."),
)
_WITH_SENDING = SentenceTemplate(
    mark("While the devices pass the work along, they spend {share} of their time waiting."),
    mark("The devices are idle {share} of the time, because sending takes time too and nothing is computed meanwhile."),
    mark("Idle fraction {share}, measured over the schedule; with sending time, the formula is only a lower bound."),
)


def explain_idle(kind: str, stages: int, count: int, share: float, sends_at_once: bool = True) -> Sentence:
    """Explain how much idle time a schedule has, and why; the formulas assume that sending is instantaneous.

    Raises ParameterError.
    """
    check_one_of("kind", kind, SCHEDULE_KINDS)
    check_integer("stages", stages, 1, MAX_BOXES)
    check_integer("count", count, 1, MAX_BOXES)
    check_number("share", share, 0, 1)
    check_bool("sends_at_once", sends_at_once)
    saying = (_STEADY if kind == "pipedream" else _IDLE) if sends_at_once else _WITH_SENDING
    figures = {"one": str(stages - 1), "all": str(count + stages - 1), "stages": str(stages), "count": str(count)}
    return saying.say(share=percent(share), **figures)


_BOXES = {
    FORWARD: SentenceTemplate(
        mark("Device {device} reads part {number} of the texts, after learning {version} times."),
        mark("Device {device} computes micro-batch {number} forward, with version {version} of its weights."),
        mark("F{number} on stage {device}: t = {start} … {stop}, w^({version})."),
    ),
    BACKWARD: SentenceTemplate(
        mark(
            "Device {device} works out the corrections for part {number} with what it knew after learning "
            "{version} times."
        ),
        mark("Device {device} computes micro-batch {number} backward, with version {version} of its weights."),
        mark("B{number} on stage {device}: t = {start} … {stop}, ∇f at w^({version})."),
    ),
    UPDATE: SentenceTemplate(
        mark("Device {device} has now learned {version} times."),
        mark("Device {device} updates its weights to version {version}."),
        mark("Update on stage {device} at t = {stop}: w^({version})."),
    ),
    SEND: SentenceTemplate(
        mark("Device {device} passes part {number} to its neighbour."),
        mark("Device {device} sends micro-batch {number} to its neighbour."),
        mark("Stage {device} sends micro-batch {number}: t = {start} … {stop}."),
    ),
    WAIT: SentenceTemplate(
        mark("Device {device} waits for part {number}."),
        mark("Device {device} waits for micro-batch {number} from its neighbour."),
        mark("Stage {device} waits for micro-batch {number}: t = {start} … {stop}."),
    ),
}
_FIRST_VERSION = {
    FORWARD: mark("Device {device} reads part {number} of the texts, after learning once."),
    BACKWARD: mark("Device {device} works out the corrections for part {number}, as after learning once."),
    UPDATE: mark("Device {device} has now learned once."),
}
"""The plain wording where the weight version is 1."""
_WAITS = SentenceTemplate(
    mark("Device {device} waits."),
    mark("Device {device} is idle, because its next input has not arrived."),
    mark("Stage {device}: idle at t = {time}."),
)
_DONE = SentenceTemplate(
    mark("Device {device} has finished its part."),
    mark("Device {device} has finished the batch."),
    mark("Stage {device}: finished at t = {time}."),
)


def explain_box(box: Box) -> Sentence:
    """Explain a box: the work of the device and its weight version.

    Devices and micro-batches are counted from 1, as in the papers. Raises ParameterError.
    """
    check_lab_object("box", box, Box)
    check_one_of("kind", box.kind, _BOXES)
    saying = _BOXES[box.kind]
    if box.version == 1:
        saying = saying._replace(plain=_FIRST_VERSION.get(box.kind, saying.plain))
    return saying.say(
        device=str(box.device + 1),
        number=str(box.micro_batch + 1),
        version=str(box.version),
        start=f"{box.start:g}",
        stop=f"{box.stop:g}",
    )


def explain_waiting(device: int, time: float, is_done: bool = False) -> Sentence:
    """Explain an idle device, which is waiting or done. Raises ParameterError."""
    check_integer("device", device, 0, MAX_BOXES)
    check_number("time", time, 0, MAX_TIME)
    check_bool("is_done", is_done)
    return (_DONE if is_done else _WAITS).say(device=str(device + 1), time=f"{time:g}")
