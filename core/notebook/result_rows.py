"""Tuples of results that notebooks show as tables. Imports neither torch nor pandas."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import short_repr
from decodescope.core.system.optional_deps import why_missing
from decodescope.resources.language import tr, trn

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

RowT = TypeVar("RowT", covariant=True)
_MAX_SHOWN_ROWS = 200
_CELL = "padding:2px 10px;text-align:{side};white-space:pre;border:0"


class ResultRows(tuple[RowT, ...]):
    """The rows of a result, with the texts of the tokens that they refer to."""

    texts: Sequence[str]
    bar = ""
    """The column that notebooks draw as bars."""

    def __new__(cls, rows: Iterable[RowT] = (), texts: Sequence[str] = ()) -> Self:
        """Return the rows; `texts` are the spellings of the tokens before and at the step."""
        made = super().__new__(cls, rows)
        made.texts = tuple(texts)
        return made

    def __repr__(self) -> str:
        first = f": {short_repr(self[0])} …" if self else ""
        return f"<{type(self).__name__}, {len(self):,} rows{first}>"

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        raise NotImplementedError

    def to_dataframe(self) -> pd.DataFrame:
        """Return the rows as a pandas table. Raises ParameterError without pandas."""
        return make_dataframe(self.columns())

    def _repr_html_(self) -> str:
        """Return a table for notebooks, in the colours of the notebook."""
        return table_html(self.columns(), self.bar)


def make_dataframe(columns: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """Return a pandas table. Raises ParameterError without pandas."""
    if reason := why_missing("notebook"):
        raise ParameterError(tr("Tables need pandas."), reason)
    import pandas as pd

    return pd.DataFrame(dict(columns))


def table_html(columns: Mapping[str, Sequence[object]], bar: str = "") -> str:
    """Return an HTML table without scripts; `bar` is the column with a bar behind each number."""
    names = list(columns)
    rows = list(zip(*columns.values(), strict=True))
    numbers = [abs(float(value)) for value in columns.get(bar, ()) if isinstance(value, int | float)]
    largest = max(numbers, default=0.0) or 1.0
    heads = "".join(f'<th style="{_CELL.format(side="left")}">{html.escape(name)}</th>' for name in names)
    body = "".join(
        "<tr>" + "".join(
            _cell_html(value, largest if name == bar else 0.0) for name, value in zip(names, row, strict=True)
        ) + "</tr>"
        for row in rows[:_MAX_SHOWN_ROWS]
    )  # fmt: skip
    left_out = len(rows) - _MAX_SHOWN_ROWS
    more = trn("{count:,} more row", "{count:,} more rows", left_out).format(count=left_out) if left_out > 0 else ""
    note = f"<p>{html.escape(more)}</p>" if more else ""
    return f'<table style="border-collapse:collapse"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{note}'


def _cell_html(value: object, largest: float) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f'<td style="{_CELL.format(side="left")}">{html.escape(str(value))}</td>'
    text = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    style = _CELL.format(side="right")
    if largest:
        share = min(abs(value) / largest, 1.0) * 100
        colour = "rgba(0,114,178,.35)" if value >= 0 else "rgba(213,94,0,.35)"
        style += f";background:linear-gradient(to right,{colour} {share:.1f}%,transparent {share:.1f}%)"
    return f'<td style="{style}">{text}</td>'
