"""Sending captured runs to a window, and `decodescope watch`, without Qt."""

from __future__ import annotations

import gc
import os
import socket
import stat
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.errors import TraceError
from decodescope.core.events import Finished, TokenChosen
from decodescope.core.generate_capture import live_sender, watch
from decodescope.core.generate_capture.capture import CapturedRunList
from decodescope.core.trace import LiveAddress, TraceStream
from decodescope.core.trace.live_address import RECEIVED, address_file
from tests.core import tiny

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs local sockets as files")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


class FakeWindow:
    """Accepts connections and keeps the bytes of each; `reads` False: it accepts and reads nothing; `confirms` False:
    it is closed when it has the end of a run.
    """

    def __init__(self, folder: Path, reads: bool = True, confirms: bool = True) -> None:
        self.received: list[bytes] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.path = str(folder / "s")
        self._socket.bind(self.path)
        self._socket.listen()
        self._open: list[socket.socket] = []
        self._ended = threading.Semaphore(0)
        self._reads, self._confirms = reads, confirms
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            if self._reads:
                threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        data, stream = b"", TraceStream("test")
        with suppress(OSError):  # closed with the window
            while part := connection.recv(65536):
                is_begun = b"\n" in data
                data += part
                stream.feed(part if is_begun else data.partition(b"\n")[2])
                if stream.is_complete:
                    connection.sendall(RECEIVED if self._confirms else b"")
                    connection.shutdown(socket.SHUT_RDWR)
        self.received.append(data)
        self._ended.release()

    def wait(self, count: int) -> list[bytes]:
        """Return what `count` connections sent until they were closed."""
        live_sender.finish_sending()
        for _ in range(count):
            self._ended.acquire(timeout=30)  # a connection may be accepted after its sender has ended
        return self.received

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in self._open:
            connection.close()
        self._accepting.join(5)


@pytest.fixture
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeWindow]:
    made = FakeWindow(tmp_path_factory.mktemp("w"))
    yield made
    made.close()


def _generate(network: Any, **settings: Any) -> torch.Tensor:
    ids = torch.tensor([[1, 17, 34, 11]])
    found: torch.Tensor = network.generate(ids, attention_mask=torch.ones_like(ids), pad_token_id=0,
                                           **{"max_new_tokens": 8, **settings})  # fmt: skip
    return found


def test_address_file_is_private() -> None:
    """The file has mode 0600; a file that others could read, or of another form, is ignored."""
    assert LiveAddress.find() is None
    address = LiveAddress.create("/tmp/nowhere")
    address.publish()
    assert stat.S_IMODE(address_file().stat().st_mode) == 0o600
    assert LiveAddress.find() == address
    address_file().chmod(0o644)
    assert LiveAddress.find() is None
    address_file().chmod(0o600)
    LiveAddress.create("/tmp/later").publish()
    address.withdraw()  # replaced by a later window
    assert LiveAddress.find() is not None
    address_file().write_text("[]")
    assert LiveAddress.find() is None


def test_run_is_sent_to_the_window_as_a_recording(window: FakeWindow) -> None:
    """The bytes are the token, then a recording with the same events."""
    address = LiveAddress.create(window.path)
    address.publish()
    network = tiny.make("llama").model
    with core.capture(network, live=True) as captured:
        assert captured.is_live
        _generate(network)
        _generate(network, num_beams=2)
    runs = {}
    for data in window.wait(2):
        token, _, recording = data.partition(b"\n")
        assert token.decode() == address.token
        stream = TraceStream("test")
        events = [
            event for start in range(0, len(recording), 100) for event in stream.feed(recording[start : start + 100])
        ]
        assert stream.is_complete
        assert stream.header is not None
        runs[stream.header.request["strategy"]] = events
    assert runs == {"greedy": captured.runs[0].events, "beam_search": captured.runs[1].events}


