"""Runs of scripts in the window: shown while they happen, kept in the history, refused without the token."""

from __future__ import annotations

import os
import socket
import stat
import struct
import tempfile
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from decodescope.app.features.live import controller
from decodescope.app.window.main_window import MainWindow
from decodescope.core.events import (
    Event,
    Finished,
    Metrics,
    Prefilled,
    PromptToken,
    RunStarted,
    SequenceFinished,
    TokenChosen,
)
from decodescope.core.generate_capture.live_sender import LiveRun, is_window_open
from decodescope.core.request import Request
from decodescope.core.trace import Failure, LiveAddress
from decodescope.core.trace.block_file import EVENTS, HEADER, BlockEncoder
from decodescope.core.trace.block_writer import BlockWriter
from decodescope.core.trace.file_metadata import write_header
from decodescope.core.trace.live_address import address_file
from decodescope.core.trace.recorder import request_to_plain
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import open_window

WAIT_MS = 20_000
WORDS = (" there", " was", " a", " script")
pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs local sockets as files")


def _token(step: int) -> TokenChosen:
    return TokenChosen(step, 0, step + 5, WORDS[step], WORDS[step], 0.5, 0.5, -0.7, -0.7, 1, 1.0, 0.1)


def _events() -> list[Event]:
    started = RunStarted("greedy", "somebody’s model", "cpu", "float32", "dynamic", 0, (PromptToken(1, "Once"),), ())
    ends = [SequenceFinished(0, "length", limit=4),
            Finished("completed", ((5, 6, 7, 8),), ("".join(WORDS),), Metrics(1, 4, 0.4), order=(0,))]  # fmt: skip
    return [started, Prefilled(1, 0.1), *map(_token, range(4)), *ends]


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MainWindow:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    opened = open_window(qtbot, tmp_path / "config", ScriptedEngine())
    assert opened.parts.services.live.listen()
    return opened


def _send(*parts: list[Event], failure: Failure | None = None, ends: bool = True) -> LiveRun:
    address = LiveAddress.find()
    assert address is not None
    sender = LiveRun(address, Request("Once", {"max_new_tokens": 4}))
    for event in (event for part in parts for event in part):
        sender.write(event)
    if ends:
        sender.close(failure)
    return sender


def test_text_appears_while_the_script_runs(window: MainWindow, qtbot: QtBot) -> None:
    session, events = window.session, _events()
    with qtbot.waitSignal(session.eventsArrived, timeout=WAIT_MS):
        sender = _send(events[:4], ends=False)
    qtbot.waitUntil(lambda: session.run is not None and session.run.text == " there was", timeout=WAIT_MS)
    assert session.run is not None
    assert session.run.outcome is None
    assert window.parts.centre.notice_banner.isVisible()
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS) as end:
        for event in events[4:]:
            sender.write(event)
        sender.close(None)
    assert end.args[0].kind == "completed"
    assert session.run.text == "".join(WORDS)
    assert session.run.events == events
    assert "somebody’s model" in window.parts.centre.notice_banner.accessibleDescription()


def test_runs_are_kept_in_the_history(window: MainWindow, qtbot: QtBot) -> None:
    with qtbot.waitSignal(window.history.runSaved, timeout=WAIT_MS) as saved:
        _send(_events())
    opened = window.history.open_run(saved.args[0])
    assert opened.events == _events()
    assert opened.request.prompt == "Once"


def test_a_run_does_not_replace_one_in_progress(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the window's own run goes on, a script's run is kept in the history only."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    hold = threading.Event()
    window = open_window(qtbot, tmp_path / "config", ScriptedEngine(hold=hold))
    window.parts.services.live.listen()
    session = window.session
    window.parts.runs.run()
    own = session.run
    with qtbot.waitSignal(window.history.runSaved, timeout=WAIT_MS) as saved:
        _send(_events())
    assert session.run is own
    assert session.busy
    assert window.history.open_run(saved.args[0]).events == _events()
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS):
        hold.set()
    assert own is not None
    assert own.outcome is not None


