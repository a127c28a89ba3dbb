"""Line layout of a growing text: appending lays out only the last line again, and only drawn lines are shaped.

Each line is shaped as a whole, so letters join, marks combine across tokens, and right-to-left words are set correctly.
A token's mark follows its letters, in several spans where directions mix. Offsets are Python's (code points);
`ShapedLine` converts to and from Qt's UTF-16 positions.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import cast

from PySide6.QtCore import Qt, QTextBoundaryFinder
from PySide6.QtGui import QFont, QGlyphRun, QRawFont, QTextLayout, QTextLine, QTextOption

from decodescope.core.common.lightweight_dataclass import plain

Cell = tuple[float, float]
"""Start and end of a code point in reading order; for right-to-left text the start is the greater value."""

_SINGLE_CODE_POINTS = "[\u0000-\u02ff\u2010-\u2027\u3000-\u3029\u3041-\u3096\u30a1-\u30ff\u4e00-\u9fff\uff01-\uff60]*"
"""Text in which every code point is a character of its own, which is most text. This pattern and similar ones are
compiled on first use, because compiling takes milliseconds at start.
"""


@cache
def _single_code_points() -> re.Pattern[str]:
    return re.compile(_SINGLE_CODE_POINTS)


def x_of(line: QTextLine, position: int, edge: QTextLine.Edge = QTextLine.Edge.Leading) -> float:
    """Return the x coordinate of a UTF-16 position of the line. (Qt returns it together with the position used.)"""
    return float(cast("tuple[float, int]", line.cursorToX(position, edge))[0])


def grapheme_boundaries(text: str) -> list[int] | None:
    """Return the UTF-16 positions of grapheme boundaries, including the end; None if every code point is a grapheme."""
    if _single_code_points().fullmatch(text):
        return None
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Grapheme, text)
    places = [0]
    while (boundary := finder.toNextBoundary()) >= 0:
        places.append(boundary)
    return places


def cell_at(line: QTextLine, position: int, boundaries: list[int], utf16: list[int] | None) -> Cell:
    """Return the cell of the code point at `position` in a line of one direction.

    `boundaries` are the grapheme boundaries, `utf16` the positions of the code points.
    """
    after = bisect_right(boundaries, position)
    first, last = boundaries[after - 1], boundaries[min(after, len(boundaries) - 1)]
    left, right = x_of(line, first), x_of(line, first, QTextLine.Edge.Trailing)
    places = [place for place in utf16 if first <= place < last] if utf16 else range(first, last)
    return dict(_split_cell((left, right), places)).get(position, (left, right))


def line_cells(line: QTextLine, length: int, utf16: list[int] | None) -> dict[int, Cell]:
    """Return the cell of every code point that has a glyph, by UTF-16 position. `length` is the line's length in
    UTF-16.

    Each code point is requested alone: of glyphs from several fonts, Qt names wrong positions in right-to-left text.
    """
    ends = [place for place in utf16 if place <= length] if utf16 else list(range(length + 1))
    clusters: list[tuple[Cell, list[int]]] = []
    for first, last in pairwise(ends):
        box = _glyph_box(line.glyphRuns(first, last - first, _ALL))
        if clusters and (box is None or _overlap(box, clusters[-1][0]) > _SHARED):  # a further part of the same glyphs
            before, places = clusters[-1]
            clusters[-1] = (before if box is None else _joined(before, box), [*places, first])
        elif box is not None:
            clusters.append((box, [first]))
    return {place: cell for box, places in clusters for place, cell in _split_cell(box, places)}


_ALL = QTextLayout.GlyphRunRetrievalFlag.RetrieveAll


def _glyph_box(runs: Sequence[QGlyphRun]) -> Cell | None:
    """Return the extent of glyphs, from where they are read; None without glyphs that have an advance."""
    lefts, rights = [], []
    for run in runs:
        advances = run.rawFont().advancesForGlyphIndexes(run.glyphIndexes(), QRawFont.LayoutFlag.SeparateAdvances)
        for at, advance in zip(run.positions(), advances, strict=True):
            if advance.x() > 0:
                lefts.append(at.x())
                rights.append(at.x() + advance.x())
    if not lefts:
        return None
    left, right = min(lefts), max(rights)
    return (right, left) if runs[0].isRightToLeft() else (left, right)


_SHARED = 0.4
"""Fraction of the narrower of two neighbouring cells from which they are one; kerned letters have less in common.
Without a font for an emoji of several code points, Qt gives the glyphs of all of them for some of its code points.
"""


def _overlap(one: Cell, other: Cell) -> float:
    """Return the width that two cells have in common, as a fraction of the narrower one."""
    common = min(max(one), max(other)) - max(min(one), min(other))
    return common / max(min(abs(one[1] - one[0]), abs(other[1] - other[0])), 1e-6)


def _joined(one: Cell, other: Cell) -> Cell:
    """Return the extent of both cells, in the direction of the first."""
    left, right = min(*one, *other), max(*one, *other)
    return (right, left) if one[0] > one[1] else (left, right)


def _split_cell(cell: Cell, places: Sequence[int]) -> Iterator[tuple[int, Cell]]:
    """Divide a cell evenly among the code points at `places`."""
    part = (cell[1] - cell[0]) / len(places)
    for number, place in enumerate(places):
        yield place, (cell[0] + number * part, cell[0] + (number + 1) * part)


_MAX_TRAILING_SPACES = 256
"""Maximum spaces that hang at the end of a row."""
_MAX_ROW_CHARACTERS = 2048
"""Maximum characters in a row. No screen is this wide, but some characters have no width."""
_MAX_CHUNK = 4000
"""Maximum characters of a paragraph that Qt breaks into lines in one call."""
_RTL = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001eeff"


@cache
def _has_rtl() -> re.Pattern[str]:
    return re.compile(f"[{_RTL}]")


@cache
def _strong() -> re.Pattern[str]:
    return re.compile(rf"[{_RTL}]|[^\W\d_]")


def reads_right_to_left(paragraph: str) -> bool:
    """Return whether the first letter of `paragraph` belongs to a right-to-left script."""
    first = _strong().search(paragraph)
    return bool(first and _has_rtl().match(first[0]))


def text_option(rtl: bool, wrap: bool, tab: float = 0.0) -> QTextOption:
    """Return the options for breaking paragraphs: between words, and inside a word only if it is longer than the
    line.
    """
    option = QTextOption()
    mode = QTextOption.WrapMode
    option.setWrapMode(mode.WrapAtWordBoundaryOrAnywhere if wrap else mode.NoWrap)
    option.setTextDirection(Qt.LayoutDirection.RightToLeft if rtl else Qt.LayoutDirection.LeftToRight)
    option.setAlignment(Qt.AlignmentFlag.AlignRight if rtl else Qt.AlignmentFlag.AlignLeft)
    if tab:
        option.setTabStopDistance(tab)
    return option


def utf16_offsets(text: str) -> list[int] | None:
    """Return the UTF-16 position of every offset of `text`; None if both are the same."""
    if text.isascii() or max(text) <= "\uffff":
        return None
    return [0, *accumulate(1 + (character > "\uffff") for character in text)]


@plain()
class LineSpan:
    """Start and end of a line (including its line break), and the direction of its paragraph."""

    start: int
    end: int
    rtl: bool
    starts_paragraph: bool
    """Whether the line starts a paragraph."""


class LineFlow:
    """The rows of one text at one width in pixels."""

    def __init__(self, font: QFont, width: float, tab: float = 32.0) -> None:
        self.font, self.width, self.tab = font, max(1.0, width), tab
        self.rows: list[LineSpan] = [LineSpan(0, 0, False, True)]
        self._text = ""

    def update(self, text: str) -> int:
        """Replace the text by the grown `text` and return the index of the first changed row."""
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
        """Break one paragraph from `start` on. Returns the start of the next paragraph, or None at the end."""
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
        """Return the offsets at which the paragraph's second and later lines begin."""
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
        """Return the offsets at which Qt begins the paragraph's second and later lines.

        A long paragraph is broken in chunks, each starting with the last line of the chunk before it: Qt scans a full
        word for each of its lines, so a long word without spaces takes quadratic time.
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
        """Return the index of the row that contains the character at `offset`."""
        return max(0, bisect_right(self.rows, offset, key=lambda row: row.start) - 1)


def _forced_break(text: str, start: int, end: int) -> int | None:
    """Return where to cut a row of zero-width characters or of trailing spaces; None for other rows.

    Such a row would never be full, so each further character would lay it out again.
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
    """One shaped row with the positions of its characters, in pixels from the left edge of the column."""

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
        """Convert an offset in the full text to a UTF-16 position in this line."""
        place = min(max(offset - self.start, 0), len(self.text))
        return self._utf16[place] if self._utf16 else place

    def from_qt(self, position: int) -> int:
        """Convert a UTF-16 position in this line to an offset in the full text."""
        return self.start + (bisect_right(self._utf16, position) - 1 if self._utf16 else position)

    def x(self, offset: int) -> float:
        """Return the x coordinate at which the code point at `offset` begins."""
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
        """Cells of a line of mixed directions, computed on first use."""
        if self._cells is None:
            self._cells = line_cells(self.line, self.to_qt(self.start + len(self.text)), self._utf16)
        return self._cells

    def offset_at(self, x: float, nearest_gap: bool = False) -> int:
        """Return the offset of the character at `x`, or of the nearest gap if `nearest_gap`."""
        where = QTextLine.CursorPosition
        mode = where.CursorBetweenCharacters if nearest_gap else where.CursorOnCharacter
        return self.from_qt(self.line.xToCursor(x, mode))

    def spans(self, start: int, end: int) -> list[tuple[float, float]]:
        """Return the spans (left, right) covered by the characters of [start, end); several where directions mix."""
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
        """The far end of the text: the right edge, or the left edge in right-to-left paragraphs."""
        rect = self.line.naturalTextRect()
        return float(rect.left() if self.rtl else self.x(self.start + len(self.text)))


def _merge_spans(cells: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Join adjacent spans, from left to right."""
    spans: list[tuple[float, float]] = []
    for left, right in sorted(cell for cell in cells if cell[1] > cell[0]):
        if spans and left - spans[-1][1] < 0.75:
            spans[-1] = (spans[-1][0], max(right, spans[-1][1]))
        else:
            spans.append((left, right))
    return spans
