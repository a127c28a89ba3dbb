"""Ring collectives, step by step, and their explanation at three levels of detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from decodescope.core.checks.arguments import check_integer, check_kind, check_number, check_one_of, check_text
from decodescope.core.errors import ParameterError
from decodescope.core.explain.sentence import Sentence, SentenceTemplate
from decodescope.core.labs.arguments import check_lab_object
from decodescope.core.labs.formatting import decimal_bytes
from decodescope.resources.language import join_names, mark, tr

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")
FLOAT_BYTES = 4
MAX_DEVICES = 64
"""Maximum number of devices; the state after every step grows with its third power."""
Values = tuple[float, ...]


@dataclass(frozen=True)
class Chunk:
    """A device's numbers of one part of the tensor; `summed` lists the devices whose numbers are included."""

    values: Values
    summed: tuple[int, ...]


@dataclass(frozen=True)
class Hand:
    """The transfer of one part; with `adds` the receiver sums it, otherwise it stores it."""

    device: int
    to: int
    chunk: int
    adds: bool


@dataclass(frozen=True)
class RingStep:
    """The state after a step: transfers, the parts each device holds (None for nothing), and the bytes each has sent so
    far.
    """

    hands: tuple[Hand, ...]
    holds: tuple[tuple[Chunk | None, ...], ...]
    sent: tuple[int, ...]


def ring(kind: str, tensors: Sequence[Sequence[float]]) -> tuple[RingStep, ...]:
    """Return the initial state and every step.

    `tensors` has one tensor per device, of equal lengths, each divided into one part per device. For an all-gather,
    each device starts with its own part alone. Raises ParameterError.
    """
    _check_arguments(kind, tensors)
    count = len(tensors)
    holds = [[_initial_chunk(kind, tensors, device, part) for part in range(count)] for device in range(count)]
    sent = [0] * count
    steps = [RingStep((), _frozen(holds), tuple(sent))]
    for hands in _rounds(kind, count):
        moved = [(hand, holds[hand.device][hand.chunk]) for hand in hands]
        for hand, chunk in moved:
            assert chunk is not None
            sent[hand.device] += FLOAT_BYTES * len(chunk.values)
            here = holds[hand.to][hand.chunk]
            holds[hand.to][hand.chunk] = _add_chunks(here, chunk) if hand.adds and here is not None else chunk
        steps.append(RingStep(hands, _frozen(holds), tuple(sent)))
    return tuple(steps)


def _rounds(kind: str, count: int) -> Iterator[tuple[Hand, ...]]:
    """Yield the transfers step by step: part c is summed on its way from device c + 1 around to c, then passed on from
    there.
    """
    for adds in {"all_reduce": (True, False), "reduce_scatter": (True,), "all_gather": (False,)}[kind]:
        for step in range(count - 1):
            yield tuple(
                Hand(device, (device + 1) % count, (device - step - adds) % count, adds) for device in range(count)
            )


