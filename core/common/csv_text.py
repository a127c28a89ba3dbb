"""CSV text from rows. Texts that a spreadsheet would run as formulas are escaped."""

from __future__ import annotations

from collections.abc import Sequence

CsvRows = Sequence[Sequence[object]]

_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters that start a formula in a spreadsheet, including full-width forms."""
_SPACE = " \t\r\n\v\f\0\u00a0\u3000\ufeff"


def to_csv(rows: CsvRows, escape_formulas: bool = True) -> str:
    """Return the rows as CSV. `escape_formulas` puts an apostrophe before texts that a spreadsheet would run."""
    import csv  # not before the window is seen
    import io

    lines = io.StringIO()
    csv.writer(lines).writerows(map(_escape_row, rows) if escape_formulas else rows)
    return lines.getvalue()


def _escape_row(row: Sequence[object]) -> list[object]:
    return [f"'{cell}" if isinstance(cell, str) and is_formula(cell) else cell for cell in row]


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet may run the text: it starts with =, +, - or @ (also after white space), a tab or a
    line break.
    """
    return text.startswith(("\t", "\r", "\n")) or text.lstrip(_SPACE).startswith(_FORMULA_STARTS)
