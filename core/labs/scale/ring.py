"""Collectives around a ring, step by step: every device sends to the next one, and all of them at once.

Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.arguments import check_kind, check_number, check_text
from core.errors import ParameterError
from resources.language import tr

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")
FLOAT_BYTES = 4
MAX_DEVICES = 64
"""Devices: what is held is told after every step, which grows with their third power."""
Values = tuple[float, ...]


@dataclass(frozen=True)
class Chunk:
    """What a device holds of one part of the tensor; `summed` are the devices whose numbers are in it."""

    values: Values
    summed: tuple[int, ...]


@dataclass(frozen=True)
class Hand:
    """One part on its way: `adds` where the receiver sums, else it keeps what came."""

    device: int
    to: int
    chunk: int
    adds: bool


@dataclass(frozen=True)
class RingStep:
    """After a step: who sent what, what each device holds now (by part; None: nothing), bytes each has sent so far."""

    hands: tuple[Hand, ...]
    holds: tuple[tuple[Chunk | None, ...], ...]
    sent: tuple[int, ...]


def ring(kind: str, tensors: Sequence[Sequence[float]]) -> tuple[RingStep, ...]:
    """The beginning, then every step. A tensor a device, of equal lengths; it is cut into as many parts as there are
    devices. To be gathered, each device has its own part alone. Raises ParameterError."""
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
    """Who sends which part, step by step: part c is summed on its way from device c + 1 round to c, which then has all
    of it, and handed on from there."""
    for adds in {"all_reduce": (True, False), "reduce_scatter": (True,), "all_gather": (False,)}[kind]:
        for step in range(count - 1):
            yield tuple(
                Hand(device, (device + 1) % count, (device - step - adds) % count, adds) for device in range(count)
            )


def _initial_chunk(kind: str, tensors: Sequence[Sequence[float]], device: int, part: int) -> Chunk | None:
    if kind == "all_gather" and part != device:
        return None
    begin, end = (len(tensors[device]) * edge // len(tensors) for edge in (part, part + 1))
    return Chunk(tuple(tensors[device][begin:end]), (device,))


def _add_chunks(held: Chunk, incoming: Chunk) -> Chunk:
    values = tuple(one + other for one, other in zip(held.values, incoming.values, strict=True))
    return Chunk(values, tuple(sorted({*held.summed, *incoming.summed})))


def _frozen(holds: Sequence[Sequence[Chunk | None]]) -> tuple[tuple[Chunk | None, ...], ...]:
    return tuple(tuple(row) for row in holds)


def _check_arguments(kind: str, tensors: Sequence[Sequence[float]]) -> None:
    check_text("kind", kind)
    if kind not in COLLECTIVES:
        raise ParameterError(
            tr("There is no collective {name!r}.").format(name=kind),
            tr("Choose one of {names}.").format(names=", ".join(COLLECTIVES)),
            "kind",
        )
    remedy = tr("Give a list of lists of numbers, one for each device, {most} at most.").format(most=MAX_DEVICES)
    check_kind("tensors", tensors, (list, tuple), remedy)
    for tensor in tensors:
        check_kind("tensors", tensor, (list, tuple), remedy)
        for number in tensor:
            check_number("tensors", number)
    if len(tensors) > MAX_DEVICES:
        raise ParameterError(
            tr("{count:,} devices are more than can be told.").format(count=len(tensors)), remedy, "tensors"
        )
    if not tensors or len({len(tensor) for tensor in tensors}) != 1:
        raise ParameterError(tr("Each device needs a tensor, all of one length."), parameter="tensors")
