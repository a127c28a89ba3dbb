"""Figures as files: rows below a head, as CSV or as JSON. Numbers stay numbers, as exact as they are."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path

Rows = Sequence[Sequence[object]]
CSV, JSON = "csv", "json"


_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the beginning of a formula, in full width too."""
_SPACE = " \t\r\n\v\f\0\u00a0\u3000\ufeff"


def write_table(rows: Rows, path: Path, guard_formulas: bool = True) -> None:
    """Write `rows`, the head first, as the path's suffix says. Raises OSError."""
    text = as_json(rows) if path.suffix.lower() == ".json" else as_csv(rows, guard_formulas)
    path.write_text(text, encoding="utf-8", newline="")


def as_csv(rows: Rows, guard_formulas: bool = True) -> str:
    """A line for each row. `guard_formulas` puts an apostrophe before a text that a spreadsheet would run."""
    lines = io.StringIO()
    csv.writer(lines).writerows(map(_guarded, rows) if guard_formulas else rows)
    return lines.getvalue()


def _guarded(row: Sequence[object]) -> list[object]:
    return [f"'{cell}" if isinstance(cell, str) and is_formula(cell) else cell for cell in row]


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may run the text: it begins with =, +, - or @, behind space too, or with a tab or return."""
    return text.startswith(("\t", "\r", "\n")) or text.lstrip(_SPACE).startswith(_FORMULA_STARTS)


def as_json(rows: Rows) -> str:
    """A list with an object for each row, its keys the head's words; what is no finite number is null."""
    head, *lines = rows
    keys = [str(key) for key in head]
    objects = [dict(zip(keys, map(_plain, line), strict=True)) for line in lines]
    return json.dumps(objects, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
