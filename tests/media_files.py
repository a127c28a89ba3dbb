"""Small audio and image files for tests."""

from __future__ import annotations

import math
import struct
import wave
from pathlib import Path


def sound(path: Path, seconds: float = 1.0, rate: int = 8000) -> str:
    """A tone that grows from silence."""
    count = round(seconds * rate)
    samples = [round(30000 * n / count * math.sin(n / 4)) for n in range(count)]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(struct.pack(f"<{count}h", *samples))
    return str(path)


def picture(path: Path, width: int = 24, height: int = 16) -> str:
    """Red on the left, blue on the right."""
    from PIL import Image

    image = Image.new("RGB", (width, height), "red")
    image.paste((0, 0, 255), (width // 2, 0, width, height))
    image.save(path)
    return str(path)
