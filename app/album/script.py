"""From a script in TOML to the pictures that it asks for, all of it checked before anything is drawn."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.album.keys import Reader, readers
from app.album.picture import AlbumProblem, Picture
from app.cli import LARGEST_AREA
from app.state.near import near, short
from app.views import VIEWS
from app.window.main_window import LEAST_SIZE

_LIST = "picture"
_BESIDE_TRACE = ("example", "model", "strategy", "parameters", "cache", "cache_parameters", "drafts", "prompt", "seed")
"""What a recorded run says itself."""
_BRANCH = 'instead = [{ token = 4, words = "blue" }]'
_LARGEST_FILE = 2**22
"""Bytes of a script."""


def read_script(path: Path, scale: float = 1.0, still: bool = False) -> tuple[Picture, ...]:
    """The pictures of a script, in its order; `scale` and `still` hold where neither table nor defaults say.

    Keys beside the `[[picture]]` tables are defaults for all of them. Raises AlbumProblem.
    """
    told = _load(path)
    tables = told.pop(_LIST, None)
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables) or not tables:
        raise AlbumProblem(f"{path} holds no picture: begin each with a line [[{_LIST}]].")
    known = readers(path.resolve().parent)
    defaults = _values(told, known, f"{path.name}, above the first [[{_LIST}]]")
    own = {"scale": scale, "still": still} | defaults
    pictures = tuple(_picture(own, table, known, path.name, n) for n, table in enumerate(tables, 1))
    _check_names(pictures, path.name)
    return pictures


def _load(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise AlbumProblem(f"{path} is too large for a script: {_LARGEST_FILE:,} bytes are the most.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AlbumProblem(
            f"{path} cannot be read: {error.strerror or error}. Check the name and its rights."
        ) from None
    except (UnicodeDecodeError, RecursionError):
        raise AlbumProblem(f"{path} is no TOML: it must be text in UTF-8, and not too deep.") from None
    except tomllib.TOMLDecodeError as error:
        raise AlbumProblem(f"{path} is no TOML: {error}. Correct it there.") from None


def _picture(
    defaults: Mapping[str, Any], table: Mapping[str, Any], known: Mapping[str, Reader], name: str, n: int
) -> Picture:
    where = f"{name}, picture {n}" + (f" ({short(table['out'])})" if isinstance(table.get("out"), str) else "")
    own = _values(table, known, where)
    if "out" not in own:
        raise AlbumProblem(f'{where}: the key “out” is missing. Say which file to write: out = "name.png".')
    kept = {key: value for key, value in defaults.items() if key not in _replaced_by(own)}
    merged = {key: {**kept.get(key, {}), **own.get(key, {})} for key in ("parameters", "cache_parameters")}
    picture = replace(Picture(n, own["out"]), **{**kept, **own, **merged})
    for key, problem in _contradictions(picture):
        if problem:
            raise AlbumProblem(f"{where}, key “{key}”: {problem}")
    return picture


def _values(table: Mapping[str, Any], known: Mapping[str, Reader], where: str) -> dict[str, Any]:
    found = {}
    for key, value in table.items():
        if key not in known:
            raise AlbumProblem(
                f"{where}: there is no key “{short(key)}”.{near(key, known)} There are: {', '.join(known)}."
            )
        try:
            found[key] = known[key](value)
        except ValueError as problem:
            raise AlbumProblem(f"{where}, key “{key}”: {problem}") from None
    return found


def _replaced_by(own: Mapping[str, Any]) -> set[str]:
    """Defaults that what a table says for itself puts out of force."""
    replaced = set()
    for key, others in (
        ("view", {"split"}),
        ("split", {"view"}),
        ("example", {"prompt"}),
        ("trace", set(_BESIDE_TRACE)),
    ):
        replaced |= others if key in own else set()
    return replaced


def _contradictions(picture: Picture) -> list[tuple[str, str]]:
    """(key, what is wrong with it beside the others, or nothing)."""
    width, height = (side * picture.scale for side in picture.size)
    too_small = picture.size[0] < LEAST_SIZE[0] or picture.size[1] < LEAST_SIZE[1]
    beside = next((key for key in _BESIDE_TRACE if getattr(picture, key) not in (None, "", (), {})), "")
    later = [view.name for view in VIEWS if view.comes_later and view.name in picture.views]
    return [
        ("view", f"“{later[0]}” comes with a branch: write {_BRANCH}." if later and not picture.instead else ""),
        ("instead", "Nothing is run that could be branched from." if picture.instead and not picture.run else ""),
        ("trace", f"A recorded run has its own “{beside}”. Leave that key out." if picture.trace and beside else ""),
        ("split", "There is “view” too. Give one of the two." if picture.view and picture.split else ""),
        ("size", f"The window is at least {LEAST_SIZE[0]}x{LEAST_SIZE[1]} large." if too_small else ""),
        ("size", f"{width:.0f}x{height:.0f} pixels are too many: {LARGEST_AREA:,} are the most. Lessen size or scale."
         if width * height > LARGEST_AREA else ""),
        *(_needs(picture, key, names) for key, names in _NEEDED_VIEWS.items()),
    ]  # fmt: skip


_NEEDED_VIEWS = {
    "node": ("tree", "speculation"), "fit": ("tree", "branches"), "round": ("speculation",), "comparison": ("compare",),
    "compared": ("compare",), "colours": ("tokens",),
}  # fmt: skip


def _needs(picture: Picture, key: str, names: tuple[str, ...]) -> tuple[str, str]:
    if getattr(picture, key) in (None, "", (), False) or set(names) & set(picture.views):
        return key, ""
    return key, f'It speaks of the view {" or ".join(names)}, which is not shown. Write view = "{names[0]}".'


def _check_names(pictures: tuple[Picture, ...], name: str) -> None:
    seen: dict[Path, int] = {}
    for picture in pictures:
        first = seen.setdefault(picture.out, picture.number)
        if first != picture.number:
            raise AlbumProblem(
                f"{name}, picture {picture.number}, key “out”: picture {first} is written to {picture.out.name} too. "
                "Choose another name."
            )
