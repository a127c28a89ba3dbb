"""Crash reports: written for every unhandled exception, without prompts, paths, names and keys, and never sent."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from decodescope.app.start import crash_report
from decodescope.app.start.crash_report import CrashReporter, report_text, scrub
from decodescope.core.errors import PromptError


def fail() -> None:
    prompt = "my secret prompt"
    try:
        open(Path.home() / "diary.txt")
    except OSError as error:
        raise PromptError(f"{prompt} hf_abcdefghijklmnop", "Ask alice@example.org.") from error


def failure() -> BaseException:
    with pytest.raises(PromptError) as caught:
        fail()
    return caught.value


def test_report_has_versions_and_traceback_but_no_private_data() -> None:
    text = report_text(failure(), "1.2.3")
    assert "Decodescope 1.2.3, Python" in text
    assert "decodescope.core.errors.PromptError\n" in text
    assert "builtins.FileNotFoundError\n" in text
    assert f'File "tests{os.sep}app{os.sep}test_crash_report.py", line' in text
    assert ", in fail\n" in text
    for private in ("secret", "diary", "hf_", "alice", str(Path.home())):
        assert private not in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key hf_abcdefghijklmnop end", "key <key> end"),
        ("Authorization: Bearer xyz123", "Authorization: Bearer <key>"),
        ("https://user:pw@host.example/v1?q=1 failed", "<address> failed"),
        ("alice@example.org", "<e-mail>"),
        ("at 192.168.0.17:8080", "at <address>:8080"),
        ("the unknown word alicestone", "the unknown word alicestone"),
        ("by alice on box-7.", "by <user> on <computer>."),
    ],
)
def test_scrub_removes_identifying_text(text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "alice")
    monkeypatch.setattr(crash_report.platform, "node", lambda: "box-7")
    assert scrub(text) == expected


def test_report_with_key_in_file_name_is_scrubbed() -> None:
    """Text outside the message is scrubbed too, here the file name in the traceback."""
    code = compile("1 / 0", "hf_abcdefghijklmnop.py", "exec")
    with pytest.raises(ZeroDivisionError) as raised:
        exec(code, {})
    text = report_text(raised.value, "1.2.3")
    assert "<key>" in text
    assert "hf_abcdefgh" not in text


def test_the_home_folder_is_shortened() -> None:
    assert scrub(f"{Path.home()}/models/x") == "~/models/x"


def test_reports_are_written_for_the_main_thread_and_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda *args: called.append(args[0]))
    monkeypatch.setattr(threading, "excepthook", lambda args: called.append(args.exc_type))
    hooks = sys.excepthook, threading.excepthook
    with CrashReporter(tmp_path / "crashes", "1") as reporter:
        error = failure()
        sys.excepthook(type(error), error, error.__traceback__)
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert called == [PromptError, PromptError, KeyboardInterrupt], "the previous hooks are still called"
    assert (sys.excepthook, threading.excepthook) == hooks
    reports = list(reporter.folder.glob("crash-*.txt"))
    assert len(reports) == 2
    printed = capsys.readouterr().err
    assert all(str(path) in printed for path in reports)
    assert "nothing was sent" in printed


def test_write_deletes_old_reports_and_tolerates_unwritable_folder(tmp_path: Path) -> None:
    reporter = CrashReporter(tmp_path / "crashes", "1")
    written = [reporter.write(failure()) for _ in range(crash_report.MAX_REPORTS + 3)]
    assert sorted(reporter.folder.iterdir()) == written[3:]
    (tmp_path / "file").write_text("")
    assert CrashReporter(tmp_path / "file" / "crashes", "1").write(failure()) is None


def test_native_crash_writes_stack_traces(tmp_path: Path) -> None:
    script = (
        "import sys, faulthandler, pathlib\n"
        "from decodescope.app.start.crash_report import CrashReporter\n"
        "with CrashReporter(pathlib.Path(sys.argv[1]), '1'):\n"
        "    faulthandler._sigsegv()\n"
    )
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, capture_output=True)
    assert "Segmentation fault" in (tmp_path / crash_report.NATIVE_NAME).read_text() or sys.platform == "win32"


def test_no_files_are_left_without_crash(tmp_path: Path) -> None:
    with CrashReporter(tmp_path / "crashes", "1"):
        pass
    assert list(tmp_path.iterdir()) == []
