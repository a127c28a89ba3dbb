"""Decode audio with libsndfile, mix it to one channel, and resample it to the model's rate."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decodescope.core.errors import MediaDamagedError, MediaError, MediaTooLargeError
from decodescope.core.media.media_files import (
    MAX_CHANNELS,
    MAX_SAMPLE_RATE,
    MAX_SAMPLES,
    MOST_SECONDS,
    SOUND,
    MediaFile,
    checked_path,
    damaged_error,
    read_bytes,
)
from decodescope.resources.language import tr

if TYPE_CHECKING:
    import soundfile

_BLOCK_SAMPLES = 2**16
"""Samples of all channels decoded at a time."""
_UNKNOWN_LENGTH = 0x7FFF_0000
"""Placeholder length that programs write before the real length is determined."""


def describe_sound(file: Path, content: bytes, digest: str) -> MediaFile:
    """Describe the audio. Raises MediaDamagedError, MediaTooLargeError."""
    mono, opened = _decode(file.name, content)
    return MediaFile(
        file, SOUND, opened.format, len(content), digest, seconds=len(mono) / opened.samplerate,
        rate=opened.samplerate, channels=opened.channels,
    )  # fmt: skip


def read_samples(path: str | Path, rate: int) -> np.ndarray:
    """Return the audio as one channel, float32 [n] from −1 to 1, at `rate` samples per second. Raises MediaError."""
    mono, opened = _decode(checked_path(path).name, read_bytes(path))
    if opened.samplerate == rate:
        return mono
    import soxr

    resampled: np.ndarray = soxr.resample(mono, opened.samplerate, rate)
    return resampled.astype(np.float32, copy=False)


def _decode(name: str, content: bytes) -> tuple[np.ndarray, soundfile.SoundFile]:
    """Return all samples as the mean of the channels, and the opened file. Raises MediaError."""
    import soundfile

    _check_complete(name, content)
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as opened:
            if not 0 < opened.samplerate <= MAX_SAMPLE_RATE:
                raise damaged_error(name, SOUND, tr("{rate:,} Hz").format(rate=opened.samplerate))
            mono = _mix_to_mono(name, opened)
    except MediaError:
        raise
    except (soundfile.SoundFileError, RuntimeError, ValueError, MemoryError) as error:
        raise damaged_error(name, SOUND, error) from error
    if not len(mono):
        raise MediaDamagedError(tr("{file} contains no audio.").format(file=name), tr("Choose another file."))
    if not np.isfinite(mono).all():
        raise damaged_error(name, SOUND, "NaN")
    return mono, opened


def _mix_to_mono(name: str, sound_file: soundfile.SoundFile) -> np.ndarray:
    """Mix block by block, so that a header that claims days of audio costs no memory."""
    if sound_file.channels > MAX_CHANNELS:
        raise damaged_error(name, SOUND, tr("{count:,} channels").format(count=sound_file.channels))
    max_samples, blocks, count = MOST_SECONDS * sound_file.samplerate, list[np.ndarray](), 0
    size = max(1, _BLOCK_SAMPLES // sound_file.channels)
    while len(block := sound_file.read(size, dtype="float32", always_2d=True)):
        count += len(block)
        if count * sound_file.channels > MAX_SAMPLES:
            raise MediaTooLargeError(
                tr("{file} exceeds the limit of {most:,} samples.").format(file=name, most=MAX_SAMPLES),
                tr("Split it, or save it with fewer channels or a lower sample rate."),
            )
        if count > max_samples:
            raise MediaTooLargeError(
                tr("{file} is longer than {minutes:g} minutes.").format(file=name, minutes=MOST_SECONDS / 60),
                tr("Split it into shorter files."),
            )
        blocks.append(block.mean(axis=1))
    return np.concatenate(blocks) if blocks else np.zeros(0, np.float32)


def _check_complete(name: str, content: bytes) -> None:
    """Check the length in a WAV header, because libsndfile reads an incomplete file without an error."""
    if content[:4] == b"RIFF":
        promised = int.from_bytes(content[4:8], "little")
        if promised < _UNKNOWN_LENGTH and promised + 8 > len(content) + 1:
            cause = tr("{size:,} of {promised:,} bytes").format(size=len(content), promised=promised + 8)
            raise damaged_error(name, SOUND, cause)
