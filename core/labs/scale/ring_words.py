"""What happens in a collective, in words of three depths."""

from __future__ import annotations

from core.arguments import check_integer, check_one_of
from core.explain.sentence import Saying, Sentence
from core.labs.arguments import check_lab_object
from core.labs.figures import decimal
from core.labs.scale.ring import Hand, RingStep
from resources.language import mark

MAX_BYTES = 10**18
RING_TITLES = {
    "all_reduce": mark("All-reduce"),
    "reduce_scatter": mark("Reduce-scatter"),
    "all_gather": mark("All-gather"),
}
_COLLECTIVE_SAYINGS = {
    "all_reduce": Saying(
        mark("Everybody's numbers are added up, and everybody gets the sums; each has sent {sent} so far."),
        mark("All-reduce: a reduce-scatter, then an all-gather. Each device has sent {sent}; {whole} is a tensor."),
        mark("All-reduce of S = {whole} on N = {count}: 2·(N − 1)/N·S sent by each in 2·(N − 1) steps; so far {sent}."),
    ),
    "reduce_scatter": Saying(
        mark("Everybody's numbers are added up, and each gets the sums of one part; each has sent {sent} so far."),
        mark("Reduce-scatter: device c ends with the sums of part c. Each has sent {sent}; {whole} is a tensor."),
        mark("Reduce-scatter of S = {whole} on N = {count}: (N − 1)/N·S sent by each in N − 1 steps; so far {sent}."),
    ),
    "all_gather": Saying(
        mark("Each has one part of the numbers, and everybody gets all of them; each has sent {sent} so far."),
        mark("All-gather: the parts are handed round until all have all. Each has sent {sent}; {whole} is a tensor."),
        mark("All-gather of S = {whole} on N = {count}: (N − 1)/N·S sent by each in N − 1 steps; so far {sent}."),
    ),
}
_ADDS = Saying(
    mark("Device {device} hands part {part} to device {to}, which adds its own."),
    mark("Device {device} sends part {part} to device {to}, which adds it to its own."),
    mark("{device} → {to}: part {part}, summed."),
)
_KEEPS = Saying(
    mark("Device {device} hands part {part} to device {to}, which keeps it."),
    mark("Device {device} sends part {part} to device {to}, which keeps it."),
    mark("{device} → {to}: part {part}, kept."),
)


def explain_ring(kind: str, step: RingStep, whole: int) -> Sentence:
    """What the collective is for and what it has sent by then; `whole` is a tensor's bytes. Raises ParameterError."""
    check_one_of("kind", kind, _COLLECTIVE_SAYINGS)
    check_lab_object("step", step, RingStep)
    check_integer("whole", whole, 0, MAX_BYTES)
    return _COLLECTIVE_SAYINGS[kind].say(sent=decimal(max(step.sent)), whole=decimal(whole), count=str(len(step.holds)))


def explain_hand(hand: Hand) -> Sentence:
    """One part on its way; devices and parts are counted from 1. Raises ParameterError."""
    check_lab_object("hand", hand, Hand)
    return (_ADDS if hand.adds else _KEEPS).say(
        device=str(hand.device + 1), to=str(hand.to + 1), part=str(hand.chunk + 1)
    )
