"""Short sounds, played by the system, because Qt Multimedia is not installed.

Playing never blocks, and failures (no device, a failing player) are ignored.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress

from PySide6.QtCore import QElapsedTimer, QProcess

from decodescope import resources
from decodescope.resources.language import join_names, tr

MIN_INTERVAL_MS = 150
CUES = ("accepted", "refused", "finished")
PLAYERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "darwin": (("afplay",),),
    "linux": (("pw-play",), ("paplay",), ("aplay", "-q")),
}
"""Programs that play a file; the first installed one is used. Windows needs none."""


def player_command(platform: str = sys.platform) -> Sequence[str]:
    """Return the command that precedes the file's name; empty if no player is installed."""
    return next((command for command in PLAYERS.get(platform, ()) if shutil.which(command[0])), ())


def sound_unsupported_reason(platform: str = sys.platform) -> str:
    """Return why no sound can be played here, or an empty string."""
    if platform == "win32" or player_command(platform):
        return ""
    names = join_names(command[0] for command in PLAYERS.get(platform, PLAYERS["linux"]))
    return tr("No sound player was found ({names}).").format(names=names)


class CuePlayer:
    """Plays sounds, but skips those that follow too quickly, so that a fast run does not rattle."""

    def __init__(self) -> None:
        self._command = player_command()
        self._since = QElapsedTimer()

    def play(self, name: str) -> None:
        """Start playing one of `CUES` and return immediately."""
        if self._since.isValid() and self._since.elapsed() < MIN_INTERVAL_MS:
            return
        self._since.start()
        path = resources.path("sounds", f"{name}.wav")
        if sys.platform == "win32":
            import winsound

            how = winsound.SND_FILENAME | winsound.SND_ASYNC | winsound.SND_NODEFAULT
            with suppress(RuntimeError):  # no sound device
                winsound.PlaySound(str(path), how)
        elif self._command:
            _start_detached([*self._command, str(path)])


def _start_detached(command: Sequence[str]) -> bool:
    """Start a detached program without output. Returns False if it cannot be started."""
    process = QProcess()
    process.setProgram(command[0])
    process.setArguments(list(command[1:]))
    process.setStandardOutputFile(QProcess.nullDevice())
    process.setStandardErrorFile(QProcess.nullDevice())
    return bool(process.startDetached())  # not a tuple, contrary to the stub
