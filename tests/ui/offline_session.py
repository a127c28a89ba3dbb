"""A session that uses the window, in a process that records and forbids connections.

`python -m tests.ui.offline_session FOLDER [everything]` writes its files into FOLDER and prints as JSON what was tried.
It exits with 1 if a connection was among it. `everything` adds what takes longer: every feature is used then.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

ATTEMPTS: list[str] = []
FORBIDDEN = {
    "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr", "urllib.Request", "http.client.connect", "ftplib.connect", "smtplib.connect",
}  # fmt: skip
"""Audit events of Python that precede a connection, or a question to a name server."""


def forbid(event: str, arguments: tuple[object, ...]) -> None:
    """Record an attempt to reach another machine and refuse it; sockets within this one, such as a desktop's, pass."""
    if event not in FORBIDDEN:
        return
    own = arguments[0] if arguments else None
    if isinstance(own, socket.socket) and own.family == getattr(socket, "AF_UNIX", None):
        return
    ATTEMPTS.append(f"{event} {arguments[1:] if isinstance(own, socket.socket) else arguments}")
    raise PermissionError(f"{event} is forbidden in this session")


def use_window(folder: Path, everything: bool) -> tuple[list[str], bool]:
    """Use the window, every feature of it if `everything`.

    Return what was done, and whether Qt's own network module was loaded before live runs of scripts, which need it for
    a local socket and come last.
    """
    from tests.ui.scripted_user import ScriptedUser

    user = ScriptedUser(folder)
    done = [what for strategy in ("beam_search", "prompt_lookup", "sampling") for what in user.run(strategy)]
    features = [
        user.look_at_the_run, user.export, user.replay, user.score, user.open_dialogs, user.use_the_core,
        user.search_history,
    ]  # fmt: skip
    if everything:
        features += [
            user.branch, user.guess, user.stop_a_run, user.chat, user.switch_models, user.use_plugins,
            user.change_appearance,
        ]  # fmt: skip
    for feature in features:
        done += feature()
    uses_qt_network = "PySide6.QtNetwork" in sys.modules
    if everything:
        done += user.receive_live_run()
    user.close()
    return done, uses_qt_network


def main() -> int:
    sys.addaudithook(forbid)
    done, uses_qt_network = use_window(Path(sys.argv[1]), everything="everything" in sys.argv[2:])
    print(json.dumps({"done": done, "attempts": ATTEMPTS, "qt_network": uses_qt_network}))
    return 1 if ATTEMPTS else 0


if __name__ == "__main__":
    sys.exit(main())
