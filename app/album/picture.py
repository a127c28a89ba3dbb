"""One picture of an album: its table, the values that each key accepts, and where it may be written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decodescope.app.start.cli.values import MAX_RATIO, MAX_SIDE, MIN_RATIO, PICTURE_SIZE
from decodescope.app.state.setting_values import is_integer, is_number
from decodescope.app.state.suggestions import truncate_name, unknown_name_message
from decodescope.app.storage import examples
from decodescope.app.storage.settings import MAX_SCALE, MAX_SEED, MIN_SCALE
from decodescope.app.theme.palettes import SCHEMES
from decodescope.app.views import VIEWS
from decodescope.app.views.text.row_painting import COLOURINGS
from decodescope.app.widgets.widget_pictures import SUFFIXES
from decodescope.core import caches, strategies
from decodescope.core.errors import FileNotWrittenError
from decodescope.core.system.file_writing import check_destination
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import LANGUAGES, tr


class AlbumError(Exception):
    """The script or one of its pictures is invalid. The message says where, why, and how to correct it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One checked table of the script. Empty strings and None stand for keys that the table omits."""

    number: int
    """Number of its table, counted from 1."""
    out: Path
    example: str = ""
    """Name of a built-in example. Its prompt, model, strategy, settings and seed are defaults for the keys of the
    table.
    """
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
    """Pairs (token, words): each makes a run that continues from there. All of them branch from the first run."""
    view: str = ""
    split: tuple[str, ...] = ()
    """Names of the two views shown side by side."""
    hide: tuple[str, ...] = ()
    """Panels to close."""
    colours: str = ""
    """Colouring of the token view."""
    text: int = 1
    cursor: int | None = None
    round: int | None = None
    token: int | None = None
    node: int | str | None = None
    """Node of a tree: its number as in the view's figures, or its text."""
    fit: bool = False
    """Fit the whole tree into view, as far as it stays readable."""
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
        """The picture's label in messages."""
        return tr("Picture {number} ({name})").format(number=self.number, name=self.out.name)

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views shown, from left to right."""
        return self.split or (self.view or VIEWS[0].name,)


_HEAD = 4096
"""Number of leading bytes that are inspected to recognize the file type."""
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


def check_target(path: Path, folder: Path | None) -> None:
    """Raise ValueError for a file that a script must not write; `folder` is None if it may write anywhere.

    Symbolic links are resolved first, so the check applies to the file that would be written.
    """
    target = Path(os.path.realpath(path))
    if folder is not None and not target.is_relative_to(os.path.realpath(folder)):
        raise ValueError(
            tr("{file} lies outside the script's folder. Choose a file below it, or add --allow-outside.").format(
                file=target
            )
        )
    if os.path.lexists(target) and not target.is_file():
        raise ValueError(tr("{file} is a folder, a pipe or a device. Choose another name.").format(file=target))
    try:
        check_destination(target, creates_folders=True)
    except FileNotWrittenError as error:
        raise ValueError(str(error)) from None
    try:
        if target.exists() and not is_picture(target):
            raise ValueError(
                tr("{file} exists and is not a picture. Choose another name, or move the file.").format(file=target)
            )
    except OSError as error:
        raise ValueError(
            tr("{file} cannot be read: {why}. Choose another name.").format(file=target, why=system_error_reason(error))
        ) from None


def is_picture(path: Path) -> bool:
    """Return whether a file contains a picture or is empty. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    is_webp = head[:4] == b"RIFF" and head[8:12] == b"WEBP"
    return not head or head.startswith(_SIGNATURES) or is_webp or _is_svg(head)


def _is_svg(head: bytes) -> bool:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"<") and b"<svg" in text


ValueReader = Callable[[object], Any]
PANELS = ("setup", "inspector", "timeline")
_MAX_NUMBER = 10_000_000


