"""The results of the architecture trials in one file, each sentence stored once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("results.json")
MEDIA = KEPT.with_name("media.json")
"""Results of the audio and image families."""
NATIVE = KEPT.with_name("native.json")
"""Speed of the native decode step by family and kind of weights."""
Result = dict[str, Any]


def read(file: Path = KEPT) -> list[Result]:
    """Every result, by the name of its model type."""
    stored = json.loads(file.read_text(encoding="utf-8"))
    return [_with_cells(one, lambda cell: _unpacked(cell, stored["reasons"])) for one in stored["results"]]


def write(results: Iterable[Result], file: Path = KEPT) -> None:
    """All of them, a line each."""
    reasons: list[str] = []
    ordered = sorted(results, key=lambda one: one["kind"])
    lines = ",\n".join(_line(_with_cells(one, lambda cell: _packed(cell, reasons))) for one in ordered)
    reported = json.dumps(reasons, indent=0, ensure_ascii=False)
    file.write_text(f'{{"reasons": {reported},\n"results": [\n{lines}\n]}}\n', encoding="utf-8")


def read_native() -> list[Result]:
    """Return the results of the native decode step, one for each family."""
    found: list[Result] = json.loads(NATIVE.read_text(encoding="utf-8"))
    return found


def write_native(results: Iterable[Result]) -> None:
    """Write them, a line for each family."""
    lines = ",\n".join(_line(one) for one in results)
    NATIVE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def read_folder(folder: Path) -> list[Result]:
    """Read results that are stored in one file each."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]


def _line(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _with_cells(one: Result, changed: Callable[[Any], Any]) -> Result:
    if "skipped" in one:
        return one
    strategies = {name: changed(cell) for name, cell in one["strategies"].items()}
    caches = {name: {cache: changed(cell) for cache, cell in cells.items()} for name, cells in one["caches"].items()}
    return {**one, "strategies": strategies, "caches": caches}


def _packed(cell: list[str], reasons: list[str]) -> Any:
    """A state alone, or with the number of its sentence."""
    state, note = cell
    if not note:
        return state
    if note not in reasons:
        reasons.append(note)
    return [state, reasons.index(note)]


def _unpacked(cell: Any, reasons: list[str]) -> list[str]:
    return [cell, ""] if isinstance(cell, str) else [cell[0], reasons[cell[1]]]
