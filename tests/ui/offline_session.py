"""A session that uses the window, in a process that records and forbids connections.

`python -m tests.ui.offline_session FOLDER` writes its files into FOLDER and prints as JSON what was tried. It exits
with 1 if a connection was among it.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path

ATTEMPTS: list[str] = []
FORBIDDEN = {
    "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr", "urllib.Request", "http.client.connect", "ftplib.connect", "smtplib.connect",
}  # fmt: skip
"""Audit events of Python that precede a connection, or a question to a name server."""
WAIT_MS = 120_000


def forbid(event: str, arguments: tuple[object, ...]) -> None:
    """Record an attempt to reach another machine and refuse it; sockets within this one, such as a desktop's, pass."""
    if event not in FORBIDDEN:
        return
    own = arguments[0] if arguments else None
    if isinstance(own, socket.socket) and own.family == getattr(socket, "AF_UNIX", None):
        return
    ATTEMPTS.append(f"{event} {arguments[1:] if isinstance(own, socket.socket) else arguments}")
    raise PermissionError(f"{event} is forbidden in this session")


def wait_for(signal: object, start: Callable[[], object]) -> None:
    """Start something and process events until its signal arrives. Raises TimeoutError."""
    from PySide6.QtCore import QEventLoop, QTimer

    loop, timer = QEventLoop(), QTimer(singleShot=True)
    signal.connect(loop.quit)  # type: ignore[attr-defined]
    timer.timeout.connect(lambda: loop.exit(1))
    timer.start(WAIT_MS)
    start()
    if loop.exec():
        raise TimeoutError(f"{start} took longer than {WAIT_MS} ms")


def use_everything(folder: Path) -> list[str]:
    """Load, run, view, export, record, replay, compare and score; return what was done."""
    from PySide6.QtWidgets import QApplication

    import core
    from app import build_window
    from app.panels.export_dialog import TRACE
    from app.views import VIEWS
    from app.widgets.widget_pictures import PictureOptions

    application = QApplication([])
    window = build_window(folder / "settings")
    parts, done = window.parts, []
    wait_for(window.session.modelReady, window.show)
    for strategy, values in (
        ("sampling", {"temperature": 1.1}),
        ("beam_search", {"num_beams": 3}),
        ("prompt_lookup", {}),
    ):
        parts.settings_controller.choose(strategy=strategy)
        parts.settings_controller.set_values({"max_new_tokens": 8, **values})
        parts.setup.prompt.set_prompt("Once upon a time, a fox")
        wait_for(window.session.finished, parts.runs.run)
        assert window.session.run is not None
        assert window.session.run.text
        done.append(f"run {strategy}")
        for view in VIEWS:
            parts.centre.show_view(view.name)
            application.processEvents()
            done.append(f"view {view.name}")
    for offer in parts.export.exports.offers():
        for kind in offer.formats:
            path = folder / f"{offer.name}.{kind}"
            if kind == TRACE:
                parts.recorded_runs.save(str(path))
            else:
                parts.export.save(offer.name, PictureOptions(offer.size), str(path))
            assert path.stat().st_size, path
            done.append(f"export {path.name}")
    recording = next(folder.glob("*.decodescope"))
    parts.recorded_runs.open(str(recording))
    done.append("replay")
    wait_for(window.session.finished, parts.scoring.score_prompt)
    done.append("score")
    parts.history_panel.show()
    for name in ("open_palette", "open_settings", "open_help", "open_glossary", "open_shortcuts", "about", "copy_code"):
        parts.actions.do(name)
        application.processEvents()
        for dialog in application.topLevelWidgets():
            if dialog is not window:
                dialog.close()
        done.append(f"command {name}")
    events = core.stream(core.load("storyteller"), core.Request("A fox", {"max_new_tokens": 4}))
    list(core.record(folder / "script.decodescope", events, core.Request("A fox")))
    done.append("script")
    window.close()
    application.processEvents()
    return done


def main() -> int:
    sys.addaudithook(forbid)
    done = use_everything(Path(sys.argv[1]))
    print(json.dumps({"done": done, "attempts": ATTEMPTS, "qt_network": "PySide6.QtNetwork" in sys.modules}))
    return 1 if ATTEMPTS else 0


if __name__ == "__main__":
    sys.exit(main())
