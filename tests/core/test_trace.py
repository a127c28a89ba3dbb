"""Recorded runs: reading returns what was written, for every event and strategy, also from damaged files."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import GenerationConfig

from decodescope import core
from decodescope.core import trace
from decodescope.core.errors import NumericError, TraceError
from decodescope.core.events import EVENTS, Event, Finished, SequenceFinished, Stage, TokenChosen
from decodescope.core.models.loaded_model import identify
from decodescope.core.trace import block_file, recorder, schema
from decodescope.core.trace import trace_file as trace_module
from decodescope.core.trace.block_reader import BlockReader
from decodescope.core.trace.block_writer import BlockWriter
from decodescope.core.trace.packing import is_of_kind, pack, unpack
from decodescope.core.trace.schema import layout_of, schema_description
from tests.core import head_checkpoints, random_events, tiny
from tests.core.spec_models import similar_model

REQUEST = core.Request("Once")
ONCE = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
RUNS: dict[str, dict[str, Any]] = {
    "beam_search": {"num_beams": 3},
    "beam_sampling": {"do_sample": True, "num_beams": 3},
    "diverse_beam_search": {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.5},
    "constrained_beam_search": {"num_beams": 3, "force_words_ids": [[7, 8]]},
    "contrastive": {"penalty_alpha": 0.6, "top_k": 4},
    "dola": {"dola_layers": "high"},
    "sampling": {"do_sample": True, "temperature": 0.8, "top_k": 20, "top_p": 0.9, "num_return_sequences": 2},
    "early_exit": {"assistant_early_exit": 2},
}


def same(read: list[Event], written: list[Event]) -> bool:
    """Equal, and of the same types throughout; one thing that is not a number stands for another."""
    return repr(read) == repr(written)


def written(path: Path, events: list[Event], request: core.Request = REQUEST, **more: Any) -> Path:
    assert list(core.record(path, iter(events), request, **more)) == events
    return path


def run_of(strategy: str) -> tuple[core.Request, list[Event]]:
    config = GenerationConfig(max_new_tokens=18, **RUNS.get(strategy, {}))
    drafters = [similar_model("llama")] if core.strategies.registry[strategy].takes_drafters else []
    request = core.Request(
        tiny.prompt(), config, strategy, head_checkpoints.own_options(strategy), top_n=5, drafters=drafters
    )
    return request, list(core.stream(tiny.shared("llama"), request))


@pytest.fixture(scope="module")
def sampled() -> list[Event]:
    return run_of("sampling")[1]


@pytest.mark.parametrize("name", random_events.NAMES)
def test_every_event_survives_recording(name: str, tmp_path: Path) -> None:
    @ONCE
    @given(st.lists(random_events.random_event(name), min_size=1, max_size=6))
    def check(events: list[Event]) -> None:
        path = _recorded(tmp_path / "run", events)
        assert same(list(trace_module._TraceReader(path, is_checked=False).events()), events)

    check()


def _recorded(path: Path, events: list[Event]) -> Path:
    for _ in core.record(path, events, REQUEST):
        pass
    return path


@ONCE
@given(st.lists(random_events.EVENTS, max_size=12), st.integers(1, 5))
def test_events_of_many_classes_keep_their_order(events: list[Event], most: int) -> None:
    writer, reader, read = BlockWriter(), BlockReader(layout_of(unpack(pack(schema_description())))), list[Event]()
    for start in range(0, len(events), most):
        data = writer.encode_block(events[start : start + most])
        read += reader.read_block(data, len(data))
    assert same(read, events)


@pytest.mark.parametrize("strategy", core.strategies.registry)
def test_run_of_every_strategy_survives_recording(strategy: str, tmp_path: Path) -> None:
    request, events = run_of(strategy)
    path = written(tmp_path / "run.decodescope", events, request)
    found = trace.read(path)
    assert found.events == list(core.replay(path)) == events
    assert same(found.events, events)
    assert found.is_whole
    assert found.notices == ()
    assert found.header.model == tiny.shared("llama").identity
    assert found.header.request["strategy"] == strategy


def test_classes_can_be_filled_slot_by_slot() -> None:
    for record in schema.record_schemas().values():
        assert {field.name for field in fields(record.cls)} <= vars(record.cls).keys(), record.name


def test_integers_and_floats_keep_their_types(tmp_path: Path) -> None:
    stages = tuple(Stage("top_k", "top-k", 4, 1.0, 1.0, value=value) for value in (4, 4.0, None, True, 0.0, -0.0))
    event = TokenChosen(0, 0, 7, "a", "a", 0.5, 0.5, -0.7, -0.7, 1, 0.1, 0.0, funnel=stages)
    assert same(list(core.replay(_recorded(tmp_path / "run", [event]))), [event])


def test_header_contains_the_request(tmp_path: Path) -> None:
    config = GenerationConfig(do_sample=True, sequence_bias={(1, 2): -3.0}, max_new_tokens=7)
    chat = [{"role": "user", "content": "Who?"}]
    for prompt, requested in (("\ud83d", "\ud83d"), (chat, chat), ((3, 4), [3, 4])):
        request = core.Request(prompt, config, options={"place": 2}, top_n=3, seed=9)
        header = trace.read(written(tmp_path / "run", [], request, extra={"shown": [1, None]})).header
        assert header.request["prompt"] == requested
        assert header.request["config"] == {
            "do_sample": True, "sequence_bias": {(1, 2): -3.0}, "max_new_tokens": 7,
        }  # fmt: skip
        assert (header.request["options"], header.request["top_n"], header.request["seed"]) == ({"place": 2}, 3, 9)
        assert header.extra == {"shown": [1, None]}
        assert header.versions["python"] == ".".join(map(str, sys.version_info[:3]))
        assert header.version == trace.VERSION
        assert core.Request(**{**header.request, "drafters": ()}).config == header.request["config"]


def test_model_identities_are_distinct_without_reading_weights(tmp_path: Path) -> None:
    storyteller, draft = core.load("storyteller"), core.load("storyteller-draft")
    assert storyteller.identity.architecture == type(storyteller.model).__name__
    hashes = {(model.identity.config_hash, model.identity.weights_hash) for model in (storyteller, draft)}
    assert len(hashes) == 2
    assert core.load("storyteller").identity == storyteller.identity
    assert tiny.make("llama", seed=3).identity == tiny.shared("llama").identity  # of the same shape
    assert tiny.shared("gpt2").identity != tiny.shared("llama").identity


def test_model_identity_follows_the_files(tmp_path: Path) -> None:
    network = tiny.shared("llama").model
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    bare = identify(network, "m", tmp_path)
    (tmp_path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}" + bytes(99))
    headed = identify(network, "m", tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    indexed = identify(network, "m", tmp_path)
    assert len({each.weights_hash for each in (bare, headed, indexed)}) == 3
    assert len({each.config_hash for each in (bare, headed, indexed, tiny.shared("llama").identity)}) == 2


def test_failed_run_records_its_events_and_error(tmp_path: Path, sampled: list[Event]) -> None:
    def failing() -> Iterator[Event]:
        yield from sampled[:4]
        raise NumericError("The logits are no numbers.", "Try float32.")

    path, seen = tmp_path / "run", list[Event]()
    with pytest.raises(NumericError):
        seen.extend(core.record(path, failing(), REQUEST))
    found = trace.read(path)
    assert found.events == seen == sampled[:4]
    assert found.is_whole
    assert found.failure is not None
    assert (found.failure.kind, found.failure.cause) == ("NumericError", "The logits are no numbers.")


def test_closed_run_is_complete_and_closes_its_source(tmp_path: Path, sampled: list[Event]) -> None:
    closed = threading.Event()

    def source() -> Iterator[Event]:
        try:
            yield from sampled
        finally:
            closed.set()

    events = core.record(tmp_path / "run", source(), REQUEST)
    first = [next(events), next(events)]
    events.close()  # type: ignore[attr-defined]
    found = trace.read(tmp_path / "run")
    assert closed.is_set()
    assert (found.events, found.is_whole, found.failure) == (first, True, None)


def test_a_disk_that_fills_up_stops_the_record_and_not_the_run(
    tmp_path: Path, sampled: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = block_file.BlockFile.write

    def full(self: block_file.BlockFile, kind: bytes, data: bytes) -> None:
        if kind != block_file.HEADER:
            raise OSError(28, "no space left on device")
        whole(self, kind, data)

    monkeypatch.setattr(block_file.BlockFile, "write", full)
    seen = list[Event]()
    with pytest.raises(TraceError, match="no space left"):
        seen.extend(core.record(tmp_path / "run", sampled, REQUEST))
    assert seen == sampled


def test_partial_writes_are_completed(tmp_path: Path) -> None:
    class Slow(io.FileIO):
        def write(self, data: Any, /) -> int:
            return super().write(bytes(data)[:50])

    file = block_file.BlockFile(tmp_path / "run")
    file.close()
    file._file = Slow(tmp_path / "run", "ab")
    file.write(b"E", bytes(range(200)) * 9)
    file.close()
    (block,) = block_file.read_blocks(tmp_path / "run")
    assert block.data == bytes(range(200)) * 9


KILLED = """
import os, pickle, sys, time; from decodescope import core
events = pickle.load(open(sys.argv[1], "rb"))
def slowly():
    for event in events[:8]:
        yield event
    time.sleep(60)
