"""Read a TOML script into pictures. Everything is checked before anything is drawn."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from decodescope.app.album.picture import AlbumError, Picture, ValueReader, value_readers
from decodescope.app.start.cli.values import MAX_AREA
from decodescope.app.state.suggestions import truncate_name
from decodescope.app.views import VIEWS
from decodescope.app.window.main_window import MIN_SIZE
from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import join_names, tr

_TABLE_NAME = "picture"
_KEYS_OF_TRACE = ("example", "model", "strategy", "parameters", "cache", "cache_parameters", "drafts", "prompt", "seed")
"""Keys that a recorded run defines itself."""
_BRANCH_EXAMPLE = 'instead = [{ token = 4, words = "blue" }]'
_MAX_SCRIPT_BYTES = 2**22
"""Maximum size of a script, in bytes."""


def read_script(
    path: Path, scale: float = 1.0, still: bool = False, allow_outside: bool = False
) -> tuple[Picture, ...]:
    """Read the pictures of a script, in order.

    Keys outside the `[[picture]]` tables are defaults for all of them; `scale` and `still` apply where neither table
    nor defaults set them. Outputs lie below the script's folder unless `allow_outside`. Raises AlbumError.
    """
    script = _load_toml(path)
    tables = script.pop(_TABLE_NAME, None)
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables) or not tables:
        raise AlbumError(
            tr("{path} contains no picture. Begin each picture with a line [[{list}]].").format(
                path=path, list=_TABLE_NAME
            )
        )
    known = value_readers(path.resolve().parent, allow_outside)
    defaults = _read_values(
        script, known, tr("{name}, before the first [[{list}]]").format(name=path.name, list=_TABLE_NAME)
    )
    own = {"scale": scale, "still": still} | defaults
    pictures = tuple(_picture(own, table, known, path.name, n) for n, table in enumerate(tables, 1))
    _check_names(pictures, path.name)
    return pictures


def _load_toml(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not path.is_file():  # a pipe would block forever, a device might never end
            raise AlbumError(
                tr("{path} is a folder, a pipe or a device. Give the name of a script file.").format(path=path)
            )
        if path.stat().st_size > _MAX_SCRIPT_BYTES:
            raise AlbumError(
                tr("{path} is too large for a script. The maximum is {most:,} bytes.").format(
                    path=path, most=_MAX_SCRIPT_BYTES
                )
            )
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AlbumError(
            tr("{path} cannot be read: {why}. Check the name and the permissions.").format(
                path=path, why=system_error_reason(error)
            )
        ) from None
    except (UnicodeDecodeError, RecursionError):
        raise AlbumError(
            tr("{path} is not valid TOML. It must be UTF-8 text and not nested too deeply.").format(path=path)
        ) from None
    except ValueError as error:  # TOMLDecodeError, or Python's limit on the digits of a number
        raise AlbumError(
            tr("{path} is not valid TOML: {error}. Correct that line.").format(path=path, error=error)
        ) from None


def _picture(
    defaults: Mapping[str, Any], table: Mapping[str, Any], value_readers: Mapping[str, ValueReader], name: str, n: int
) -> Picture:
    where = tr("{name}, picture {n}").format(name=name, n=n) + (
        f" ({truncate_name(table['out'])})" if isinstance(table.get("out"), str) else ""
    )
    own = _read_values(table, value_readers, where)
    if "out" not in own:
        raise AlbumError(
            tr('{where}: the key “out” is missing. Name the file to write, for example out = "name.png".').format(
                where=where
            )
        )
    effective_defaults = {key: value for key, value in defaults.items() if key not in _overridden_keys(own)}
    merged = {
        key: {**effective_defaults.get(key, {}), **own.get(key, {})} for key in ("parameters", "cache_parameters")
    }
    picture = replace(Picture(n, own["out"]), **{**effective_defaults, **own, **merged})
    for key, problem in _conflicts(picture):
        if problem:
            raise AlbumError(f"{where}, key “{key}”: {problem}")
    return picture


def _read_values(table: Mapping[str, Any], value_readers: Mapping[str, ValueReader], location: str) -> dict[str, Any]:
    found = {}
    for key, value in table.items():
        if key not in value_readers:
            raise AlbumError(
                tr("{where}: unknown key “{key}”.{near} Available keys: {names}.").format(
                    where=location,
                    key=truncate_name(key),
                    near=did_you_mean(key, value_readers),
                    names=join_names(value_readers),
                )
            )
        try:
            found[key] = value_readers[key](value)
        except ValueError as problem:
            raise AlbumError(f"{location}, key “{key}”: {problem}") from None
    return found


def _overridden_keys(own: Mapping[str, Any]) -> set[str]:
    """Return the defaults that the table's own keys override."""
    replaced = set()
    for key, others in (
        ("view", {"split"}),
        ("split", {"view"}),
        ("example", {"prompt"}),
        ("trace", set(_KEYS_OF_TRACE)),
    ):
        replaced |= others if key in own else set()
    return replaced


