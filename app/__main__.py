"""`tokenscope` and `python -m app`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from app.cli import parse


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the window; gives back the exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    import qasync
    from PySide6.QtWidgets import QApplication

    from app.launch import start

    application = QApplication.instance() or QApplication(["tokenscope"])
    application.setApplicationName("Tokenscope")
    application.setQuitOnLastWindowClosed(False)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with qasync.QEventLoop(application) as loop:
        return int(loop.run_until_complete(start(options)))


if __name__ == "__main__":
    sys.exit(main())