def value_readers(folder: Path, allow_outside: bool = False) -> Mapping[str, ValueReader]:
    """Return the reader of every key. `folder` is the base of relative paths; outputs must lie below it unless
    `allow_outside`.
    """
    views = [view.name for view in VIEWS]
    return {
        "out": lambda value: _output_file(value, folder, allow_outside),
        "example": lambda value: _one_of("example", value, (example.id for example in examples.load_examples())),
        "model": _text,
        "strategy": lambda value: _one_of("strategy", value, strategies.registry),
        "parameters": _table,
        "cache": lambda value: _one_of("cache", value, caches.registry),
        "cache_parameters": _table,
        "drafts": _text_list,
        "prompt": _text,
        "chat": _boolean,
        "seed": lambda value: _integer(value, 0, MAX_SEED),
        "trace": lambda value: _file(value, folder),
        "run": _boolean,
        "instead": _branches,
        "view": lambda value: _one_of("view", value, views),
        "split": lambda value: _view_pair(value, views),
        "hide": lambda value: tuple(_one_of("panel", name, PANELS) for name in _text_list(value)),
        "colours": lambda value: _one_of("colouring", value, COLOURINGS),
        "text": _count,
        "cursor": lambda value: _integer(value, 0, _MAX_NUMBER),
        "round": _count,
        "token": _count,
        "node": _node,
        "fit": _boolean,
        "comparison": _text,
        "compared": _text_list,
        "size": _size,
        "scale": lambda value: _number(value, MIN_RATIO, MAX_RATIO),
        "theme": lambda value: _one_of("theme", value, SCHEMES),
        "font_scale": lambda value: _number(value, MIN_SCALE, MAX_SCALE),
        "language": lambda value: _one_of("language", value, LANGUAGES),
        "still": _boolean,
    }


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(tr("Expected text, not {value}. Put it in quotes.").format(value=_quoted(value)))
    return value


def _text_list(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(tr("Expected a list of texts, not {value}. Put it in brackets.").format(value=_quoted(value)))
    return tuple(_text(item) for item in value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(tr("Expected true or false, not {value}.").format(value=_quoted(value)))
    return value


def _table(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(
            tr("Expected settings by name, not {value}. Example: {{ top_p = 0.9 }}.").format(value=_quoted(value))
        )
    return value


def _branches(value: object) -> tuple[tuple[int, str], ...]:
    """Read pairs (token, replacement text), one after another."""
    return tuple(_branch(table) for table in (value if isinstance(value, list) else [value]))


def _branch(table: object) -> tuple[int, str]:
    if not isinstance(table, dict) or set(table) != {"token", "words"}:
        raise ValueError(tr('Expected tables with a token and words. Example: [{ token = 4, words = "blue" }].'))
    return _count(table["token"]), _text(table["words"])


def _integer(value: object, minimum: int, maximum: int) -> int:
    if not is_integer(value) or not minimum <= value <= maximum:
        raise ValueError(
            tr("Expected a whole number from {least:,} to {most:,}, not {value}.").format(
                least=minimum, most=maximum, value=_quoted(value)
            )
        )
    return value


def _count(value: object) -> int:
    """Read a number that counts from 1, as in the window."""
    return _integer(value, 1, _MAX_NUMBER)


def _number(value: object, minimum: float, maximum: float) -> float:
    if not is_number(value) or not minimum <= value <= maximum:
        raise ValueError(
            tr("Expected a number from {least} to {most}, not {value}.").format(
                least=minimum, most=maximum, value=_quoted(value)
            )
        )
    return float(value)


def _one_of(kind: str, value: object, known_names: Iterable[str]) -> str:
    name, names = _text(value), list(known_names)
    if name not in names:
        raise ValueError(unknown_name_message(kind, name, names))
    return name


def _view_pair(value: object, views: list[str]) -> tuple[str, ...]:
    names = _text_list(value)
    if len(names) != 2:
        raise ValueError(tr('Expected two views, not {count}. Example: ["tokens", "tree"].').format(count=len(names)))
    return tuple(_one_of("view", name, views) for name in names)


def _node(value: object) -> int | str:
    return value if isinstance(value, str) else _integer(value, 0, _MAX_NUMBER)


def _size(value: object) -> tuple[int, int]:
    read = re.fullmatch(r"([0-9]{1,5})[xX×]([0-9]{1,5})", value) if isinstance(value, str) else None
    width, height = (int(read[1]), int(read[2])) if read else (0, 0)
    if not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE):
        raise ValueError(
            tr('Expected a size in points, not {value}. Example: "1100x700".').format(value=_quoted(value))
        )
    return width, height


def _file(value: object, folder: Path) -> Path:
    """Resolve the path relative to the script's folder."""
    name = _text(value)
    if "\0" in name:
        raise ValueError(tr("Expected a file name, not {value}.").format(value=_quoted(value)))
    return folder / name


def _output_file(value: object, folder: Path, allow_outside: bool) -> Path:
    path = _file(value, folder)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(
            tr("{value} is not a supported picture format. End the name with {names}.").format(
                value=_quoted(value), names=" or ".join(SUFFIXES)
            )
        )
    check_target(path, None if allow_outside else folder)
    return path


def _quoted(value: object) -> str:
    return f"“{truncate_name(value)}”" if isinstance(value, str) else truncate_name(str(value))
