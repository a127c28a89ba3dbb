"""Where blocks of memory come to lie: as an allocator puts them that takes the first gap, or with what stays long kept
apart from what is soon given back (ZeRO-R's M_D, Rajbhandari et al. 2020, section 6.3)."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from core.arguments import check_text, check_truth, check_whole
from core.labs.arguments import all_made

MOST = 10**18
"""Bytes of a block, and moments."""
STAYS = ("checkpoint", "gradient")
"""Kinds of blocks that stay long: from a layer's forward to its backward, and from there to the update."""


@dataclass(frozen=True)
class Block:
    """Bytes that are held from one moment to another; `kind` is checkpoint, gradient, buffer or other."""

    start: int
    stop: int
    bytes: int
    kind: str = "other"

    def check(self) -> None:
        """Raises ParameterError."""
        for name, value in (("start", self.start), ("stop", self.stop), ("bytes", self.bytes)):
            check_whole(name, value, 0, MOST)
        check_text("kind", self.kind)


@dataclass(frozen=True)
class PlacedBlock:
    """A block and its first byte."""

    block: Block
    place: int


@dataclass(frozen=True)
class Arena:
    """Blocks in their places. `live`: bytes held at most; `top`: how much memory that takes, `gaps`: the bytes between
    blocks when they are most; `most`: bytes of each kind at most."""

    placed: tuple[PlacedBlock, ...]
    live: int
    top: int
    gaps: int
    most: Mapping[str, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The last moment."""
        return max((each.block.stop for each in self.placed), default=0)


def arena(blocks: Iterable[Block], apart: bool = False) -> Arena:
    """Place them in their order. `apart`: what stays has memory of its own below, taken beforehand, and is laid one
    behind the other there. Raises ParameterError."""
    blocks = all_made("blocks", blocks, Block)
    check_truth("apart", apart)
    for block in blocks:
        block.check()
    own, floor = _laid([block for block in blocks if block.kind in STAYS]) if apart else ([], 0)
    rest = [block for block in blocks if not (apart and block.kind in STAYS)]
    placed = (*own, *_fitted(rest, floor))
    live = top = gaps = 0
    most: dict[str, int] = {}
    for held in _moments(placed):
        sizes = Counter[str]()
        for each in held:
            sizes[each.block.kind] += each.block.bytes
        most |= {kind: max(size, most.get(kind, 0)) for kind, size in sizes.items()}
        live, top = max(live, sizes.total()), max(top, max(map(_end, held)))
        loose = [each for each in held if each.place >= floor]
        gaps = max(gaps, max(map(_end, loose), default=floor) - floor - sum(each.block.bytes for each in loose))
    return Arena(placed, live, max(top, floor), gaps, most)


def _end(placed: PlacedBlock) -> int:
    return placed.place + placed.block.bytes


def _laid(blocks: Iterable[Block]) -> tuple[list[PlacedBlock], int]:
    """One behind the other, and the room they take; checkpoints begin at the bottom."""
    placed, end = [], 0
    for kind in STAYS:
        for block in (block for block in blocks if block.kind == kind):
            placed.append(PlacedBlock(block, end))
            end += block.bytes
    return placed, end


def _fitted(blocks: Iterable[Block], floor: int) -> list[PlacedBlock]:
    """Each in the first gap that is large enough."""
    placed: list[PlacedBlock] = []
    held: list[tuple[int, int, int]] = []
    for block in sorted(blocks, key=lambda block: block.start):
        held = [(place, end, stop) for place, end, stop in held if stop > block.start]
        at = floor
        for place, end, _ in held:
            if place - at >= block.bytes:
                break
            at = max(at, end)
        insort(held, (at, at + block.bytes, block.stop))
        placed.append(PlacedBlock(block, at))
    return placed


def _moments(placed: Sequence[PlacedBlock]) -> Iterable[list[PlacedBlock]]:
    """What is held whenever something has come."""
    held: list[PlacedBlock] = []
    for each in sorted(placed, key=lambda each: each.block.start):
        held = [other for other in held if other.block.stop > each.block.start]
        held.append(each)
        yield held
