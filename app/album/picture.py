"""One picture of an album: everything that it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.start.cli.values import PICTURE_SIZE
from app.views import VIEWS
from resources.language import tr


class AlbumError(Exception):
    """The script, or one of its pictures, asks for what cannot be; the message says where, why and what to do."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A table of the script, read and checked; empty strings and None are what the table leaves open."""

    number: int
    """Of its table, from 1."""
    out: Path
    example: str = ""
    """Name of an example of the program: its prompt, model, strategy, settings and seed, under those of the table."""
    model: str = ""
    strategy: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    cache: str = ""
    cache_parameters: Mapping[str, Any] = field(default_factory=dict)
    drafts: tuple[str, ...] = ()
    prompt: str | None = None
    chat: bool = False
    seed: int | None = None
    trace: Path | None = None
    run: bool = True
    instead: tuple[tuple[int, str], ...] = ()
    """(token, words): each makes a run that goes on from there; they all branch from the first."""
    view: str = ""
    split: tuple[str, ...] = ()
    """Names of the two views that stand side by side."""
    hide: tuple[str, ...] = ()
    """Panels that are closed."""
    colours: str = ""
    """What the token view colours by."""
    text: int = 1
    cursor: int | None = None
    round: int | None = None
    token: int | None = None
    node: int | str | None = None
    """Of a tree: its number as in the figures of the view, or its words."""
    fit: bool = False
    """The whole tree in sight, as far as it can be read."""
    comparison: str = ""
    compared: tuple[str, ...] = ()
    size: tuple[int, int] = PICTURE_SIZE
    scale: float = 1.0
    theme: str = "light"
    font_scale: float = 1.0
    language: str = "en"
    still: bool = False

    @property
    def label(self) -> str:
        """How messages name it."""
        return tr("Picture {number} ({name})").format(number=self.number, name=self.out.name)

    @property
    def views(self) -> tuple[str, ...]:
        """What is shown, from left to right."""
        return self.split or (self.view or VIEWS[0].name,)
