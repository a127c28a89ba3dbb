"""Files that the system opens in the running program, as the macOS Finder does."""

import sys

import pytest
from PySide6.QtCore import QEvent, QUrl
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

from decodescope.app.start.application import Application, OpenedFiles


def file_open_event(path: str) -> QFileOpenEvent:
    return QFileOpenEvent(QUrl.fromLocalFile(path))


def test_files_received_before_window_are_opened_later():
    opened, files = [], OpenedFiles()
    assert files.handle(file_open_event("/a.decodescope"))
    assert not files.handle(QEvent(QEvent.Type.ApplicationFontChange))
    assert not files.handle(QFileOpenEvent(QUrl("https://example.org/b.decodescope"))), "not a file of this computer"
    files.open_with(opened.append)
    assert files.handle(file_open_event("/b.decodescope"))
    assert [path.rpartition("/")[2] for path in opened] == ["a.decodescope", "b.decodescope"]
    files.open_with(opened.append)
    assert len(opened) == 2


SEND = """
import sys
from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QFileOpenEvent
from decodescope.app.start.application import Application
application = Application(["test"])
application.opened_files.open_with(print)
QCoreApplication.sendEvent(application, QFileOpenEvent(QUrl.fromLocalFile(sys.argv[1])))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the path is written as on POSIX systems")
def test_the_application_receives_the_event():
    """Runs in a new process, because pytest-qt's application has another class."""
    import subprocess

    assert issubclass(Application, QApplication)
    answer = subprocess.run([sys.executable, "-c", SEND, "/tmp/a.decodescope"], capture_output=True, text=True)
    assert answer.stdout == "/tmp/a.decodescope\n", answer.stderr
