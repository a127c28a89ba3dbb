"""The memory that a piece of work takes and gives back, by torch's profiler: every block of it, from when to when."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor
from torch.profiler import ProfilerActivity, profile, record_function

from core.file_writing import temporary_folder
from core.labs.scale.allocator_arena import Block

MIN_BLOCK_BYTES = 2048
"""Bytes: smaller ones, thousands of them, are left out."""
_MARK = "held:"


def mark_memory(kind: str, tensors: Iterable[Tensor]) -> None:
    """Say of what kind the memory of these is."""
    for tensor in tensors:
        with record_function(f"{_MARK}{kind}:{tensor.untyped_storage().data_ptr()}"):
            pass


def record_blocks(work: Callable[[], object]) -> list[Block]:
    """The blocks, by their beginning; moments count what has come and gone. What is not given back stays to the end."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    with temporary_folder() as folder:
        file = folder / "trace.json"
        profiler.export_chrome_trace(str(file))
        found = json.loads(file.read_bytes())["traceEvents"]
    told = [event for event in found if event["name"] == "[memory]" or event["name"].startswith(_MARK)]
    return blocks_from_events(sorted(told, key=lambda event: float(event["ts"])))


def blocks_from_events(events: Iterable[dict[str, Any]]) -> list[Block]:
    """Of the profiler's events, by their time."""
    held: dict[int, tuple[int, int, str]] = {}
    found: list[Block] = []
    moment = 0
    for event in events:
        if event["name"] != "[memory]":
            _, kind, place = event["name"].split(":")
            if int(place) in held:
                start, size, _ = held[int(place)]
                held[int(place)] = (start, size, kind)
            continue
        place, size = event["args"]["Addr"], event["args"]["Bytes"]
        if size >= MIN_BLOCK_BYTES:
            held[place] = (moment, size, "other")
        elif size < 0 and place in held:
            start, taken, kind = held.pop(place)
            found.append(Block(start, moment, taken, kind))
        else:
            continue
        moment += 1
    found += [Block(start, moment, size, kind) for start, size, kind in held.values()]
    return sorted(found, key=lambda block: block.start)