def _conflicts(picture: Picture) -> list[tuple[str, str]]:
    """Return pairs (key, how it conflicts with other keys, or "")."""
    width, height = (side * picture.scale for side in picture.size)
    too_small = picture.size[0] < MIN_SIZE[0] or picture.size[1] < MIN_SIZE[1]
    trace_key = next((key for key in _KEYS_OF_TRACE if getattr(picture, key) not in (None, "", (), {})), "")
    return [
        ("view", _missing_branch(picture)),
        (
            "instead",
            tr("A branch needs a run, but “run” is false. Remove one of the two keys.")
            if picture.instead and not picture.run
            else "",
        ),
        (
            "trace",
            _format_if(
                tr("A recorded run defines “{key}” itself. Remove that key."),
                picture.trace and trace_key,
                key=trace_key,
            ),
        ),
        ("split", tr("“view” is set as well. Use only one of the two.") if picture.view and picture.split else ""),
        (
            "size",
            _format_if(
                tr("The window must be at least {width}x{height}."), too_small, width=MIN_SIZE[0], height=MIN_SIZE[1]
            ),
        ),
        (
            "size",
            _format_if(
                tr("{width:.0f}x{height:.0f} pixels are too many; the maximum is {most:,}. Reduce size or scale."),
                width * height > MAX_AREA,
                width=width,
                height=height,
                most=MAX_AREA,
            ),
        ),
        *(_check_view_shown(picture, key, names) for key, names in _VIEWS_OF_KEY.items()),
    ]


def _format_if(sentence: str, condition: object, **values: object) -> str:
    """Return the formatted sentence if `condition` holds, else ""."""
    return sentence.format(**values) if condition else ""


def _missing_branch(picture: Picture) -> str:
    later = [
        view.name for view in VIEWS if view.hidden_when_empty and view.name in picture.views and not picture.instead
    ]
    return tr("“{view}” needs a branch. Add {branch}.").format(view=later[0], branch=_BRANCH_EXAMPLE) if later else ""


_VIEWS_OF_KEY = {
    "node": ("tree", "speculation"), "fit": ("tree", "branches"), "round": ("speculation",), "comparison": ("compare",),
    "compared": ("compare",), "colours": ("tokens",),
}  # fmt: skip


def _check_view_shown(picture: Picture, key: str, names: tuple[str, ...]) -> tuple[str, str]:
    if getattr(picture, key) in (None, "", (), False) or set(names) & set(picture.views):
        return key, ""
    return key, tr('This key applies to the view {names}, which is not shown. Add view = "{first}".').format(
        names=" or ".join(names), first=names[0]
    )


def _check_names(pictures: tuple[Picture, ...], name: str) -> None:
    seen: dict[Path, int] = {}
    for picture in pictures:
        first = seen.setdefault(picture.out, picture.number)
        if first != picture.number:
            raise AlbumError(
                tr(
                    "{name}, picture {number}, key “out”: picture {first} also writes {file}. Choose another name."
                ).format(name=name, number=picture.number, first=first, file=picture.out.name)
            )
