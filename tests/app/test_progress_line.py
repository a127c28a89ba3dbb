"""Progress of commands is gone before an error message."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr

import pytest

from decodescope.app.start.cli.progress_line import ProgressLine, progress_bar
from decodescope.core.common.text import escape_streams


class LineTerminal(io.StringIO):
    """A stream of a terminal. `line` is what its last line shows."""

    def isatty(self) -> bool:
        return True

    @property
    def line(self) -> str:
        cells: list[str] = []
        for part in self.getvalue().rpartition("\n")[2].split("\r"):
            cells[: len(part)] = part
        return "".join(cells).rstrip()


def break_line(terminal: LineTerminal) -> None:
    with ProgressLine() as line:
        for text in ("greedy-repeats: 1/12", "done: 2"):
            line.show(text)
            assert terminal.line == text
        raise ValueError("broken")


def test_progress_line_is_cleared_when_an_error_ends_it() -> None:
    terminal = LineTerminal()
    with redirect_stderr(terminal), escape_streams():
        with pytest.raises(ValueError, match="broken"):
            break_line(terminal)
        assert terminal.line == ""
        print("decodescope claim: broken", file=sys.stderr)
    assert terminal.getvalue().endswith("\rdecodescope claim: broken\n")
    assert "\\x1b" not in terminal.getvalue()


def break_bar(terminal: LineTerminal) -> None:
    with progress_bar(False, total=100) as bar:
        bar.n = 30
        bar.refresh()
        assert "30/100" in terminal.line
        raise ValueError("broken")


def test_progress_bar_is_cleared_when_an_error_ends_it() -> None:
    terminal = LineTerminal()
    with redirect_stderr(terminal), pytest.raises(ValueError, match="broken"):
        break_bar(terminal)
    assert terminal.line == ""


def test_progress_bar_in_a_file_ends_its_line() -> None:
    stream = io.StringIO()
    with redirect_stderr(stream):
        with progress_bar(False, total=2) as bar:
            bar.update(2)
        print("decodescope study: broken", file=sys.stderr)
    assert stream.getvalue().endswith("\ndecodescope study: broken\n")
    assert "2/2" in stream.getvalue()


def test_progress_line_is_not_written_to_files() -> None:
    stream = io.StringIO()
    with redirect_stderr(stream), ProgressLine() as line:
        line.show("1 of 2")
    assert stream.getvalue() == ""


def test_quiet_progress_is_not_shown() -> None:
    terminal = LineTerminal()
    with redirect_stderr(terminal), ProgressLine(is_quiet=True) as line, progress_bar(True, total=2) as bar:
        line.show("1 of 2")
        bar.update()
    assert terminal.getvalue() == ""
