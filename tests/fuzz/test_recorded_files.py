"""Thousands of recordings with valid checksums and invalid content: an error, or a run of the right types, in
bounded time.
"""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from decodescope import core
from decodescope.app.state.recorded_run import load_run
from decodescope.core.errors import DecodescopeError
from decodescope.core.trace import block_file, schema
from decodescope.core.trace.packing import is_of_kind, pack, unpack
from tests.core import tiny
from tests.core.spec_models import config, similar_model

ODD: list[Any] = [
    None, True, -1, 2**62, -(2**63), 2**64 - 1, 1e308, float("nan"), "", "x" * 50, b"", b"\0" * 7, [], {}, [1, 2],
    ["same"], ["same", 3], ["many", ["same", 10**6], ["same", 1]], ["each", []], ["ints", 0, 8, b"\0" * 8],
    ["some", ["same", True], None], ["doubles", ["same", False], b"", ["same", 9]], "\ud800", ("a",), {1: 2},
]  # fmt: skip


def mutated(node: Any, dice: random.Random) -> Any:
    """The same with one part of it another."""
    if isinstance(node, list) and node and dice.random() < 0.85:
        place = dice.randrange(len(node))
        return [*node[:place], *_instead(node[place], dice), *node[place + 1 :]]
    if isinstance(node, dict) and node and dice.random() < 0.85:
        name = dice.choice(list(node))
        return {**node, name: mutated(node[name], dice)}
    if type(node) is int and dice.random() < 0.5:
        return node + dice.choice([-1, 1, 255, 10**9])
    return dice.choice(ODD)


def _instead(node: Any, dice: random.Random) -> list[Any]:
    chance = dice.random()
    return [] if chance < 0.1 else [dice.choice(ODD), node] if chance < 0.2 else [mutated(node, dice)]


def spoiled(data: bytes, dice: random.Random) -> bytes:
    """A block's content with a few bytes or one part of it changed."""
    if dice.random() < 0.5:
        return pack(mutated(unpack(data), dice))
    content = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        content[dice.randrange(len(content))] = dice.randrange(256)
    return bytes(content)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[list[block_file.TraceBlock]]:
    found = []
    for number, strategy in enumerate(("sampling", "beam_search", "token_tree", "contrastive")):
        drafters = [similar_model("llama")] if strategy == "token_tree" else []
        request = core.Request(tiny.prompt(), config(), strategy, drafters=drafters, top_n=4)
        path = tmp_path_factory.mktemp("sources") / str(number)
        for _ in core.record(path, core.stream(tiny.shared("llama"), request), request):
            pass
        found.append(list(block_file.read_blocks(path)))
    return found


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(40))
def test_a_forged_file_is_refused_or_read(
    seed: int, sources: list[list[block_file.TraceBlock]], tmp_path: Path
) -> None:
    dice, path = random.Random(seed), tmp_path / "forged"
    known = {record.cls: record for record in schema.record_schemas().values()}
    for _ in range(100):
        source = dice.choice(sources)
        chosen = dice.randrange(len(source))
        with closing(block_file.BlockFile(path)) as file:
            for place, block in enumerate(source):
                file.write(block.kind, spoiled(block.data, dice) if place == chosen else block.data)
        try:
            found = core.trace.read(path)
            load_run(found)
        except DecodescopeError:
            continue
        for event in found.events:
            assert all(is_of_kind(field.kind, getattr(event, field.name)) for field in known[type(event)].fields)
