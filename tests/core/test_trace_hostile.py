"""Recorded runs that no run wrote: each is refused where it is read, before a view or a page works on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decodescope import core
from decodescope.core import trace
from decodescope.core.common.size_terms import Length, NamedNumber, ProductOf, QuotientOf, RemainderOf, SumOf
from decodescope.core.errors import TraceError
from decodescope.core.events import (
    Alternative,
    BeamCandidate,
    BeamsRanked,
    BeamStep,
    CacheMeasured,
    CachePlan,
    CostCurve,
    DrafterChoice,
    DraftNode,
    DraftRound,
    Event,
    Finished,
    Hypothesis,
    MediumRead,
    Metrics,
    Prefilled,
    PromptToken,
    RunStarted,
    SequenceFinished,
    TokenChosen,
    TokenCompared,
)
from decodescope.core.trace import block_file, schema
from decodescope.core.trace.block_writer import BlockWriter
from decodescope.core.trace.packing import pack, unpack
from decodescope.core.trace.validation import holds_numbers, range_of

STARTED = RunStarted("greedy", "m", "cpu", "float32", "dynamic", 0, (PromptToken(1, "Once"),), (("top_k", 5),))
TOKEN = TokenChosen(0, 0, 7, "a", "a", 0.5, 0.5, -0.75, -0.75, 1, 0.125, 0.0)
CANDIDATE = BeamCandidate(1, 0, 7, "a", 0.5, -0.7, -0.7, -0.7, 1, "kept", 0.5, -0.7, 1, 0.1)
STEP = BeamStep(0, (CANDIDATE,), 1, 0.1)
NODE = DraftNode(1, 0, 7, "a", 1, 0, 0.5, 0.5, "accepted")
ROUND = DraftRound(0, 0, (NODE,), (1,), 8, "b", "bonus", 0.1, 0.1, 0.1, 1)
PLAN = CachePlan("dynamic", ProductOf((Length(), NamedNumber(4))), 1, (1, 9), (4, 36), (4, 36))
MEASURED = CacheMeasured(0, 1, 8, 8, (("device", "keys", 8),), (8,))
FINISHED = Finished("completed", ((7,),), ("a",), Metrics(), None, (0,))
COMPARED = TokenCompared(0, 7, 0.5, -0.7, 1, 0.1, 0.1)
PICTURE = MediumRead("p.png", "picture", "", "prompt", 0, 0, 1, 1)


def chained(levels: int) -> Any:
    size: Any = Length()
    for _ in range(levels):
        size = SumOf((size,))
    return size


CONSISTENT: list[list[Event]] = [
    [STARTED, Prefilled(1, 0.1), TOKEN, replace(TOKEN, step=1), SequenceFinished(0, "length"), FINISHED],
    [STARTED, STEP, BeamStep(1, (replace(CANDIDATE, node=2, parent=1),), 2, 0.1)],
    [STARTED, ROUND, TOKEN, PLAN, MEASURED, CostCurve(((1, 1.0), (2, 1.1)))],
    [replace(STARTED, media=(PICTURE,)), replace(TOKEN, raw_probability=math.nan, entropy=math.nan)],
    [STARTED, TOKEN, COMPARED],
]
FORGED: dict[str, list[Event]] = {
    "two starts": [STARTED, STARTED],
    "a text too many": [STARTED, replace(TOKEN, sequence=1)],
    "a text far beyond": [STARTED, replace(TOKEN, sequence=10**12)],
    "a text without a start": [replace(TOKEN, sequence=9)],
    "more texts than can be": [replace(STARTED, sequences=10**9)],
    "more texts than the file can have": [replace(STARTED, sequences=900_000)],
    "a step left out": [STARTED, TOKEN, replace(TOKEN, step=2)],
    "a step twice": [STARTED, TOKEN, TOKEN],
    "a step far beyond": [STARTED, replace(TOKEN, step=2**40)],
    "a negative step": [STARTED, replace(TOKEN, step=-1)],
    "a probability beyond 1": [STARTED, replace(TOKEN, probability=1e308)],
    "a negative probability": [STARTED, replace(TOKEN, raw_probability=-0.5)],
    "a time that is no number": [STARTED, replace(TOKEN, seconds=math.nan)],
    "a time without end": [STARTED, replace(TOKEN, seconds=math.inf)],
    "a number of a thousand digits": [STARTED, replace(TOKEN, id=10**5000)],
    "an alternative's rank": [STARTED, replace(TOKEN, alternatives=(Alternative(1, "", 0.1, 0.1, -1.0, -1.0, -4),))],
    "a token of a megabyte": [STARTED, replace(TOKEN, piece="x" * 2**20)],
    "a picture of more patches than positions": [replace(STARTED, media=(replace(PICTURE, rows=10**6, columns=9),))],
    "a picture behind the prompt": [replace(STARTED, media=(replace(PICTURE, first=5, last=6),))],
    "a comparison with no token": [STARTED, COMPARED],
    "a beam without a parent": [STARTED, replace(STEP, candidates=(replace(CANDIDATE, parent=9),))],
    "a beam that is its own parent": [STARTED, replace(STEP, candidates=(replace(CANDIDATE, parent=1),))],
    "a beam twice": [STARTED, STEP, replace(STEP, step=1)],
    "a best beam that is not there": [STARTED, replace(STEP, best=7)],
    "a group far beyond": [STARTED, replace(STEP, candidates=(replace(CANDIDATE, group=90_000),))],
    "a beam step left out": [STARTED, replace(STEP, step=1)],
    "a beam step among tokens": [STARTED, TOKEN, STEP],
    "a ranking of strangers": [STARTED, STEP, BeamsRanked((Hypothesis(9, (7,), "a", -0.7, 1, -0.7, True),))],
    "a draft without a parent": [STARTED, replace(ROUND, nodes=(replace(NODE, parent=5),))],
    "a draft far too deep": [STARTED, replace(ROUND, nodes=(replace(NODE, depth=10**9),))],
    "an accepted draft that is not there": [STARTED, replace(ROUND, accepted=(4,))],
    "a drafter without a letter": [STARTED, replace(ROUND, nodes=(replace(NODE, drafter=10**7),))],
    "a choice of no drafter": [STARTED, replace(ROUND, choice=DrafterChoice(3, "best", (1.0,), (1,)))],
    "a choice of other lengths": [STARTED, replace(ROUND, choice=DrafterChoice(0, "best", (1.0, 2.0), (1,)))],
    "rounds out of order": [STARTED, replace(ROUND, step=5), replace(ROUND, step=1)],
    "a curve out of order": [STARTED, CostCurve(((2, 1.0), (1, 1.0)))],
    "a plan of other lengths": [STARTED, replace(PLAN, predicted=(4,))],
    "a plan of nothing": [STARTED, replace(PLAN, lengths=(), predicted=(), dynamic=())],
    "a plan of no room": [STARTED, replace(PLAN, capacity=0)],
    "a plan of no window": [STARTED, replace(PLAN, window=0)],
    "a plan out of order": [STARTED, replace(PLAN, lengths=(9, 1))],
    "a plan divided by nothing": [STARTED, replace(PLAN, size=QuotientOf(Length(), NamedNumber(0)))],
    "a plan in blocks of nothing": [STARTED, replace(PLAN, size=RemainderOf(0, "block"))],
    "a plan beyond all memory": [STARTED, replace(PLAN, size=ProductOf((NamedNumber(2**62),) * 100))],
    "a plan nested deep": [STARTED, replace(PLAN, size=chained(48))],
    "a cache in a strange place": [STARTED, replace(MEASURED, parts=(("moon", "keys", 8),))],
    "a cache of a strange part": [STARTED, replace(MEASURED, parts=(("device", "dust", 8),))],
    "held places out of order": [STARTED, replace(MEASURED, held=((5, 2),))],
    "a negative size": [STARTED, replace(MEASURED, bytes=-1)],
    "an ending of no text": [STARTED, SequenceFinished(5, "length")],
    "results of other lengths": [STARTED, TOKEN, replace(FINISHED, texts=("a", "b"))],
    "scores of other lengths": [STARTED, TOKEN, replace(FINISHED, scores=(1.0, 2.0))],
    "an order of strangers": [STARTED, TOKEN, replace(FINISHED, order=(4,))],
}


def recorded(path: Path, events: Sequence[Event]) -> Path:
    for _ in core.record(path, iter(events), core.Request("Once")):
        pass
    return path


@pytest.mark.parametrize("number", range(len(CONSISTENT)))
def test_a_consistent_record_is_read(number: int, tmp_path: Path) -> None:
    found = trace.read(recorded(tmp_path / "run", CONSISTENT[number]))
    assert found.trouble is None
    assert repr(found.events) == repr(CONSISTENT[number])


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_record_is_refused(name: str, tmp_path: Path) -> None:
    path = recorded(tmp_path / "run", FORGED[name])
    with pytest.raises(TraceError) as error:
        list(core.replay(path))
    assert error.value.cause
    assert error.value.remedy
    assert trace.read(path).trouble is not None


def test_every_number_of_an_event_has_a_range() -> None:
    for record in schema.record_schemas().values():
        for field in record.fields:
            if holds_numbers(field.kind):
                assert range_of(record.name, field.name) is not None, f"{record.name}.{field.name}"


def with_events_block(path: Path, data: bytes) -> Path:
    """A recording whose block of events has this content."""
    header = next(iter(block_file.read_blocks(recorded(path, [STARTED]))))
    with closing(block_file.BlockFile(path)) as file:
        file.write(block_file.HEADER, header.data)
        file.write(block_file.EVENTS, data)
    return path


def repeated(event: Event, column: str, value: object, count: int) -> bytes:
    """A block of `count` times the event, in which one column holds the same value throughout."""
    block: Any = unpack(BlockWriter().encode_block([event]))
    names = [field.name for field in schema.record_schemas()[type(event).__name__].fields]
    table = block[4][0][1]
    table[1 + names.index(column)] = ["same", value]
    return pack([count, *block[1:]])


@pytest.mark.parametrize(
    ("event", "column", "value", "count"),
    [
        (TOKEN, "text", "x" * 60_000, 400),
        (TOKEN, "alternatives", (), 2**19),
        (TOKEN, "alternatives", (Alternative(1, "", 0.1, 0.1, -1.0, -1.0, 4),) * 2000, 2000),
        (STARTED, "settings", tuple(("x", n) for n in range(3000)), 1000),
    ],
)
def test_excessive_decompressed_size_is_refused(
    event: Event, column: str, value: object, count: int, tmp_path: Path
) -> None:
    path = with_events_block(tmp_path / "run", repeated(event, column, value, count))
    assert path.stat().st_size < 100_000
    with pytest.raises(TraceError, match="after decompression"):
        list(core.replay(path))


@pytest.mark.parametrize(
    "value", [10**5000, {"a": [[[[1e9, "x" * 70_000]]]]}, None], ids=["digits", "nested", "nothing"]
)
def test_settings_may_be_large_but_not_huge_integers(value: object, tmp_path: Path) -> None:
    path = with_events_block(tmp_path / "run", repeated(STARTED, "settings", (("x", value),), 1))
    if isinstance(value, int):
        with pytest.raises(TraceError, match="too many digits"):
            list(core.replay(path))
    else:
        assert trace.read(path).events == [replace(STARTED, settings=(("x", value),))]


def test_alternating_beams_beyond_the_work_limit_are_refused(tmp_path: Path) -> None:
    """Two long texts that take turns in the lead: each change walks both."""
    events: list[Event] = [STARTED]
    parents = [0, 0]
    for step in range(9000):
        nodes = (2 * step + 1, 2 * step + 2)
        pair = tuple(replace(CANDIDATE, node=node, parent=parents[side]) for side, node in enumerate(nodes))
        events.append(BeamStep(step, pair, nodes[step % 2], 0.1))
        parents = list(nodes)
    with pytest.raises(TraceError, match="more work"):
        list(core.replay(recorded(tmp_path / "run", events)))


def test_an_unknown_choice_is_refused(tmp_path: Path) -> None:
    """Only a file of a later version may hold choices that this one does not list."""
    data = repeated(SequenceFinished(0, "length"), "reason", "boredom", 1)
    with pytest.raises(TraceError):
        list(core.replay(with_events_block(tmp_path / "run", data)))
