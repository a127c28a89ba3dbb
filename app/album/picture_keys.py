"""The keys of a picture's table: what each takes. A reader gives the value back, or raises ValueError with a sentence
that says what is wrong and what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from app.album.targets import check_target
from app.start.cli.values import MAX_RATIO, MAX_SIDE, MIN_RATIO
from app.state.number_checks import is_integer, is_number
from app.state.suggestions import truncate_name, unknown_name_message
from app.storage import examples
from app.storage.settings import MAX_SCALE, MAX_SEED, MIN_SCALE
from app.theme.palettes import SCHEMES
from app.views import VIEWS
from app.views.text.row_painting import COLOURINGS
from app.widgets.widget_pictures import SUFFIXES
from core import caches, strategies
from resources.language import LANGUAGES, tr

ValueReader = Callable[[object], Any]
PANELS = ("setup", "inspector", "timeline")
_MAX_NUMBER = 10_000_000


def value_readers(folder: Path, allow_outside: bool = False) -> Mapping[str, ValueReader]:
    """Every key of a table, by name; `folder` is where paths begin, and where outputs stay unless `allow_outside`."""
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
        raise ValueError(tr("It takes a text, not {value}: write it in quotes.").format(value=_quoted(value)))
    return value


def _text_list(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(
            tr("It takes a list of texts, not {value}: write it in brackets.").format(value=_quoted(value))
        )
    return tuple(_text(item) for item in value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(tr("It takes true or false, not {value}.").format(value=_quoted(value)))
    return value


def _table(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(
            tr("It takes settings by name, not {value}: write {{ top_p = 0.9 }}.").format(value=_quoted(value))
        )
    return value


def _branches(value: object) -> tuple[tuple[int, str], ...]:
    """(token, what stands there instead), one after another."""
    return tuple(_branch(table) for table in (value if isinstance(value, list) else [value]))


def _branch(table: object) -> tuple[int, str]:
    if not isinstance(table, dict) or set(table) != {"token", "words"}:
        raise ValueError(tr('It takes tables of a token and words: write [{ token = 4, words = "blue" }].'))
    return _count(table["token"]), _text(table["words"])


def _integer(value: object, minimum: int, maximum: int) -> int:
    if not is_integer(value) or not minimum <= value <= maximum:
        raise ValueError(
            tr("It takes a whole number from {least:,} to {most:,}, not {value}.").format(
                least=minimum, most=maximum, value=_quoted(value)
            )
        )
    return value


def _count(value: object) -> int:
    """Counted as the window counts: from 1."""
    return _integer(value, 1, _MAX_NUMBER)


def _number(value: object, minimum: float, maximum: float) -> float:
    if not is_number(value) or not minimum <= value <= maximum:
        raise ValueError(
            tr("It takes a number from {least} to {most}, not {value}.").format(
                least=minimum, most=maximum, value=_quoted(value)
            )
        )
    return float(value)


def _one_of(kind: str, value: object, known: Iterable[str]) -> str:
    name, names = _text(value), list(known)
    if name not in names:
        raise ValueError(unknown_name_message(kind, name, names))
    return name


def _view_pair(value: object, views: list[str]) -> tuple[str, ...]:
    names = _text_list(value)
    if len(names) != 2:
        raise ValueError(tr('It takes two views, not {count}: write ["tokens", "tree"].').format(count=len(names)))
    return tuple(_one_of("view", name, views) for name in names)


def _node(value: object) -> int | str:
    return value if isinstance(value, str) else _integer(value, 0, _MAX_NUMBER)


def _size(value: object) -> tuple[int, int]:
    read = re.fullmatch(r"([0-9]{1,5})[xX×]([0-9]{1,5})", value) if isinstance(value, str) else None
    width, height = (int(read[1]), int(read[2])) if read else (0, 0)
    if not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE):
        raise ValueError(tr('It takes a size in points, not {value}: write "1100x700".').format(value=_quoted(value)))
    return width, height


def _file(value: object, folder: Path) -> Path:
    """Begins at the script's folder."""
    name = _text(value)
    if "\0" in name:
        raise ValueError(tr("It takes the name of a file, not {value}.").format(value=_quoted(value)))
    return folder / name


def _output_file(value: object, folder: Path, allow_outside: bool) -> Path:
    path = _file(value, folder)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(
            tr("{value} is no kind of picture: end the name with {names}.").format(
                value=_quoted(value), names=" or ".join(SUFFIXES)
            )
        )
    check_target(path, None if allow_outside else folder)
    return path


def _quoted(value: object) -> str:
    return f"“{truncate_name(value)}”" if isinstance(value, str) else truncate_name(str(value))