for number, event in enumerate(core.record(sys.argv[2], slowly(), core.Request("Once"))):
    if number == 7:
        print("told", flush=True)
"""


def test_a_killed_program_loses_at_most_the_last_second(tmp_path: Path, sampled: list[Event]) -> None:
    """Also while the run itself is busy with a long step, and nothing comes from it."""
    import pickle
    import time

    (tmp_path / "events").write_bytes(pickle.dumps(sampled))
    command = [sys.executable, "-c", KILLED, str(tmp_path / "events"), str(tmp_path / "run")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"told\n"
    time.sleep(1)
    os.kill(child.pid, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    child.communicate()
    found = trace.read(tmp_path / "run")
    assert found.events == sampled[:8]
    assert not found.is_whole
    seen = list[Event]()
    with pytest.raises(TraceError, match="is incomplete"):
        seen.extend(core.replay(tmp_path / "run"))
    assert seen == sampled[:8]


POISONED = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = sys.modules["numpy"] = None
from decodescope import core
events = list(core.replay(sys.argv[1]))
found = core.trace.read(sys.argv[1])
assert found.events == events and found.is_whole
print(len(events), events[-1].texts)
"""


def test_replay_needs_neither_torch_nor_transformers(tmp_path: Path, sampled: list[Event]) -> None:
    path = written(tmp_path / "run", sampled)
    reported = subprocess.run([sys.executable, "-c", POISONED, path], capture_output=True, text=True, check=True).stdout
    last = sampled[-1]
    assert isinstance(last, Finished)
    assert reported == f"{len(sampled)} {last.texts}\n"


