"""The library that reaches microphones and loudspeakers, where it is installed; imported when first asked for."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from core.errors import DecodescopeError
from resources.language import mark, tr

PACKAGE = "sounddevice"


class SoundDeviceError(DecodescopeError):
    """There is no microphone or loudspeaker, or it cannot be used."""

    title = mark("Nothing can be recorded or played")


def audio_unavailable_reason() -> str:
    """What to install before anything can be recorded or played; empty where it is there. Imports nothing."""
    if find_spec(PACKAGE) is not None:
        return ""
    return tr("Recording and playing need the package {package}: {command} brings it.").format(
        package=PACKAGE, command=f"pip install {PACKAGE}"
    )


def audio_library() -> Any:
    """The library. Raises SoundDeviceError."""
    if missing := audio_unavailable_reason():
        raise SoundDeviceError(missing, tr("Install it, then start the program again."))
    try:
        import sounddevice
    except OSError as error:  # the package is there, the system's PortAudio is not
        raise SoundDeviceError(
            tr("The package {package} finds no PortAudio library on this system.").format(package=PACKAGE),
            tr("Install PortAudio (on Debian and Ubuntu: libportaudio2), then start the program again."),
            str(error),
        ) from error
    return sounddevice


class RecordingWriteError(DecodescopeError):
    """What is heard cannot be written."""

    title = mark("The recording cannot be kept")


def to_audio_error(error: Exception) -> DecodescopeError:
    """What a device answers that cannot be opened, or the disk; an error that says what to do stays as it is."""
    if isinstance(error, DecodescopeError):
        return error
    if isinstance(error, OSError) and error.errno:  # of the system, and not of the library
        return RecordingWriteError(
            tr("What the microphone hears cannot be written: {reason}.").format(
                reason=os.strerror(error.errno).lower()
            ),
            tr("Make room on that disk, or make its folder writable."),
        )
    return SoundDeviceError(
        tr("The sound device cannot be used: {reason}.").format(reason=str(error).rstrip(".")),
        tr("Look whether one is plugged in, switched on, and not taken by another program."),
    )