def test_run_counts_as_sent_when_the_window_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A window that ends with the bytes still on the way loses them, so that the script keeps the run."""
    network = tiny.make("llama").model
    for confirms in (True, False):
        window = FakeWindow(tmp_path_factory.mktemp("w"), confirms=confirms)
        LiveAddress.create(window.path).publish()
        with core.capture(network, live=True) as captured:
            _generate(network)
        window.wait(1)
        window.close()
        assert len(captured._runs.unsent()) == (0 if confirms else 1)
        assert len(captured.runs) == 1


def test_own_loop_is_sent_to_the_window(window: FakeWindow) -> None:
    LiveAddress.create(window.path).publish()
    with core.record_loop(tiny.make("llama"), None, [1, 17], live=True) as loop:
        for token in (3, 4):
            loop.step(torch.randn(tiny.VOCABULARY), token)
    [data] = window.wait(1)
    stream = TraceStream("test")
    assert stream.feed(data.partition(b"\n")[2]) == loop.run.events
    assert stream.is_complete


def test_nested_call_is_sent_while_the_outer_run_goes_on(window: FakeWindow) -> None:
    """Each run is a recording of its own, which names its parent."""
    LiveAddress.create(window.path).publish()
    network = tiny.make("llama").model

    def nested(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if ids.shape[1] == 5:
            _generate(network, max_new_tokens=2)
        return scores

    with core.capture(network, live=True) as captured:
        _generate(network, logits_processor=[nested])
    found = {}
    for data in window.wait(2):
        stream = TraceStream("test")
        events = stream.feed(data.partition(b"\n")[2])
        assert stream.is_complete
        assert stream.failure is None
        assert stream.header is not None
        found[stream.header.extra["captured"]["parent"]] = events  # type: ignore[index]
    outer, inner = captured.runs
    assert found == {"": outer.events, outer.id: inner.events}
    assert len(outer.sequences[0]) == 8


def test_a_stream_is_checked(window: FakeWindow) -> None:
    """Damaged bytes raise an error, wherever the damage is."""
    LiveAddress.create(window.path).publish()
    network = tiny.make("llama").model
    with core.capture(network, live=True):
        _generate(network)
    _, _, recording = window.wait(1)[0].partition(b"\n")
    for place in (0, 20, len(recording) // 2, len(recording) - 3):
        damaged = bytearray(recording)
        damaged[place] ^= 0x5A
        stream = TraceStream("test")
        with pytest.raises(TraceError):
            stream.feed(bytes(damaged) + bytes(64))
    with pytest.raises(TraceError):
        TraceStream("test").feed(recording + recording)


@pytest.mark.parametrize("kind", ["missing", "closed", "stuck"])
def test_unreachable_or_stuck_window_does_not_affect_the_script(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without a reachable window the run is recorded only; a stuck one never blocks the script."""
    folder = tmp_path_factory.mktemp("w")
    stuck = FakeWindow(folder, reads=False) if kind == "stuck" else None
    if kind != "missing":
        LiveAddress.create(str(folder / "s")).publish()
    network = tiny.make("llama").model
    plain = _generate(network)
    with core.capture(network, live=True) as captured:
        assert captured.is_live == (kind != "missing")
        assert torch.equal(_generate(network), plain)
    assert isinstance(captured.run.events[-1], Finished)
    if stuck is not None:
        stuck.close()


SCRIPT = """
import sys
import torch
from tests.core import tiny

network = tiny.make("llama").model
ids = torch.tensor([[1, 17, 34, 11]])
out = network.generate(ids, attention_mask=torch.ones_like(ids), pad_token_id=0, max_new_tokens=5)
print(sys.argv[1:], out.shape[1])
sys.exit(3)
"""


