"""Files that the system asks the running program to open, as the Finder of macOS does."""

import sys

import pytest
from PySide6.QtCore import QEvent, QUrl
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

from decodescope.app.start.application import Application, OpenedFiles


def asked(path: str) -> QFileOpenEvent:
    return QFileOpenEvent(QUrl.fromLocalFile(path))


def test_files_that_arrive_before_the_window_are_opened_once_it_is_there():
    opened, files = [], OpenedFiles()
    assert files.handle(asked("/a.decodescope"))
    assert not files.handle(QEvent(QEvent.Type.ApplicationFontChange))
    assert not files.handle(QFileOpenEvent(QUrl("https://example.org/b.decodescope"))), "not a file of this computer"
    files.open_with(opened.append)
    assert files.handle(asked("/b.decodescope"))
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
    """In a process of its own: pytest-qt has an application of another class."""
    import subprocess

    assert issubclass(Application, QApplication)
    answer = subprocess.run([sys.executable, "-c", SEND, "/tmp/a.decodescope"], capture_output=True, text=True)
    assert answer.stdout == "/tmp/a.decodescope\n", answer.stderr
