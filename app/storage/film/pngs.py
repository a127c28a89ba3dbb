"""A film as a folder of numbered pictures, and a list that says how long each is shown."""

from __future__ import annotations

import shutil
from pathlib import Path

from app.storage.film.frame import Frame

FRAME_LIST_NAME = "frames.csv"


class PngFolderWriter:
    """`0001.png`, `0002.png` …"""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._lines = ["file,milliseconds"]

    def add(self, frame: Frame) -> None:
        """The next one, at once."""
        name = f"{len(self._lines):04}.png"
        frame.to_image().save(self._folder / name, "PNG")
        self._lines.append(f"{name},{frame.milliseconds}")

    def close(self) -> None:
        """The list."""
        (self._folder / FRAME_LIST_NAME).write_text("\n".join(self._lines) + "\n", encoding="utf-8", newline="\n")

    def discard(self) -> None:
        """Nothing is left of it."""
        shutil.rmtree(self._folder, ignore_errors=True)
