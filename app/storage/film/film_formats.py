"""The kinds of films there are, and the opening of one: beside its place first, then into it as a whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from app.storage.film.apng import ApngWriter
from app.storage.film.frame import FilmError, FilmWriter, Frame
from app.storage.film.gif import GifWriter
from app.storage.film.pngs import PngFolderWriter
from app.storage.film.webm import WebmWriter
from resources.language import mark, tr

APNG, GIF, WEBM, PNGS = "apng", "gif", "webm", "png"


class FilmFormat(NamedTuple):
    """One kind of film."""

    title: str
    """Marked: shown through `tr`."""
    create_writer: Callable[[Path], FilmWriter]


KINDS = {
    APNG: FilmFormat(mark("Animated picture (APNG)"), ApngWriter),
    GIF: FilmFormat(mark("Animated picture (GIF)"), GifWriter),
    WEBM: FilmFormat(mark("Film (WebM)"), WebmWriter),
    PNGS: FilmFormat(mark("A picture for every step (PNG)"), PngFolderWriter),
}
"""By the ending of the file; pictures for every step go into a folder of that name without its ending."""
ENDINGS = tuple(f".{kind}" for kind in KINDS)


class Film:
    """A film on its way to `path`: nothing is seen there before it is whole."""

    def __init__(self, path: Path) -> None:
        """Raises FilmError for an ending that stands for no film, or where its folder is there already; OSError."""
        kind = KINDS.get(path.suffix.lower().removeprefix("."))
        if kind is None:
            raise FilmError(tr("End the name of a film with {endings}.").format(endings=", ".join(ENDINGS)))
        self.path = path.with_suffix("") if kind is KINDS[PNGS] else path
        if kind is KINDS[PNGS] and self.path.exists():
            raise FilmError(tr("{folder} is there already. Choose another name.").format(folder=self.path))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._part_path = self.path.with_name(f".{self.path.name}-part")
        self._remove_leftovers()
        self._writer = kind.create_writer(self._part_path)

    def add(self, frame: Frame) -> None:
        """The next frame. Raises OSError or FilmError."""
        self._writer.add(frame)

    def close(self) -> None:
        """It is whole: let it be seen. Raises OSError or FilmError."""
        self._writer.close()
        self._part_path.replace(self.path)

    def discard(self) -> None:
        """Leave nothing behind."""
        self._writer.discard()

    def _remove_leftovers(self) -> None:
        """What a film that was cut off has left."""
        if self._part_path.is_dir():
            shutil.rmtree(self._part_path)
        self._part_path.unlink(missing_ok=True)
