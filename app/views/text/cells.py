"""Where the code points of a shaped line stand, one by one, whatever makes one character together.

A cursor between two directions has two places, and Qt tells one of them; so in lines of mixed directions places are
read off the glyphs. Code points that share a glyph (a family of emoji, a letter and its accent, a ligature) share its
width in their order.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import cast

from PySide6.QtCore import QTextBoundaryFinder
from PySide6.QtGui import QGlyphRun, QRawFont, QTextLayout, QTextLine

Cell = tuple[float, float]
"""Where a code point begins and where it ends, as one reads it: from right to left, the greater one first."""

_SINGLE_CODE_POINTS = "[\u0000-\u02ff\u2010-\u2027\u3000-\u3029\u3041-\u3096\u30a1-\u30ff\u4e00-\u9fff\uff01-\uff60]*"
"""Text in which every code point is a character of its own; most of what is ever shown. It and its like are compiled
with the first text: that takes milliseconds, which the window's start would wait for."""


@cache
def _single_code_points() -> re.Pattern[str]:
    return re.compile(_SINGLE_CODE_POINTS)


def x_of(line: QTextLine, position: int, edge: QTextLine.Edge = QTextLine.Edge.Leading) -> float:
    """Where a UTF-16 position of the line stands; Qt gives it together with the position that it took."""
    return float(cast("tuple[float, int]", line.cursorToX(position, edge))[0])


def grapheme_boundaries(text: str) -> list[int] | None:
    """UTF-16 positions at which characters as readers see them begin, and the end; None where all are code points."""
    if _single_code_points().fullmatch(text):
        return None
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Grapheme, text)
    places = [0]
    while (boundary := finder.toNextBoundary()) >= 0:
        places.append(boundary)
    return places


def cell_at(line: QTextLine, position: int, boundaries: list[int], utf16: list[int] | None) -> Cell:
    """Of the code point at `position` in a line of one direction; `boundaries` are its characters, `utf16` the positions of
    its code points."""
    after = bisect_right(boundaries, position)
    first, last = boundaries[after - 1], boundaries[min(after, len(boundaries) - 1)]
    left, right = x_of(line, first), x_of(line, first, QTextLine.Edge.Trailing)
    return dict(_split_cell(first, last, (left, right), utf16)).get(position, (left, right))


def line_cells(line: QTextLine, length: int, utf16: list[int] | None) -> dict[int, Cell]:
    """By UTF-16 position, of every code point of a line that has a glyph; `length` is the line's, in UTF-16."""
    boxes = dict(box for run in line.glyphRuns(-1, -1, _ALL) for box in _glyph_boxes(run))
    return {
        place: cell
        for first, last in pairwise([*sorted(boxes), length])
        for place, cell in _split_cell(first, last, boxes[first], utf16)
    }


_ALL = QTextLayout.GlyphRunRetrievalFlag.RetrieveAll


def _glyph_boxes(run: QGlyphRun) -> Iterator[tuple[int, Cell]]:
    """What the glyphs of one place in the text cover together; a mark that takes no room adds none."""
    advances = run.rawFont().advancesForGlyphIndexes(run.glyphIndexes(), QRawFont.LayoutFlag.SeparateAdvances)
    boxes: dict[int, Cell] = {}
    for place, at, advance in zip(run.stringIndexes(), run.positions(), advances, strict=True):
        left, right = boxes.get(place, (at.x(), at.x() + advance.x()))
        if advance.x() > 0:
            boxes[place] = min(left, at.x()), max(right, at.x() + advance.x())
    for place, (left, right) in boxes.items():
        yield place, (right, left) if run.isRightToLeft() else (left, right)


def _split_cell(first: int, last: int, cell: Cell, utf16: list[int] | None) -> Iterator[tuple[int, Cell]]:
    """A cell in even parts, one for each code point from `first` to `last`."""
    places = [place for place in utf16 if first <= place < last] if utf16 else range(first, last)
    part = (cell[1] - cell[0]) / max(1, len(places))
    for number, place in enumerate(places):
        yield place, (cell[0] + number * part, cell[0] + (number + 1) * part)
