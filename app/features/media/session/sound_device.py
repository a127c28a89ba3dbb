"""Audio device library (sounddevice), imported on first use if installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from decodescope.core.errors import DecodescopeError
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import mark, tr

PACKAGE = "sounddevice"


class SoundDeviceError(DecodescopeError):
    """There is no usable microphone or loudspeaker."""

    title = mark("Audio is not available")


def audio_unavailable_reason() -> str:
    """Return which package to install for audio; empty if it is installed. Imports nothing."""
    if find_spec(PACKAGE) is not None:
        return ""
    return tr("Recording and playback need the package {package}. Install it with {command}.").format(
        package=PACKAGE, command=f"pip install {PACKAGE}"
    )


def audio_library() -> Any:
    """Return the sounddevice module. Raises SoundDeviceError."""
    if missing := audio_unavailable_reason():
        raise SoundDeviceError(missing, tr("Install it, then restart the program."))
    try:
        import sounddevice
    except OSError as error:  # the package is installed, but the system's PortAudio is missing
        raise SoundDeviceError(
            tr("The package {package} cannot find the PortAudio library.").format(package=PACKAGE),
            tr("Install PortAudio (Debian and Ubuntu: libportaudio2), then restart the program."),
            str(error),
        ) from error
    return sounddevice


class RecordingWriteError(DecodescopeError):
    """A recording cannot be written."""

    title = mark("Recording not saved")


def to_audio_error(error: Exception) -> DecodescopeError:
    """Convert an error of a device or the disk; errors with a remedy stay as they are."""
    if isinstance(error, DecodescopeError):
        return error
    if isinstance(error, OSError) and error.errno:  # an error of the system, not of the library
        return RecordingWriteError(
            tr("The recording cannot be written: {reason}.").format(reason=system_error_reason(error)),
            tr("Free space on that disk, or make the folder writable."),
        )
    return SoundDeviceError(
        tr("The sound device cannot be used: {reason}.").format(reason=str(error).rstrip(".")),
        tr("Check that it is connected, switched on and not used by another program."),
    )
