"""Rankings and pairs in JSON lines: what TRL's preference datasets read, and the bundled set.

A line is a pair, `{"prompt": …, "chosen": …, "rejected": …}` (TRL's standard format of a preference dataset), or a
whole ranking, `{"prompt": …, "completions": […], "ranks": […]}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from core.arguments import check_path
from core.errors import PreferenceError
from core.file_writing import atomic_write
from core.labs.arguments import lab_object_list
from core.labs.preference.formats import is_example, normalize_ranking
from core.labs.preference.rankings import Pair, Ranking, pairs, parse_ranking
from core.labs.preference.write_errors import not_written_error
from resources.language import tr

BUNDLED_RANKINGS = Path(__file__).resolve().parents[3] / "resources" / "preference" / "rankings.jsonl"
"""Endings of stories, ranked by `rule`; made by packaging/preference/rankings.py."""
MAX_FILE_BYTES = 64 * 2**20
T = TypeVar("T")


def bundled_rankings() -> list[Ranking]:
    """The rankings that ship with the program."""
    return read_rankings(BUNDLED_RANKINGS)


class WrongDatasetError(PreferenceError):
    """A line of a file that belongs to another training."""


def read_rankings(path: str | Path) -> list[Ranking]:
    """Every ranking of a JSONL file, pairs as rankings of two. Raises ParameterError, PreferenceError that names the
    line."""
    check_path("path", path)
    found = read_json_lines(Path(path), _parse_ranking, _format_remedy())
    if not found:
        raise PreferenceError(tr("{file} holds no ranking.").format(file=Path(path).name), _format_remedy())
    return found


def write_rankings(path: str | Path, rankings: Iterable[Ranking]) -> None:
    """A line for each ranking, whole. Raises ParameterError, FileNotWrittenError."""
    check_path("path", path)
    _write_json_lines(Path(path), map(asdict, lab_object_list("rankings", rankings, Ranking)))


def write_pairs(path: str | Path, rankings: Iterable[Ranking]) -> int:
    """A line for each pair, as TRL reads them; how many there are. Raises ParameterError, FileNotWrittenError."""
    check_path("path", path)
    found: list[Pair] = [pair for ranking in lab_object_list("rankings", rankings, Ranking) for pair in pairs(ranking)]
    _write_json_lines(Path(path), (pair._asdict() for pair in found))
    return len(found)


def _parse_ranking(values: dict[str, object]) -> Ranking:
    if is_example(values):
        raise WrongDatasetError(
            tr("It is an example for fine-tuning, not a ranking."),
            tr("Open the file where a model learns from examples, or give “prompt”, “chosen” and “rejected”."),
        )
    return parse_ranking(normalize_ranking(values))


def read_json_lines(path: Path, read: Callable[[dict[str, object]], T], remedy: str) -> list[T]:
    """What `read` makes of the object on each line, or in a JSON list. `remedy`: what the file should hold. Raises
    PreferenceError that names the file and the line."""
    try:
        if path.exists() and not path.is_file():  # a pipe would wait for ever, a device would never end
            raise PreferenceError(
                tr("{file} is a folder, a pipe or a device, not a file.").format(file=path.name), remedy
            )
        if path.stat().st_size > MAX_FILE_BYTES:
            raise PreferenceError(
                tr("{file} is larger than {most} MB.").format(file=path.name, most=MAX_FILE_BYTES // 2**20), remedy
            )
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # no UTF-8, or what no path can hold
        raise PreferenceError(
            tr("{file} cannot be read: {error}.").format(file=path.name, error=error), remedy
        ) from error
    lines: list[object] = [*text.split("\n")]
    if text.lstrip().startswith("["):
        try:
            lines = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PreferenceError(
                tr("{file} is no JSON: {error}.").format(file=path.name, error=error), remedy
            ) from error
    return [
        _read_line(path, number, line, read, remedy)
        for number, line in enumerate(lines, 1)
        if not isinstance(line, str) or line.strip()
    ]


def _read_line(path: Path, number: int, line: object, read: Callable[[dict[str, object]], T], remedy: str) -> T:
    try:
        values = json.loads(line) if isinstance(line, str) else line
        if not isinstance(values, dict):
            raise PreferenceError(tr("It is no JSON object."))
        return read(values)
    except (ValueError, RecursionError) as error:
        cause = tr("It is no JSON: {error}.").format(error=error)
    except PreferenceError as error:
        cause = error.cause
        if isinstance(error, WrongDatasetError):
            remedy = error.remedy
    raise PreferenceError(
        tr("Line {number} of {file}: {cause}").format(number=number, file=path.name, cause=cause), remedy
    )


def _format_remedy() -> str:
    return tr("Each line is a JSON object with “prompt”, “chosen” and “rejected”.")


def _write_json_lines(path: Path, rows: Iterable[dict[str, object]]) -> None:
    """All or nothing: the file takes its place once it is whole. Raises FileNotWrittenError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    except (OSError, ValueError) as error:  # what no path can hold is a ValueError
        raise not_written_error(path, error) from error