def test_text_of_killed_script_is_kept(window: MainWindow, qtbot: QtBot) -> None:
    session, address = window.session, LiveAddress.find()
    assert address is not None
    encoder = BlockEncoder()
    header = write_header(request_to_plain(Request("Once")), None, {}, 0.0)
    blocks = encoder.encode(HEADER, header) + encoder.encode(EVENTS, BlockWriter().encode_block(_events()[:5]))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sender:
        sender.connect(address.address)
        sender.sendall(address.token.encode() + b"\n" + encoder.start + blocks + b"E")
        qtbot.waitUntil(lambda: session.run is not None and len(session.run.tokens) == 3, timeout=WAIT_MS)
        with qtbot.waitSignal(session.finished, timeout=WAIT_MS) as end:
            sender.shutdown(socket.SHUT_RDWR)
    assert end.args[0].kind == "stopped"
    assert session.run is not None
    assert session.run.text == " there was a"


def test_a_failure_of_the_script_is_shown(window: MainWindow, qtbot: QtBot) -> None:
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as end:
        _send(_events()[:4], failure=Failure("KeyError", "The script failed", "'mine'"))
    assert end.args[0].kind == "failed"


@pytest.mark.parametrize("start", [b"wrong\n", b"x" * 1000, b"\n", "ä\n".encode()])
def test_wrong_token_closes_connection(start: bytes, window: MainWindow, qtbot: QtBot) -> None:
    address = LiveAddress.find()
    assert address is not None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.connect(address.address)
        stranger.sendall(start)
        stranger.setblocking(False)
        qtbot.waitUntil(lambda: _is_closed(stranger), timeout=WAIT_MS)
    assert window.session.run is None


def _connect(address: LiveAddress, start: bytes) -> socket.socket:
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sender.connect(address.address)
    sender.sendall(start)
    sender.setblocking(False)
    return sender


def test_rejected_connections_do_not_block_later_ones(window: MainWindow, qtbot: QtBot) -> None:
    address = LiveAddress.find()
    assert address is not None
    for _group in range(10):  # the system queues a limited number
        strangers = [_connect(address, b"wrong\n") for _ in range(10)]
        qtbot.waitUntil(lambda group=strangers: all(map(_is_closed, group)), timeout=WAIT_MS)
        for stranger in strangers:
            stranger.close()
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as end:
        _send(_events())
    assert end.args[0].kind == "completed"


def test_silent_connections_do_not_keep_senders_out(
    window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "_MAX_TOKEN_SECONDS", 0.3)
    monkeypatch.setattr(controller, "_MAX_CONNECTIONS", 4)
    address, live = LiveAddress.find(), window.parts.services.live
    assert address is not None
    silent = [_connect(address, start) for start in (b"", b"half a tok", b"", b"x")]
    qtbot.waitUntil(lambda: len(live._connections) == 4, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: all(map(_is_closed, silent)), timeout=WAIT_MS)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as end:
        _send(_events())
    assert end.args[0].kind == "completed"
    for stranger in silent:
        stranger.close()


def test_probe_connections_do_not_block_later_ones(window: MainWindow, qtbot: QtBot) -> None:
    """A script connects without sending anything to find out whether a window is open."""
    address, live = LiveAddress.find(), window.parts.services.live
    assert address is not None
    assert live._server is not None
    for _ in range(100):
        with qtbot.waitSignal(live._server.newConnection, timeout=WAIT_MS):
            assert is_window_open(address)
    qtbot.waitUntil(lambda: not live._connections, timeout=WAIT_MS)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as end:
        _send(_events())
    assert end.args[0].kind == "completed"


def test_oversized_block_is_rejected_by_header(window: MainWindow, qtbot: QtBot) -> None:
    address = LiveAddress.find()
    assert address is not None
    frame = struct.pack("<cIII", HEADER, 2**30, 2**30, 0)
    with _connect(address, address.token.encode() + b"\n" + BlockEncoder().start + frame) as sender:
        qtbot.waitUntil(lambda: _is_closed(sender), timeout=WAIT_MS)
    assert window.session.run is None


