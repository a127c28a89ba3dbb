"""Vary a spoken sentence as in recordings: silence around it, another loudness, noise."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from listener.voices import RATE, Sound

SECONDS = 4  # that the listener hears at once
KINDS_OF_NOISE = 100
Wave = NDArray[np.float32]  # between -1 and 1


@cache
def noises() -> list[Wave]:
    """Noises of unit power: white, or falling with frequency as wind and engines do, some with a hum."""
    rng = np.random.default_rng(0)
    return [noise(rng, SECONDS * RATE) for _ in range(KINDS_OF_NOISE)]


def noise(rng: np.random.Generator, count: int) -> Wave:
    """Return noise of `count` samples."""
    spectrum = np.fft.rfft(rng.standard_normal(count))
    spectrum *= np.maximum(np.arange(len(spectrum)), 20.0) ** -rng.uniform(0.0, 1.2)
    sound = np.fft.irfft(spectrum, count)
    sound /= sound.std()
    if rng.random() < 0.2:
        sound += np.sin(2 * np.pi * rng.choice((50, 60, 100)) / RATE * np.arange(count))
    return sound.astype(np.float32)


def placed(rng: np.random.Generator, sound: Sound) -> tuple[Wave, int]:
    """The sentence somewhere within the seconds heard, silence around it, loud or soft; and its first sample."""
    wave = np.zeros(SECONDS * RATE, np.float32)
    room = min(len(wave) - len(sound), RATE)
    start = int(rng.integers(0, room + 1))
    loud = float(np.abs(sound).max()) or 1.0
    wave[start : start + len(sound)] = sound / loud * rng.uniform(0.1, 0.95)
    return wave, start


def spoiled(rng: np.random.Generator, wave: Wave, loudest: float = 6.0) -> Wave:
    """With noise in three of four, ``loudest`` to 40 dB below the speech."""
    if rng.random() < 0.25:
        return wave
    return with_noise(rng, wave, rng.uniform(loudest, 40.0))


def with_noise(rng: np.random.Generator, wave: Wave, below: float) -> Wave:
    """Add noise `below` decibels under the speech."""
    spoken = wave[wave != 0]
    power = spoken.std() * 10 ** (-below / 20)
    kind, start = rng.integers(KINDS_OF_NOISE), rng.integers(len(wave))
    return np.clip(wave + power * np.roll(noises()[kind], start)[: len(wave)], -1, 1).astype(np.float32)
