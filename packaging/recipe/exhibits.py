"""Makes the sounds and pictures that ship with the program: ``python packaging/recipe/exhibits.py``.

A file is named after what is heard or seen. No sentence and no scene was trained on, and no voice. What espeak-ng says
is not under its licence, and the sentences and scenes are our own.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from describer.drawing import PAINT, Colour, draw
from describer.scenes import Scene, Thing
from listener.sounds import with_noise
from listener.voices import RATE, Speaker, say

MEDIA = Path(__file__).resolve().parents[2] / "resources" / "media"
AROUND = 0.25  # seconds of silence before and after a sentence


@dataclass(frozen=True)
class Said:
    """A sentence, who says it, and how far below the voice a noise is, in dB."""

    text: str
    speaker: Speaker
    noise: float | None = None
    seed: int = 0


@dataclass(frozen=True)
class Drawn:
    """A scene and paints that differ from the usual ones."""

    scene: Scene
    paints: Mapping[str, Colour] = field(default_factory=dict)
    seed: int = 0


SOUNDS = {
    "office-lamp": Said("turn on the office lamp", Speaker("en-us+linda", 160, 55, 0)),
    "long-number": Said("seven hundred and sixty one thousand and forty five", Speaker("en-gb-x-rp+m7", 180, 45, 0)),
    "quarter-past-eight": Said("wake me tomorrow at a quarter past eight", Speaker("en+Denis", 170, 50, 0)),
    "noisy-kitchen": Said("set the kitchen light to fifty", Speaker("en-us+f4", 180, 50, 0), noise=0.0),
}
PICTURES = {
    "star-and-ring": Drawn(
        Scene(
            (Thing("large", "yellow", "star", (0.3, 0.52)), Thing("small", "purple", "ring", (0.7, 0.5))),
            "grey",
            "a large yellow star to the left of a small purple ring on a grey ground",
        )
    ),
    "three-on-black": Drawn(
        Scene(
            (
                Thing("small", "blue", "square", (0.27, 0.27)),
                Thing("large", "orange", "circle", (0.73, 0.26)),
                Thing("large", "yellow", "diamond", (0.45, 0.74)),
            ),
            "black",
            "a small blue square and a large orange circle above a large yellow diamond on a black ground",
        )
    ),
    "purple-star": Drawn(
        Scene(
            (Thing("small", "purple", "star", (0.8, 0.8)),),
            "grey",
            "a small purple star at the bottom right on a grey ground",
        )
    ),
    "red-or-orange": Drawn(
        Scene(
            (Thing("small", "red", "diamond", (0.5, 0.3)), Thing("small", "green", "triangle", (0.52, 0.72))),
            "white",
            "a small red diamond above a small green triangle on a white ground",
        ),
        {"red": (230, 92, 35)},
    ),
}


def write_sound(path: Path, said: Said) -> None:
    """Mono, 16 bit, 16 kHz, as FLAC."""
    import soundfile

    spoken = say(said.text, said.speaker)
    if spoken is None:
        raise ValueError(f"too long to be heard at once: {said.text}")
    wave = np.pad(spoken.sound.astype(np.float32) / 40_000, int(AROUND * RATE))
    if said.noise is not None:
        wave = with_noise(np.random.default_rng(said.seed), wave, said.noise)
    soundfile.write(path, wave, RATE, subtype="PCM_16")


def main() -> None:
    """Write every file."""
    MEDIA.mkdir(exist_ok=True)
    for name, said in SOUNDS.items():
        write_sound(MEDIA / f"{name}.flac", said)
    for name, drawn in PICTURES.items():
        picture = draw(random.Random(drawn.seed), drawn.scene, {**PAINT, **drawn.paints})
        picture.save(MEDIA / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
