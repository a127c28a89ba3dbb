"""Rows of bars as they are told, and where their parts lie in a given width."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from PySide6.QtGui import QFontMetricsF

from app.theme.theme import Theme

MIN_BAR_WIDTH = 40
"""Pixels at 100 % that a track must have to stand beside its label."""


@dataclass(frozen=True, slots=True)
class BarRow:
    """One row. `lengths` are shares of the track: the upper bar grey, the lower one in the accent colour."""

    label: str
    lengths: tuple[float, ...]
    figures: tuple[str, ...]
    strong: bool = False
    faint: bool = False
    tip: str = ""
    bar_colors: tuple[str, ...] = field(default=())
    """Colour names of the bars, where they differ from the usual ones."""
    key: int | None = None
    """What `Bars.rowPicked` says when the row is clicked; None: it cannot be."""
    hints: tuple[float, ...] = ()
    """Shares of the track that faint strokes reach, on a scale of their own, where the bars would be too short."""

    @property
    def colors(self) -> tuple[str, ...]:
        """Names of the colours of its bars."""
        return self.bar_colors or (("faint", "accent") if len(self.lengths) == 2 else ("accent",))


@dataclass(frozen=True)
class BarsLayout:
    """Rows below a head, `width` pixels wide: a label at the left, bars, columns of figures flush right.

    `widest_figure`: the longest figure there can be; `fits_labels`: the column of labels is as wide as its longest one.
    What has to measure words does so once.
    """

    theme: Theme
    width: int
    rows: tuple[BarRow, ...] = ()
    head: tuple[str, ...] = ()
    widest_figure: str = ""
    fits_labels: bool = False

    @cached_property
    def columns(self) -> list[tuple[float, float]]:
        """(left, width) of each column of figures, set flush right; the same for every set of rows."""
        theme = self.theme
        count = max((len(row.figures) for row in self.rows), default=0)
        least = QFontMetricsF(theme.font(13, 600, tabular=True)).horizontalAdvance(self.widest_figure)
        small = QFontMetricsF(theme.font(11))
        heads = [small.horizontalAdvance(text) + theme.px(10) for text in self.head]
        widths = [max(least, heads[n] if n < len(heads) else 0.0) for n in range(count)]
        gap, edge, columns = theme.px(10), float(self.width), []
        for width in reversed(widths):
            columns.append((edge - width, width))
            edge -= width + gap
        return columns[::-1]

    @cached_property
    def label_width(self) -> float:
        """Width of the column of labels."""
        if not self.fits_labels:
            return min(self.theme.px(88), self.width * 0.3)
        metrics = QFontMetricsF(self.theme.font(13, 600))
        longest = max((metrics.horizontalAdvance(row.label) for row in self.rows), default=0.0)
        return min(longest + self.theme.px(12), self.width * 0.45)

    @cached_property
    def bar_width(self) -> float:
        """Width that labels and figures leave for bars."""
        columns = self.columns
        return (columns[0][0] if columns else self.width) - self.theme.px(12) - self.label_width

    @cached_property
    def is_stacked(self) -> bool:
        """Whether the bars lie below the words, because the figures leave no room beside them."""
        is_narrow = bool(self.rows) and self.bar_width < self.theme.px(MIN_BAR_WIDTH)
        return is_narrow or any(len(row.figures) > 2 for row in self.rows)

    @property
    def row_height(self) -> int:
        """Pixels from row to row."""
        return self.theme.px(36 if self.is_stacked else 23)

    @property
    def head_height(self) -> int:
        """Pixels above the first row."""
        return self.theme.px(18) if self.head else 0

    @property
    def height(self) -> int:
        """Pixels of everything."""
        return self.head_height + self.row_height * len(self.rows)

    def row_at(self, y: int) -> BarRow | None:
        """The row at that height; None where none is."""
        number = (y - self.head_height) // self.row_height
        return self.rows[number] if 0 <= number < len(self.rows) else None
