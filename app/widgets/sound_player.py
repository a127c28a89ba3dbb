"""Short sounds, played by what the system brings: Qt's own player is no part of what is installed.

Nothing waits for a sound, and where it cannot be heard (no device, a player that fails) nothing is said.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress

from PySide6.QtCore import QElapsedTimer, QProcess

import resources
from resources.language import tr

MIN_INTERVAL_MS = 150
CUES = ("accepted", "refused", "finished")
PLAYERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "darwin": (("afplay",),),
    "linux": (("pw-play",), ("paplay",), ("aplay", "-q")),
}
"""Programs that play a file, the first one found is taken; Windows plays by itself."""


def player_command(platform: str = sys.platform) -> Sequence[str]:
    """The command before a file's name; empty where there is none."""
    return next((command for command in PLAYERS.get(platform, ()) if shutil.which(command[0])), ())


def sound_unsupported_reason(platform: str = sys.platform) -> str:
    """Why no sound can be played here; empty where one can."""
    if platform == "win32" or player_command(platform):
        return ""
    names = ", ".join(command[0] for command in PLAYERS.get(platform, PLAYERS["linux"]))
    return tr("No program that plays sounds was found here ({names}).").format(names=names)


class CuePlayer:
    """Plays one after another: what comes too soon is left out, so that a fast run does not rattle."""

    def __init__(self) -> None:
        self._command = player_command()
        self._since = QElapsedTimer()

    def play(self, name: str) -> None:
        """Begin one of `CUES`, and go on at once."""
        if self._since.isValid() and self._since.elapsed() < MIN_INTERVAL_MS:
            return
        self._since.start()
        path = resources.path("sounds", f"{name}.wav")
        if sys.platform == "win32":
            import winsound

            how = winsound.SND_FILENAME | winsound.SND_ASYNC | winsound.SND_NODEFAULT
            with suppress(RuntimeError):  # no device
                winsound.PlaySound(str(path), how)
        elif self._command:
            _start_detached([*self._command, str(path)])


def _start_detached(command: Sequence[str]) -> bool:
    """Let a program run by itself, without its words; False where it cannot be started."""
    process = QProcess()
    process.setProgram(command[0])
    process.setArguments(list(command[1:]))
    process.setStandardOutputFile(QProcess.nullDevice())
    process.setStandardErrorFile(QProcess.nullDevice())
    return bool(process.startDetached())  # no pair, whatever its stub says