def _watch(folder: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(script)
    return subprocess.run(
        [sys.executable, "-m", "decodescope", "watch", "mine.py", *arguments], cwd=folder, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.mark.slow
def test_watch_without_a_window_records_runs(tmp_path: Path) -> None:
    """The script runs with its arguments and exit code; its runs are written to a folder."""
    done = _watch(tmp_path, SCRIPT, "--one", "two")
    assert done.returncode == 3, done.stderr
    assert done.stdout == "['--one', 'two'] 9\n"
    assert "No window is open" in done.stderr
    assert "1 run captured." in done.stderr
    events = list(core.replay(tmp_path / "mine-runs" / "run-1.decodescope"))
    assert sum(isinstance(event, TokenChosen) for event in events) == 5


BUSY_SCRIPT = """
import atexit, os, sys, threading
import torch
from tests.core import tiny

network = tiny.make("llama").model
ids = torch.tensor([[1, 17, 34, 11]])

def generate():
    network.generate(ids, attention_mask=torch.ones_like(ids), pad_token_id=0, max_new_tokens=2)

generate()
if os.fork() == 0:
    generate()
    sys.exit(4)
print("child", os.waitstatus_to_exitcode(os.wait()[1]))
released = threading.Event()

def generate_late():
    released.wait()
    generate()

threading.Thread(target=generate_late).start()
atexit.register(generate)
sys.stdout.flush()
sys.stdout.buffer.write(b"\\x1b[0m\\n")

def fail():
    raise KeyError("mine")

try:
    fail()
finally:
    released.set()
"""


@pytest.mark.slow
def test_watch_handles_threads_a_fork_and_an_error(tmp_path: Path) -> None:
    """Runs of threads and exit functions are kept, a forked process has files of its own, and the traceback begins in
    the script, as without watch.
    """
    done = _watch(tmp_path, BUSY_SCRIPT)
    assert done.returncode == 1, done.stderr
    assert done.stdout == "child 4\n\x1b[0m\n"
    trace = done.stderr[done.stderr.index("Traceback") :].splitlines()
    assert [line.strip().partition(",")[0] for line in trace if line.startswith("  File")] == ['File "mine.py"'] * 2
    assert "3 runs captured." in trace
    names = [path.name for path in (tmp_path / "mine-runs").iterdir()]
    assert sum(name.count("-") == 1 for name in names) == 3
    assert sum(name.count("-") == 2 for name in names) == 2


def test_a_model_that_cannot_be_captured_still_generates(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object, **_more: object) -> None:
        raise AttributeError("odd")

    monkeypatch.setattr("decodescope.core.generate_capture.capture.capture", broken)
    network = tiny.make("llama").model
    plain = _generate(network)
    watcher = watch.ScriptWatcher(live=False)
    with watcher.watching(), pytest.warns(RuntimeWarning, match="odd"):
        assert torch.equal(_generate(network), plain)
    assert watcher.runs() == []


@pytest.mark.parametrize(("name", "value", "words"), [("--top-n", "-1", "top_n"), ("--save", __file__, "not a folder")])
def test_watch_rejects_options_before_the_script_runs(
    name: str, value: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "mine.py"
    script.write_text("raise AssertionError")
    with pytest.raises(SystemExit) as end:
        watch.run([name, value, str(script)])
    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_watch_captures_every_model_once() -> None:
    """Two models in one process; an assistant's drafts are no runs of their own; the class is restored."""
    from transformers.generation.utils import GenerationMixin

    before = GenerationMixin.generate
    target, draft = tiny.make("llama").model, tiny.make("gpt2").model
    watcher = watch.ScriptWatcher(live=False)
    with watcher.watching():
        _generate(target)
        _generate(target, assistant_model=draft)
        _generate(draft)
    assert GenerationMixin.generate is before
    assert [run.request.strategy for run in watcher.runs()] == ["greedy", "assisted", "greedy"]
    assert "generate" not in vars(target)


def test_watch_keeps_runs_and_releases_models() -> None:
    """A model that the script releases is freed; its runs are complete, in the order in which they began."""
    watcher = watch.ScriptWatcher(live=False)
    with watcher.watching():
        for name in ("llama", "gpt2"):
            network = tiny.make(name).model
            _generate(network)
            _generate(network, num_beams=2)
            _generate(network, prompt_lookup_num_tokens=2)
            reference = weakref.ref(network)
            del network
            gc.collect()
            assert reference() is None
    runs = watcher.runs()
    assert [run.request.strategy for run in runs] == ["greedy", "beam_search", "prompt_lookup"] * 2
    assert all(isinstance(run.events[-1], Finished) for run in runs)
    assert [run.events[0].model for run in runs][::3] == ["llama", "gpt2"]  # type: ignore[attr-defined]


def test_a_captured_model_is_freed_inside_the_block() -> None:
    network = tiny.make("llama").model
    reference = weakref.ref(network)
    runs = CapturedRunList()
    core.capture(network, runs=runs).__enter__()
    _generate(network)
    del network
    gc.collect()
    assert reference() is None
    assert len(runs) == 1


@pytest.mark.parametrize("is_open", [True, False])
def test_runs_received_by_the_window_are_released(is_open: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    opened = FakeWindow(tmp_path_factory.mktemp("w"), reads=is_open)
    LiveAddress.create(opened.path).publish()
    watcher, network = watch.ScriptWatcher(releases=True), tiny.make("llama").model
    with watcher.watching():
        _generate(network)
        if not is_open:
            opened.close()
        _generate(network)
    unsent = watcher.unsent_runs()
    assert len(watcher) == 2
    assert len(unsent) == (0 if is_open else 2)
    assert all(isinstance(run.events[-1], Finished) for run in unsent)
    assert is_open or sum(map(len, (run.events for run in watcher.runs()))) > 0
    assert not is_open or not any(run.events for run in watcher.runs())
    if is_open:
        opened.close()


@pytest.mark.slow
def test_watch_ignores_the_address_of_a_crashed_window(tmp_path: Path) -> None:
    """The runs are written, as without a window."""
    LiveAddress.create(str(tmp_path / "gone")).publish()
    done = _watch(tmp_path, SCRIPT)
    assert done.returncode == 3, done.stderr
    assert "No window is open" in done.stderr
    assert (tmp_path / "mine-runs" / "run-1.decodescope").is_file()


def test_watch_rejects_a_missing_script(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        watch.run(["nowhere.py"])
    assert end.value.code == 2
    assert "nowhere.py is not a file" in capsys.readouterr().err