def sent_by_ring(kind: str, elements: int, device: int, count: int, root: int = 0) -> int:
    """Return how many elements a device sends for a collective on a tensor of `elements`, by adding up its transfers.

    A broadcast passes the whole tensor on from device to device, beginning at `root`; `send` sends it once.
    """
    if kind == "send":
        return elements
    if kind == "broadcast":
        return elements if (device - root) % count < count - 1 else 0
    edges = [elements * edge // count for edge in range(count + 1)]
    own = (hand.chunk for hands in _rounds(kind, count) for hand in hands if hand.device == device)
    return sum(edges[chunk + 1] - edges[chunk] for chunk in own)


def _initial_chunk(kind: str, tensors: Sequence[Sequence[float]], device: int, part: int) -> Chunk | None:
    if kind == "all_gather" and part != device:
        return None
    begin, end = (len(tensors[device]) * edge // len(tensors) for edge in (part, part + 1))
    return Chunk(tuple(tensors[device][begin:end]), (device,))


def _add_chunks(chunk: Chunk, incoming: Chunk) -> Chunk:
    values = tuple(one + other for one, other in zip(chunk.values, incoming.values, strict=True))
    return Chunk(values, tuple(sorted({*chunk.summed, *incoming.summed})))


def _frozen(held_chunks: Sequence[Sequence[Chunk | None]]) -> tuple[tuple[Chunk | None, ...], ...]:
    return tuple(tuple(row) for row in held_chunks)


def _check_arguments(kind: str, tensors: Sequence[Sequence[float]]) -> None:
    check_text("kind", kind)
    if kind not in COLLECTIVES:
        raise ParameterError(
            tr("Unknown collective {name!r}.").format(name=kind),
            tr("Choose one of {names}.").format(names=join_names(COLLECTIVES)),
            "kind",
        )
    remedy = tr("Pass a list of lists of numbers, one for each device, at most {most}.").format(most=MAX_DEVICES)
    check_kind("tensors", tensors, (list, tuple), remedy)
    for tensor in tensors:
        check_kind("tensors", tensor, (list, tuple), remedy)
        for number in tensor:
            check_number("tensors", number)
    if len(tensors) > MAX_DEVICES:
        raise ParameterError(
            tr("{count:,} devices are too many to show.").format(count=len(tensors)), remedy, "tensors"
        )
    if not tensors or len({len(tensor) for tensor in tensors}) != 1:
        raise ParameterError(tr("Each device needs a tensor of the same length."), parameter="tensors")


MAX_BYTES = 10**18
RING_TITLES = {
    "all_reduce": mark("All-reduce"),
    "reduce_scatter": mark("Reduce-scatter"),
    "all_gather": mark("All-gather"),
}
_COLLECTIVE_SAYINGS = {
    "all_reduce": SentenceTemplate(
        mark("All devices' numbers are added up, and every device gets the sums; each has sent {sent} so far."),
        mark("All-reduce: a reduce-scatter, then an all-gather. Each device has sent {sent}; a tensor has {whole}."),
        mark("All-reduce of S = {whole} on N = {count}: each sends 2·(N − 1)/N·S in 2·(N − 1) steps; so far {sent}."),
    ),
    "reduce_scatter": SentenceTemplate(
        mark(
            "All devices' numbers are added up, and each device gets the sums of one part; each has sent {sent} so far."
        ),
        mark("Reduce-scatter: device c gets the sums of part c. Each device has sent {sent}; a tensor has {whole}."),
        mark("Reduce-scatter of S = {whole} on N = {count}: each sends (N − 1)/N·S in N − 1 steps; so far {sent}."),
    ),
    "all_gather": SentenceTemplate(
        mark(
            "Each device has one part of the numbers, and every device gets all of them; each has sent {sent} so far."
        ),
        mark(
            "All-gather: the parts are passed around until every device has all. Each has sent {sent}; a "
            "tensor has {whole}."
        ),
        mark("All-gather of S = {whole} on N = {count}: each sends (N − 1)/N·S in N − 1 steps; so far {sent}."),
    ),
}
_ADDS = SentenceTemplate(
    mark("Device {device} passes part {part} to device {to}, which adds its own."),
    mark("Device {device} sends part {part} to device {to}, which adds it to its own."),
    mark("{device} → {to}: part {part}, added."),
)
_KEEPS = SentenceTemplate(
    mark("Device {device} passes part {part} to device {to}, which stores it."),
    mark("Device {device} sends part {part} to device {to}, which stores it."),
    mark("{device} → {to}: part {part}, stored."),
)


def explain_ring(kind: str, step: RingStep, whole: int) -> Sentence:
    """Explain the collective and its traffic so far; `whole` is a tensor's bytes. Raises ParameterError."""
    check_one_of("kind", kind, _COLLECTIVE_SAYINGS)
    check_lab_object("step", step, RingStep)
    check_integer("whole", whole, 0, MAX_BYTES)
    return _COLLECTIVE_SAYINGS[kind].say(
        sent=decimal_bytes(max(step.sent)), whole=decimal_bytes(whole), count=str(len(step.holds))
    )


def explain_hand(hand: Hand) -> Sentence:
    """Explain one transfer; devices and parts are counted from 1. Raises ParameterError."""
    check_lab_object("hand", hand, Hand)
    return (_ADDS if hand.adds else _KEEPS).say(
        device=str(hand.device + 1), to=str(hand.to + 1), part=str(hand.chunk + 1)
    )
