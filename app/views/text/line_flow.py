"""Lines of a growing text: append only lays out the last line again, and only lines that are drawn are shaped.

Each line is shaped as a whole and set as any text is: letters join and marks combine across tokens, and right-to-left
words stand from right to left, so that what was written can be read. A token's mark stands where its letters do, in
several stretches where directions mix. Offsets are Python's (code points); `ShapedLine` converts to and from Qt's
UTF-16
positions.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QTextLayout, QTextLine, QTextOption

from app.views.text.cells import Cell, cell_at, grapheme_boundaries, line_cells, x_of
from core.lightweight_dataclass import plain

_MAX_TRAILING_SPACES = 256
"""Spaces that hang behind the end of a row."""
_MAX_ROW_CHARACTERS = 2048
"""Characters in a row: no screen is as wide, but some characters have no width."""
_MAX_CHUNK = 4000
"""Characters of a paragraph that Qt breaks into lines at once."""
_RTL = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001eeff"


@cache
def _has_rtl() -> re.Pattern[str]:
    return re.compile(f"[{_RTL}]")


@cache
def _strong() -> re.Pattern[str]:
    return re.compile(rf"[{_RTL}]|[^\W\d_]")


def reads_right_to_left(paragraph: str) -> bool:
    """Whether the first letter of `paragraph` belongs to a right-to-left script."""
    first = _strong().search(paragraph)
    return bool(first and _has_rtl().match(first[0]))


def text_option(rtl: bool, wrap: bool, tab: float = 0.0) -> QTextOption:
    """How paragraphs are broken and set: at words, inside one only where it is longer than the line."""
    option = QTextOption()
    mode = QTextOption.WrapMode
    option.setWrapMode(mode.WrapAtWordBoundaryOrAnywhere if wrap else mode.NoWrap)
    option.setTextDirection(Qt.LayoutDirection.RightToLeft if rtl else Qt.LayoutDirection.LeftToRight)
    option.setAlignment(Qt.AlignmentFlag.AlignRight if rtl else Qt.AlignmentFlag.AlignLeft)
    if tab:
        option.setTabStopDistance(tab)
    return option


def utf16_offsets(text: str) -> list[int] | None:
    """UTF-16 position of every offset of `text`; None when both are the same."""
    if text.isascii() or max(text) <= "\uffff":
        return None
    return [0, *accumulate(1 + (character > "\uffff") for character in text)]


@plain()
class LineSpan:
    """Where a line begins and ends (its line break included), and the direction of its paragraph."""

    start: int
    end: int
    rtl: bool
    starts_paragraph: bool
    """Whether it begins a paragraph."""


class LineFlow:
    """The rows of one text at one width in pixels."""

    def __init__(self, font: QFont, width: float, tab: float = 32.0) -> None:
        self.font, self.width, self.tab = font, max(1.0, width), tab
        self.rows: list[LineSpan] = [LineSpan(0, 0, False, True)]
        self._text = ""

    def update(self, text: str) -> int:
        """Take the grown `text`; returns the index of the first row that changed."""
        self._text = text
        last = self.rows.pop()
        first_changed = len(self.rows)
        start: int | None = last.start
        first, rtl = last.starts_paragraph, last.rtl
        while start is not None:
            start = self._break_paragraph(start, first, rtl)
            first = True
        return first_changed

    def _break_paragraph(self, start: int, first: bool, rtl: bool) -> int | None:
        """Break one paragraph from `start` on; returns where the next begins, None at the end."""
        newline = self._text.find("\n", start)
        end = len(self._text) if newline < 0 else newline
        if first:
            rtl = reads_right_to_left(self._text[start:end])
        breaks = [start, *self._paragraph_breaks(start, end, rtl), end]
        rows = pairwise(breaks)
        self.rows += [LineSpan(a, b, rtl, first and n == 0) for n, (a, b) in enumerate(rows)]
        if newline < 0:
            return None
        self.rows[-1].end = newline + 1
        return newline + 1

    def _paragraph_breaks(self, start: int, end: int, rtl: bool) -> list[int]:
        """Offsets at which the paragraph's second and later lines begin."""
        breaks: list[int] = []
        while True:
            places = self._line_breaks(start, end, rtl)
            rows = pairwise([start, *places, end])
            cut = next((place for row in rows if (place := _forced_break(self._text, *row)) is not None), None)
            if cut is None:
                return breaks + places
            breaks += [*(place for place in places if place < cut), cut]
            start = cut

    def _line_breaks(self, start: int, end: int, rtl: bool) -> list[int]:
        """Offsets at which Qt begins the paragraph's second and later lines.

        A long paragraph is broken piece by piece, each from the beginning of the last piece's last line: Qt looks
        through all of a word for each of its lines, so that one without spaces costs its length squared.
        """
        all_breaks: list[int] = []
        while start < end:
            stop = end if end - start <= _MAX_CHUNK + _MAX_CHUNK // 2 else start + _MAX_CHUNK
            breaks = self._chunk_breaks(start, stop, rtl)
            all_breaks += breaks
            if stop == end:
                break
            if not breaks:
                all_breaks.append(stop)
            start = all_breaks[-1]
        return all_breaks

    def _chunk_breaks(self, start: int, end: int, rtl: bool) -> list[int]:
        piece = self._text[start:end]
        layout = QTextLayout(piece, self.font)
        layout.setTextOption(text_option(rtl, wrap=True, tab=self.tab))
        places = _line_starts(layout, self.width)[1:]
        offsets = utf16_offsets(piece)
        return [start + (bisect_right(offsets, place) - 1 if offsets else place) for place in places]

    def row_at(self, offset: int) -> int:
        """Index of the row that holds the character at `offset`."""
        return max(0, bisect_right(self.rows, offset, key=lambda row: row.start) - 1)


