"""Reads an audio file or image for display. Call it in a background thread, as long files take time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from decodescope import core
from decodescope.app.session.background_tasks import error_report
from decodescope.app.state.media import MAX_THUMBNAIL_SIZE, PICTURE, WAVEFORM_INTERVALS, Medium, Thumbnail

if TYPE_CHECKING:
    import numpy as np


def read_medium(path: str) -> Medium:
    """Read a file with the core; `trouble` is set if that fails."""
    name = Path(path).name or path
    try:
        about = core.media.inspect(path)
        if about.kind == PICTURE:
            small = _thumbnail(path)
            return Medium(path, name, about.kind, width=about.width, height=about.height, thumbnail=small)
        peaks = peaks_of(core.media.samples(path, about.rate))
        return Medium(path, name, about.kind, seconds=about.seconds, rate=about.rate, peaks=peaks)
    except Exception as error:  # any library error for a broken file must not end the program
        return Medium(path, name, error=error_report(error))


def peaks_of(samples: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Return minimum and maximum of up to `PEAKS` equal parts of samples [n]."""
    import numpy as np

    if not len(samples):
        return ()
    edges = np.linspace(0, len(samples), min(WAVEFORM_INTERVALS, len(samples)) + 1).astype(int)[:-1]
    lows, highs = np.minimum.reduceat(samples, edges), np.maximum.reduceat(samples, edges)
    return tuple(zip(lows.tolist(), highs.tolist(), strict=True))


def _thumbnail(path: str) -> Thumbnail:
    """Scale the picture down to fit a square of `THUMBNAIL` pixels."""
    picture = core.media.picture(path)
    picture.thumbnail((MAX_THUMBNAIL_SIZE, MAX_THUMBNAIL_SIZE))
    return Thumbnail(picture.width, picture.height, picture.tobytes())
