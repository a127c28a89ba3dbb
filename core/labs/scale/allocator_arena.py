"""Placement of memory blocks: first fit, or with long-lived blocks separated from short-lived ones.

The latter is ZeRO-R's M_D (Rajbhandari et al. 2020, section 6.3).
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from decodescope.core.checks.arguments import check_bool, check_integer, check_text
from decodescope.core.labs.arguments import lab_object_list

MAX_BYTES = 10**18
"""Maximum bytes of a block, and maximum time."""
LONG_LIVED_KINDS = ("checkpoint", "gradient")
"""Kinds of long-lived blocks: from a layer's forward to its backward, and from its backward to the update."""


@dataclass(frozen=True)
class Block:
    """Bytes held from one moment to another; `kind` is checkpoint, gradient, buffer or other."""

    start: int
    stop: int
    bytes: int
    kind: str = "other"

    def check(self) -> None:
        """Raise ParameterError if a field is invalid."""
        for name, value in (("start", self.start), ("stop", self.stop), ("bytes", self.bytes)):
            check_integer(name, value, 0, MAX_BYTES)
        check_text("kind", self.kind)


@dataclass(frozen=True)
class PlacedBlock:
    """A block and its offset in bytes."""

    block: Block
    offset: int


@dataclass(frozen=True)
class Arena:
    """Placed blocks. `live`: maximum bytes held; `top`: memory this takes; `gaps`: maximum bytes between blocks;
    `most`: maximum bytes of each kind.
    """

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
    """Place the blocks in order. With `apart`, long-lived blocks get contiguous memory of their own at the bottom.

    Raises ParameterError.
    """
    blocks = lab_object_list("blocks", blocks, Block)
    check_bool("apart", apart)
    for block in blocks:
        block.check()
    own, floor = (
        _place_contiguously([block for block in blocks if block.kind in LONG_LIVED_KINDS]) if apart else ([], 0)
    )
    rest = [block for block in blocks if not (apart and block.kind in LONG_LIVED_KINDS)]
    placed = (*own, *_place_first_fit(rest, floor))
    live = top = gaps = 0
    max_bytes_by_kind: dict[str, int] = {}
    for held in _live_blocks(placed):
        sizes = Counter[str]()
        for each in held:
            sizes[each.block.kind] += each.block.bytes
        max_bytes_by_kind |= {kind: max(size, max_bytes_by_kind.get(kind, 0)) for kind, size in sizes.items()}
        live, top = max(live, sizes.total()), max(top, max(map(_end_offset, held)))
        loose = [each for each in held if each.offset >= floor]
        gaps = max(gaps, max(map(_end_offset, loose), default=floor) - floor - sum(each.block.bytes for each in loose))
    return Arena(placed, live, max(top, floor), gaps, max_bytes_by_kind)


def _end_offset(block: PlacedBlock) -> int:
    return block.offset + block.block.bytes


def _place_contiguously(blocks: Iterable[Block]) -> tuple[list[PlacedBlock], int]:
    """Place the long-lived blocks contiguously, checkpoints first, and return the room they take."""
    placed, end = [], 0
    for kind in LONG_LIVED_KINDS:
        for block in (block for block in blocks if block.kind == kind):
            placed.append(PlacedBlock(block, end))
            end += block.bytes
    return placed, end


def _place_first_fit(blocks: Iterable[Block], floor: int) -> list[PlacedBlock]:
    """Place each block in the first gap that is large enough."""
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


def _live_blocks(placed_blocks: Sequence[PlacedBlock]) -> Iterable[list[PlacedBlock]]:
    """Yield the blocks held after each allocation."""
    held: list[PlacedBlock] = []
    for each in sorted(placed_blocks, key=lambda each: each.block.start):
        held = [other for other in held if other.block.stop > each.block.start]
        held.append(each)
        yield held