def _forced_break(text: str, start: int, end: int) -> int | None:
    """Where a row of characters without width, or of spaces that hang behind its end, is cut; None for any other.

    Such a row would never be full, and a text that goes on with them would be laid out again with each of them.
    """
    if end - start <= _MAX_TRAILING_SPACES:
        return None
    shown = start + len(text[start:end].rstrip(" \t"))
    cut = min(shown + _MAX_TRAILING_SPACES, start + _MAX_ROW_CHARACTERS)
    return cut if cut < end else None


def _line_starts(layout: QTextLayout, width: float) -> list[int]:
    starts = []
    layout.beginLayout()
    while (line := layout.createLine()).isValid():
        line.setLineWidth(width)
        starts.append(line.textStart())
    layout.endLayout()
    return starts


class ShapedLine:
    """One row, shaped: where its characters stand. Pixels from the left edge of the column."""

    def __init__(
        self, text: str, row: LineSpan, flow: LineFlow, formats: Sequence[QTextLayout.FormatRange] = ()
    ) -> None:
        self.start, self.end = row.start, row.end
        self.text = text[row.start : row.end].removesuffix("\n")
        self.ends_paragraph = len(self.text) < row.end - row.start
        self._utf16 = utf16_offsets(self.text) if self.text else None
        self.layout = QTextLayout(self.text, flow.font)
        self.layout.setTextOption(text_option(row.rtl, wrap=False, tab=flow.tab))
        self.layout.setFormats(list(formats))
        self.layout.beginLayout()
        self.line = self.layout.createLine()
        self.line.setLineWidth(flow.width)
        self.layout.endLayout()
        self.rtl = row.rtl
        self._mixed = row.rtl or bool(_has_rtl().search(self.text))
        self.ascent = self.line.ascent()
        self._places: dict[int, float] = {}
        self._characters = grapheme_boundaries(self.text)
        self._cells: dict[int, Cell] | None = None

    def to_qt(self, offset: int) -> int:
        """UTF-16 position in this line of an offset in the whole text."""
        place = min(max(offset - self.start, 0), len(self.text))
        return self._utf16[place] if self._utf16 else place

    def from_qt(self, position: int) -> int:
        """Offset in the whole text of a UTF-16 position in this line."""
        return self.start + (bisect_right(self._utf16, position) - 1 if self._utf16 else position)

    def x(self, offset: int) -> float:
        """Where the code point at `offset` begins."""
        known = self._places.get(offset)
        if known is None:
            known = self._places[offset] = self._code_point_x(self.to_qt(offset))
        return known

    def _code_point_x(self, position: int) -> float:
        if self._mixed and position in self._all_cells:
            return self._all_cells[position][0]
        if self._mixed or self._characters is None or position in self._characters:
            return x_of(self.line, position)
        return cell_at(self.line, position, self._characters, self._utf16)[0]

    @property
    def _all_cells(self) -> dict[int, Cell]:
        """Of a line of mixed directions; read when the first one is asked for."""
        if self._cells is None:
            self._cells = line_cells(self.line, self.to_qt(self.start + len(self.text)), self._utf16)
        return self._cells

    def offset_at(self, x: float, nearest_gap: bool = False) -> int:
        """Offset of the character under `x`, or of the gap nearest to it (`nearest_gap`)."""
        where = QTextLine.CursorPosition
        mode = where.CursorBetweenCharacters if nearest_gap else where.CursorOnCharacter
        return self.from_qt(self.line.xToCursor(x, mode))

    def spans(self, start: int, end: int) -> list[tuple[float, float]]:
        """Stretches (left, right) that the characters of [start, end) cover; several where directions mix."""
        start, end = max(start, self.start), min(end, self.start + len(self.text))
        if start >= end:
            return []
        if not self._mixed:
            return [(self.x(start), self.x(end))]
        return _merge_spans([self._cell(offset) for offset in range(start, end)])

    def _cell(self, offset: int) -> tuple[float, float]:
        position = self.to_qt(offset)
        begin, end = self._all_cells.get(position) or (
            x_of(self.line, position),
            x_of(self.line, position, QTextLine.Edge.Trailing),
        )
        return min(begin, end), max(begin, end)

    @property
    def text_end(self) -> float:
        """Where the text ends on its far side: the right edge, or the left one in right-to-left paragraphs."""
        rect = self.line.naturalTextRect()
        return float(rect.left() if self.rtl else self.x(self.start + len(self.text)))


def _merge_spans(cells: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Neighbouring stretches joined, from left to right."""
    spans: list[tuple[float, float]] = []
    for left, right in sorted(cell for cell in cells if cell[1] > cell[0]):
        if spans and left - spans[-1][1] < 0.75:
            spans[-1] = (spans[-1][0], max(right, spans[-1][1]))
        else:
            spans.append((left, right))
    return spans
