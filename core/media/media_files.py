"""Audio and image files: limits, kinds, and checks of untrusted files before they are decoded."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from decodescope.core.errors import (
    MediaDamagedError,
    MediaError,
    MediaFormatError,
    MediaMissingError,
    MediaTooLargeError,
)
from decodescope.core.parameter import short_repr
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr

Kind = Literal["sound", "picture"]
SOUND: Kind = "sound"
PICTURE: Kind = "picture"


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A readable audio or image file.

    Audio has seconds, sample rate and channels; an image has its displayed size and its number of frames (the first is
    read).
    """

    path: Path
    kind: Kind
    format: str
    """The usual name of the format: WAV, FLAC, PNG, JPEG."""
    bytes: int
    digest: str
    """SHA-256 of the file, in hexadecimal."""
    seconds: float = 0.0
    rate: int = 0
    channels: int = 0
    width: int = 0
    height: int = 0
    frames: int = 1


MOST_BYTES = 128 * 2**20
"""Maximum size of a file: ten minutes of CD audio, or any photograph."""
MOST_SECONDS = 600
"""Maximum length of audio. Models take less: Whisper takes 30 seconds."""
MAX_SAMPLE_RATE = 768_000
"""Maximum sample rate: four times the highest of studios."""
MAX_CHANNELS = 64
MAX_SAMPLES = 256_000_000
"""Maximum samples over all channels: ten minutes of stereo at 192,000 per second. A small file may contain more."""
MOST_PIXELS = 64_000_000
"""Maximum pixels of a decoded image: 192 MB. A small file may claim to be terabytes large."""


_SIGNATURES = (
    (b"fLaC", SOUND), (b"OggS", SOUND), (b"ID3", SOUND), (b".snd", SOUND), (b"caff", SOUND),
    (b"\x89PNG\r\n\x1a\n", PICTURE), (b"\xff\xd8\xff", PICTURE), (b"GIF8", PICTURE), (b"BM", PICTURE),
    (b"II*\0", PICTURE), (b"MM\0*", PICTURE),
)  # fmt: skip
_CONTAINER_KINDS = {b"WAVE": SOUND, b"WEBP": PICTURE, b"AIFF": SOUND, b"AIFC": SOUND}
"""Content type at the ninth byte of RIFF and FORM files."""


def checked_path(path: object) -> Path:
    """Return the path. Raises MediaMissingError if it is not one."""
    if not isinstance(path, str | os.PathLike):
        raise MediaMissingError(
            tr("{value} is not a file path.").format(value=short_repr(path)),
            tr("Choose a file on this disk."),
        )
    return Path(path)


def kind_of(path: str | Path) -> Kind:
    """Return whether the file is audio or an image, from its first bytes alone. Raises MediaError."""
    file = checked_path(path)
    _check_file(file)
    try:
        with file.open("rb") as opened:
            head = opened.read(16)
    except OSError as error:
        raise _missing_error(file, system_error_reason(error)) from error
    if not head:
        raise MediaDamagedError(tr("{file} is empty.").format(file=file.name), tr("Choose another file."))
    found = _kind_of_header(head)
    if found is None:
        raise MediaFormatError(
            tr("{file} is not in a supported audio or image format.").format(file=file.name),
            tr("Convert it to WAV, FLAC, OGG, MP3 or AIFF (audio), or PNG, JPEG, GIF, BMP, WEBP or TIFF (image)."),
        )
    return found


def read_bytes(path: str | Path) -> bytes:
    """Read a whole file that `kind_of` has accepted. Raises MediaError."""
    file = checked_path(path)
    _check_file(file)
    try:
        with file.open("rb") as opened:
            return opened.read(MOST_BYTES)
    except OSError as error:
        raise _missing_error(file, system_error_reason(error)) from error


def damaged_error(name: str, kind: Kind, details: object = "") -> MediaError:
    """Return the error for a file whose content cannot be decoded."""
    sentence = (
        tr("{file} cannot be played because it is damaged or incomplete.")
        if kind == SOUND
        else tr("{file} cannot be shown because it is damaged or incomplete.")
    )
    return MediaDamagedError(
        sentence.format(file=name), tr("Copy or save it again, or choose another file."), str(details)
    )


def _kind_of_header(head: bytes) -> Kind | None:
    if head[:4] in (b"RIFF", b"FORM", b"RF64"):
        return _CONTAINER_KINDS.get(head[8:12])
    if head[0] == 0xFF and len(head) > 1 and head[1] & 0xE6 == 0xE2:
        return SOUND  # an MPEG layer III frame
    return next((kind for begin, kind in _SIGNATURES if head.startswith(begin)), None)


def _check_file(file: Path) -> None:
    try:
        about = file.stat()
    except FileNotFoundError:
        raise MediaMissingError(
            tr("The file {file} does not exist.").format(file=file), tr("Choose a file on this disk.")
        ) from None
    except (OSError, ValueError) as error:
        raise _missing_error(file, system_error_reason(error)) from error
    if stat.S_ISDIR(about.st_mode):
        raise MediaMissingError(tr("{file} is a folder.").format(file=file), tr("Choose a file in it."))
    if not stat.S_ISREG(about.st_mode):
        raise MediaMissingError(
            tr("{file} is a pipe, a socket or a device, not a regular file.").format(file=file),
            tr("Choose a regular audio or image file."),
        )
    if about.st_size > MOST_BYTES:
        raise MediaTooLargeError(
            tr("{file} has {bytes:,} bytes; the maximum is {most:,}.").format(
                file=file.name, bytes=about.st_size, most=MOST_BYTES
            ),
            tr("Shorten or shrink it, or save it in a more compact format."),
        )
    if not os.access(file, os.R_OK):
        raise _missing_error(file, tr("permission denied"))


def _missing_error(file: Path, reason: str) -> MediaMissingError:
    return MediaMissingError(
        tr("{file} cannot be opened: {reason}.").format(file=file, reason=reason), tr("Choose another file.")
    )