def test_run_that_cannot_be_saved_is_still_shown(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = window.parts.services.live
    saved: list[object] = []
    monkeypatch.setattr(live, "recording_path", lambda _run: tmp_path / "missing" / "run.decodescope")
    monkeypatch.setattr(live, "save", lambda run, _path: saved.append(run))
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as end:
        _send(_events())
    assert end.args[0].kind == "completed"
    assert window.session.run is not None
    assert window.session.run.text == "".join(WORDS)
    assert saved == []


def test_damaged_data_ends_the_connection(window: MainWindow, qtbot: QtBot) -> None:
    address = LiveAddress.find()
    assert address is not None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sender:
        sender.connect(address.address)
        sender.sendall(address.token.encode() + b"\n" + b"no recording" * 40)
        sender.setblocking(False)
        qtbot.waitUntil(lambda: _is_closed(sender), timeout=WAIT_MS)
    assert window.session.run is None


def _is_closed(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_concurrent_runs_of_two_scripts_are_saved(window: MainWindow, qtbot: QtBot) -> None:
    """The first one is shown to its end; the second one, which began meanwhile, is in the history."""
    session, saved, noticed = window.session, list[object](), list[str]()
    window.history.runSaved.connect(saved.append)
    window.parts.services.live.noticed.connect(lambda text, _title: noticed.append(text))
    with qtbot.waitSignal(session.eventsArrived, timeout=WAIT_MS):
        first = _send(_events()[:3], ends=False)
    shown = session.run
    second = _send(_events())
    qtbot.waitUntil(lambda: len(saved) == 1, timeout=WAIT_MS)
    assert session.run is shown
    assert "see its run in the history" in noticed[1]
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS) as end:
        for event in _events()[3:]:
            first.write(event)
        first.close(None)
    assert end.args[0].kind == "completed"
    qtbot.waitUntil(lambda: len(saved) == 2, timeout=WAIT_MS)
    assert session.run is shown
    assert session.run.text == "".join(WORDS)
    for sender in (first, second):
        sender.join(WAIT_MS / 1000)
        assert sender.is_sent


def test_the_window_used_last_receives_runs(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    """A later window takes over the address; the first gets it back when the later closes or the first is used."""
    own = window.parts.services.live.address
    assert own is not None
    other = open_window(qtbot, tmp_path / "other", ScriptedEngine())
    assert other.parts.services.live.listen()
    later = LiveAddress.find()
    assert later == other.parts.services.live.address != own
    state = Qt.ApplicationState
    window.parts.services.live._on_application_state(state.ApplicationInactive)
    assert LiveAddress.find() == later
    window.parts.services.live._on_application_state(state.ApplicationActive)
    assert LiveAddress.find() == own
    other.close()
    assert LiveAddress.find() == own
    address_file().unlink()  # what a later window leaves behind when it closes
    window.parts.services.live._on_application_state(state.ApplicationActive)
    assert LiveAddress.find() == own
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        _send(_events())


def test_close_removes_socket_folder_and_address_file(window: MainWindow) -> None:
    address = window.parts.services.live.address
    assert address is not None
    folder = Path(address.address).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.stat().st_uid == os.getuid()
    assert address_file().exists()
    window.close()
    assert not folder.exists()
    assert not address_file().exists()


def test_too_long_temporary_folder_is_skipped(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A socket's path has a hundred bytes; a folder of the user's may be longer."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    deep = tmp_path / ("long" * 20) / ("deep" * 20)
    deep.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    live = open_window(qtbot, tmp_path / "config", ScriptedEngine()).parts.services.live
    assert live.listen()
    assert live.address is not None
    assert not live.address.address.startswith(str(deep))
    assert list(deep.glob("decodescope-live-*")) == []
    live.close()
    monkeypatch.setattr(controller, "_MAX_PATH_BYTES", 5)
    assert not live.listen()
    assert "Set TMPDIR to a short one." in caplog.text
    assert list(deep.glob("decodescope-live-*")) == []
