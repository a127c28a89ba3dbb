"""From a script in TOML to the pictures that it asks for, all of it checked before anything is drawn."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.album.picture import AlbumProblem, Picture
from app.album.picture_keys import Reader, readers
from app.start.cli.values import LARGEST_AREA
from app.state.suggestions import short
from app.views import VIEWS
from app.window.main_window import LEAST_SIZE
from core.suggestions import near
from resources.language import tr

_LIST = "picture"
_BESIDE_TRACE = ("example", "model", "strategy", "parameters", "cache", "cache_parameters", "drafts", "prompt", "seed")
"""What a recorded run says itself."""
_BRANCH = 'instead = [{ token = 4, words = "blue" }]'
_LARGEST_FILE = 2**22
"""Bytes of a script."""


def read_script(
    path: Path, scale: float = 1.0, still: bool = False, allow_outside: bool = False
) -> tuple[Picture, ...]:
    """The pictures of a script, in its order; `scale` and `still` hold where neither table nor defaults say.

    Keys beside the `[[picture]]` tables are defaults for all of them. Outputs lie below the script's folder unless
    `allow_outside`. Raises AlbumProblem.
    """
    told = _load(path)
    tables = told.pop(_LIST, None)
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables) or not tables:
        raise AlbumProblem(
            tr("{path} holds no picture: begin each with a line [[{list}]].").format(path=path, list=_LIST)
        )
    known = readers(path.resolve().parent, allow_outside)
    defaults = _values(told, known, tr("{name}, above the first [[{list}]]").format(name=path.name, list=_LIST))
    own = {"scale": scale, "still": still} | defaults
    pictures = tuple(_picture(own, table, known, path.name, n) for n, table in enumerate(tables, 1))
    _check_names(pictures, path.name)
    return pictures


def _load(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not path.is_file():  # a pipe would wait for ever, a device would never end
            raise AlbumProblem(tr("{path} is a folder, a pipe or a device: name a script's file.").format(path=path))
        if path.stat().st_size > _LARGEST_FILE:
            raise AlbumProblem(
                tr("{path} is too large for a script: {most:,} bytes are the most.").format(
                    path=path, most=_LARGEST_FILE
                )
            )
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AlbumProblem(
            tr("{path} cannot be read: {why}. Check the name and its rights.").format(
                path=path, why=error.strerror or error
            )
        ) from None
    except (UnicodeDecodeError, RecursionError):
        raise AlbumProblem(
            tr("{path} is no TOML: it must be text in UTF-8, and not too deep.").format(path=path)
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise AlbumProblem(tr("{path} is no TOML: {error}. Correct it there.").format(path=path, error=error)) from None


def _picture(
    defaults: Mapping[str, Any], table: Mapping[str, Any], known: Mapping[str, Reader], name: str, n: int
) -> Picture:
    where = tr("{name}, picture {n}").format(name=name, n=n) + (
        f" ({short(table['out'])})" if isinstance(table.get("out"), str) else ""
    )
    own = _values(table, known, where)
    if "out" not in own:
        raise AlbumProblem(
            tr('{where}: the key “out” is missing. Say which file to write: out = "name.png".').format(where=where)
        )
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
                tr("{where}: there is no key “{key}”.{near} There are: {names}.").format(
                    where=where, key=short(key), near=near(key, known), names=", ".join(known)
                )
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
    return [
        ("view", _comes_later(picture)),
        ("instead", tr("Nothing is run that could be branched from.") if picture.instead and not picture.run else ""),
        ("trace", _told(tr("A recorded run has its own “{key}”. Leave that key out."), picture.trace and beside,
                        key=beside)),
        ("split", tr("There is “view” too. Give one of the two.") if picture.view and picture.split else ""),
        ("size", _told(tr("The window is at least {width}x{height} large."), too_small,
                       width=LEAST_SIZE[0], height=LEAST_SIZE[1])),
        ("size", _told(tr("{width:.0f}x{height:.0f} pixels are too many: {most:,} are the most. Lessen size or scale."),
                       width * height > LARGEST_AREA, width=width, height=height, most=LARGEST_AREA)),
        *(_needs(picture, key, names) for key, names in _NEEDED_VIEWS.items()),
    ]  # fmt: skip


def _told(sentence: str, is_so: object, **values: object) -> str:
    """The sentence with its values, where it is so."""
    return sentence.format(**values) if is_so else ""


def _comes_later(picture: Picture) -> str:
    later = [view.name for view in VIEWS if view.comes_later and view.name in picture.views and not picture.instead]
    return tr("“{view}” comes with a branch: write {branch}.").format(view=later[0], branch=_BRANCH) if later else ""


_NEEDED_VIEWS = {
    "node": ("tree", "speculation"), "fit": ("tree", "branches"), "round": ("speculation",), "comparison": ("compare",),
    "compared": ("compare",), "colours": ("tokens",),
}  # fmt: skip


def _needs(picture: Picture, key: str, names: tuple[str, ...]) -> tuple[str, str]:
    if getattr(picture, key) in (None, "", (), False) or set(names) & set(picture.views):
        return key, ""
    return key, tr('It speaks of the view {names}, which is not shown. Write view = "{first}".').format(
        names=" or ".join(names), first=names[0]
    )


def _check_names(pictures: tuple[Picture, ...], name: str) -> None:
    seen: dict[Path, int] = {}
    for picture in pictures:
        first = seen.setdefault(picture.out, picture.number)
        if first != picture.number:
            raise AlbumProblem(
                tr(
                    "{name}, picture {number}, key “out”: picture {first} is written to {file} too. "
                    "Choose another name."
                ).format(name=name, number=picture.number, first=first, file=picture.out.name)
            )
