"""Rows as text in CSV. A text that a spreadsheet would run as a formula is marked as text. No Qt in here."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

CsvRows = Sequence[Sequence[object]]

_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the beginning of a formula, in full width too."""
_SPACE = " \t\r\n\v\f\0\u00a0\u3000\ufeff"


def to_csv(rows: CsvRows, escape_formulas: bool = True) -> str:
    """A line for each row. `escape_formulas` puts an apostrophe before a text that a spreadsheet would run."""
    lines = io.StringIO()
    csv.writer(lines).writerows(map(_escape_row, rows) if escape_formulas else rows)
    return lines.getvalue()


def _escape_row(row: Sequence[object]) -> list[object]:
    return [f"'{cell}" if isinstance(cell, str) and is_formula(cell) else cell for cell in row]


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may run the text: it begins with =, +, - or @ (behind space too), a tab or a return."""
    return text.startswith(("\t", "\r", "\n")) or text.lstrip(_SPACE).startswith(_FORMULA_STARTS)