@pytest.fixture(scope="module")
def whole(sampled: list[Event], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(tmp_path_factory.mktemp("whole") / "run", sampled).read_bytes()


def test_truncated_file_yields_its_beginning_and_an_error(whole: bytes, sampled: list[Event], tmp_path: Path) -> None:
    path = tmp_path / "run"
    for length in range(0, len(whole), 101):
        path.write_bytes(whole[:length])
        seen = list[Event]()
        with pytest.raises(TraceError):
            seen.extend(core.replay(path))
        assert seen == sampled[: len(seen)]


@settings(ONCE, max_examples=40)
@given(data=st.data())
def test_changed_file_yields_an_error_or_the_same_events(
    data: st.DataObject, whole: bytes, sampled: list[Event], tmp_path_factory: pytest.TempPathFactory
) -> None:
    changed = bytearray(whole)
    place = data.draw(st.integers(0, len(whole) - 1))
    match data.draw(st.sampled_from(["flip", "insert", "delete"])):
        case "flip":
            changed[place] ^= 1 << data.draw(st.integers(0, 7))
        case "insert":
            changed[place:place] = data.draw(st.binary(min_size=1, max_size=9))
        case _:
            del changed[place : place + data.draw(st.integers(1, 50))]
    path = tmp_path_factory.getbasetemp() / "changed"
    path.write_bytes(changed)
    _error_or(path, sampled)


def _error_or(path: Path, events: list[Event]) -> None:
    try:
        assert list(core.replay(path)) == events
    except TraceError as error:
        reported = error
    else:
        return
    assert reported.cause
    assert reported.remedy


def test_swapped_blocks_are_detected(sampled: list[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_MAX_BLOCK_EVENTS", 10)
    data = written(tmp_path / "run", sampled).read_bytes()
    start, frames = len(block_file.MARK) + 4, list[bytes]()
    while start < len(data):
        end = start + 13 + int.from_bytes(data[start + 1 : start + 5], "little")
        frames.append(data[start:end])
        start = end
    assert [frame[:1] for frame in frames[:3]] == [b"H", b"E", b"E"]
    frames[1], frames[2] = frames[2], frames[1]
    (tmp_path / "run").write_bytes(data[:12] + b"".join(frames))
    found = trace.read(tmp_path / "run")
    assert found.events == []
    assert "checksum" in str(found.trouble)


@settings(ONCE, max_examples=40)
@given(data=st.data())
def test_forged_file_yields_an_error_or_valid_events(
    data: st.DataObject, whole: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The checksums are valid and the content is not: bytes within the decompressed blocks are changed."""
    source, forged = tmp_path_factory.getbasetemp() / "whole", tmp_path_factory.getbasetemp() / "forged"
    source.write_bytes(whole)
    found = list(block_file.read_blocks(source))
    spoiled = data.draw(st.integers(0, len(found) - 1))
    content = bytearray(found[spoiled].data)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with closing(block_file.BlockFile(forged)) as file:
        for number, block in enumerate(found):
            file.write(block.kind, bytes(content) if number == spoiled else block.data)
    try:
        events = trace.read(forged).events
    except TraceError:
        return
    kinds = {record.cls: record for record in schema.record_schemas().values()}
    for event in events:
        for field in kinds[type(event)].fields:
            assert is_of_kind(field.kind, getattr(event, field.name))


def test_file_that_is_not_a_recording_raises_trace_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Once upon a time, there was no header.")
    (tmp_path / "empty").write_bytes(b"")
    for name in ("text", "empty", "missing", ".", "nul\0"):
        with pytest.raises(TraceError) as reported:
            trace.read(tmp_path / name)
        assert reported.value.cause
        assert reported.value.remedy
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(TraceError, match="pipe"):
            trace.read(tmp_path / "pipe")
        with pytest.raises(TraceError, match="pipe"):
            core.record(tmp_path / "pipe", [], REQUEST)


def test_missing_folder_is_reported_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be recorded"):
        core.record(tmp_path / "none" / "run", [], REQUEST)


def _with_version(whole: bytes, major: int, minor: int) -> bytes:
    start = len(block_file.MARK)
    return whole[:start] + major.to_bytes(2, "little") + minor.to_bytes(2, "little") + whole[start + 4 :]


def test_later_major_version_is_refused(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(_with_version(whole, 2, 0))
    with pytest.raises(TraceError, match="later version"):
        trace.read(tmp_path / "run")


def test_decompression_bomb_is_not_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """96 MiB of zeros take 96 KiB; three bytes that claim a billion values allocate nothing."""
    monkeypatch.setattr(block_file, "LEVEL", 9)
    file = block_file.BlockFile(tmp_path / "bomb")
    file.write(block_file.HEADER, bytes(block_file.MIN_EXPANDED_BYTES * 3 // 2))
    file.close()
    with pytest.raises(TraceError, match="larger after decompression"):
        trace.read(tmp_path / "bomb")
    reader = BlockReader(layout_of(unpack(pack(schema_description()))))
    block = pack([2**30, [], b"", ["same", 0], []])
    with pytest.raises(ValueError, match="more values"):
        reader.read_block(block, len(block))


WONDER = len(EVENTS)
"""The number of an event that this version does not have."""


def _later_header(data: bytes) -> bytes:
    """With a field more and a field less in TokenChosen, and an event more."""
    header: Any = unpack(data)
    header["version"] = [1, 7]
    header["schema"]["events"].append("Wonder")
    header["schema"]["records"]["Wonder"] = [["size", "float"]]
    columns = header["schema"]["records"]["TokenChosen"]
    columns.insert(1, ["surprise", "int"])
    columns.remove(["special", "bool"])
    return pack(header)


def _later_events(data: bytes, events: list[Event]) -> bytes:
    block: Any = unpack(data)
    numbers = [EVENTS.index(type(event)) for event in events]
    place = [field.name for field in schema.record_schemas()["TokenChosen"].fields].index("special")
    for number, column in block[4]:
        if number == EVENTS.index(TokenChosen):
            del column[1 + place]
            column.insert(2, ["same", 7])
        if number == EVENTS.index(SequenceFinished):
            column[2] = ["same", "boredom"]
    return pack(
        [block[0] + 1, *block[1:3], ["each", [WONDER, *numbers]], [*block[4], [WONDER, ["parts", ["same", 0.5]]]]]
    )


@pytest.mark.parametrize("method", ["", "two\nlines", "x" * 61])
def test_token_with_an_invalid_method_name_is_damaged(method: str, sampled: list[Event], tmp_path: Path) -> None:
    changed = [replace(event, method=method) if isinstance(event, TokenChosen) else event for event in sampled]
    found = trace.read(_recorded(tmp_path / "run", changed))
    assert found.events == []
    assert "is not of type" in str(found.trouble)


def test_a_later_minor_version_opens(
    whole: bytes, sampled: list[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unknown fields are skipped with a notice, and missing ones have their defaults."""
    (tmp_path / "run").write_bytes(whole)
    header, events, end = block_file.read_blocks(tmp_path / "run")
    with monkeypatch.context() as patched:
        patched.setattr(block_file, "VERSION", (1, 7))
        file = block_file.BlockFile(tmp_path / "later")
    file.write(block_file.HEADER, _later_header(header.data))
    file.write(block_file.EVENTS, _later_events(events.data, sampled))
    file.write(b"?", b"a block of a kind that comes later")
    ending: Any = unpack(end.data)
    file.write(block_file.END, pack({**ending, "events": ending["events"] + 1}))
    file.close()
    found = trace.read(tmp_path / "later")
    assert found.is_whole
    assert found.header.version == (1, 7)
    known = [event for event in sampled if not isinstance(event, SequenceFinished)]  # for a reason that comes later
    assert found.events == [replace(item, special=False) if isinstance(item, TokenChosen) else item for item in known]
    reported = " ".join(found.notices)
    assert "TokenChosen.surprise" in reported
    assert "1 × Wonder" in reported
    assert "2 × SequenceFinished" in reported
    assert "1 blocks" in reported
