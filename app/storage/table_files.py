"""Figures as files: rows below a head, as CSV or as JSON. Numbers stay numbers, as exact as they are."""

from __future__ import annotations

import json
import math
from itertools import repeat
from pathlib import Path

from app.state.csv_text import CsvRows, to_csv

__all__ = ["CSV", "JSON", "CsvRows", "as_json", "to_csv", "write_table"]

CSV, JSON = "csv", "json"


def write_table(rows: CsvRows, path: Path, guard_formulas: bool = True) -> None:
    """Write `rows`, the head first, as the path's suffix says. Raises OSError."""
    text = as_json(rows) if path.suffix.lower() == ".json" else to_csv(rows, guard_formulas)
    path.write_text(text, encoding="utf-8", errors="replace", newline="")  # half a character is none


def as_json(rows: CsvRows) -> str:
    """A list with an object for each row, its keys the head's words; what is no finite number is null, and so is what
    a shorter row lacks."""
    head, *lines = rows or [()]
    keys = [str(key) for key in head]
    objects = [
        dict(zip(keys, [*map(_json_value, line), *repeat(None, len(keys) - len(line))], strict=True)) for line in lines
    ]
    return json.dumps(objects, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _json_value(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
