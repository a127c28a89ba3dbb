"""Makes the sound cues in `resources/sounds/`: short, soft tones, so small that they need no licence and no studio.

python packaging/sounds.py
"""

from __future__ import annotations

import math
import wave
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "resources" / "sounds"
RATE = 11_025
"""Samples a second."""
CUES = {
    "accepted": ((880.0, 0.06), (1318.5, 0.09)),
    "refused": ((233.1, 0.15),),
    "finished": ((659.3, 0.08), (784.0, 0.08), (1046.5, 0.16)),
}
"""Tones in order: (hertz, seconds)."""
LOUDNESS = 0.35


def samples(hertz: float, seconds: float) -> bytes:
    """One tone that fades in and out, a byte a sample around 128."""
    count = round(seconds * RATE)
    shape = (math.sin(math.pi * (n + 0.5) / count) for n in range(count))
    tone = (math.sin(2 * math.pi * hertz * n / RATE) for n in range(count))
    return bytes(round(128 + 127 * LOUDNESS * loud * high) for loud, high in zip(shape, tone, strict=True))


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    for name, tones in CUES.items():
        with wave.open(str(FOLDER / f"{name}.wav"), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(1)
            out.setframerate(RATE)
            out.writeframes(b"".join(samples(*tone) for tone in tones))


if __name__ == "__main__":
    main()
