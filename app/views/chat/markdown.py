"""Chat answers as formatted text: what is thinking, what is Markdown, and a document that opens nothing.

An answer is text of a model, and so foreign: HTML in it stays text, no picture is loaded, no link can be followed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from PySide6.QtCore import QByteArray, QUrl
from PySide6.QtGui import (
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
    QTextTable,
)

from app.theme.tabs import tab_distance
from app.theme.theme import Theme

MAX_FORMATTED_CHARS = 100_000
"""Characters of an answer that is formatted; a longer one is shown as it was written."""
_OPENING = re.compile(r"\s*<(think|thinking|thought|reasoning)>\n?", re.IGNORECASE)
_CLOSING = re.compile(r"</(?:think|thinking|thought|reasoning)>\s*", re.IGNORECASE)
_MARKUP = re.compile(
    r"""
      (?<![\w*])\*\*?[^\s*]                # emphasis
    | (?<!\w)__[^\s_]                      # strong
    | ~~\S
    | `[^`]+`
    | ^[ ]{0,3}(?:```|~~~)                 # code
    | ^[ ]{0,3}\#{1,6}[ ]\S                # heading
    | ^[ \t]*[-*+][ ]\S                    # list
    | ^[ \t]*\d{1,3}[.)][ ]\S              # numbered list
    | ^[ ]{0,3}>[ ]?\S                     # quotation
    | ^[ ]{0,3}\|.*\|[ \t]*$               # table
    | ^[ ]{0,3}(?:---+|\*\*\*+)[ \t]*$     # rule
    | \[[^\]\n]+\]\([^)\s]+\)              # link
    """,
    re.VERBOSE | re.MULTILINE,
)
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_DEEP_NESTING = re.compile(r"^(?:[ \t]*>){12}|^[ \t]{60}", re.MULTILINE)
"""Quotations and lists nested deeper than anybody writes, which take a document long to lay out."""
_BROKEN_IMAGE = "!\u2060["
"""`![` with a joiner of no width between: it begins no picture any more."""


class SplitAnswer(NamedTuple):
    """An answer in two parts, either of which may be empty."""

    thinking: str
    body: str


def split_thinking(text: str) -> SplitAnswer:
    """Take the thinking off an answer. Where the prompt has opened it, the answer only closes it."""
    opening = _OPENING.match(text)
    start = opening.end() if opening else 0
    closing = _CLOSING.search(text, start)
    if closing is None:
        return SplitAnswer(text[start:].strip(), "") if opening else SplitAnswer("", text)
    if opening is None and "`" in text[: closing.start()]:  # it may be spoken of in code
        return SplitAnswer("", text)
    return SplitAnswer(text[start : closing.start()].strip(), text[closing.end() :])


def has_formatting(text: str) -> bool:
    """Whether an answer looks different when it is formatted."""
    if len(text) > MAX_FORMATTED_CHARS or _DEEP_NESTING.search(text):
        return False
    answer = split_thinking(text)
    return bool(answer.thinking) or _MARKUP.search(answer.body) is not None


class OfflineDocument(QTextDocument):
    """A document that loads nothing, neither from the disk nor from the network."""

    def loadResource(self, kind: int, address: QUrl | str) -> object:
        """Nothing, whatever is asked for."""
        return QByteArray()


def markdown_document(text: str, theme: Theme, width: float) -> QTextDocument:
    """Markdown in a width, in the theme's colours."""
    document = _document(theme, theme.font(16))
    features = QTextDocument.MarkdownFeature
    document.setMarkdown(_prepare_markdown(text), features.MarkdownDialectGitHub | features.MarkdownNoHTML)
    _style_document(document, theme)
    document.setTextWidth(width)
    return document


def thinking_document(text: str, theme: Theme, width: float) -> QTextDocument:
    """Text as it is, small and muted: the thinking."""
    document = _document(theme, theme.font(14))
    document.setPlainText(text)
    document.setTextWidth(width)
    return document


def _document(theme: Theme, font: QFont) -> QTextDocument:
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    option.setTabStopDistance(tab_distance(font))
    document = OfflineDocument()
    document.setDocumentMargin(0)
    document.setDefaultFont(font)
    document.setDefaultTextOption(option)
    document.setIndentWidth(theme.px(24))
    return document


def _prepare_markdown(text: str) -> str:
    """No pictures, and each line a line: a model's line break is meant."""
    lines, fence = [], ""
    for line in text.replace("\u2028", "\n").split("\n"):
        mark = _FENCE.match(line)
        if fence:
            lines.append(line)
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line.strip(" `~"):
                fence = ""
            continue
        if mark:
            fence = mark[1]
            lines.append(line)
            continue
        line = line.replace("![", _BROKEN_IMAGE)
        keeps = line.strip() and not line.lstrip().startswith(("|", "#")) and not re.fullmatch(r"[\s|:=-]+", line)
        lines.append(f"{line.rstrip()}  " if keeps else line)
    return "\n".join(lines)


def _style_document(document: QTextDocument, theme: Theme) -> None:
    """Code on a ground of its own, tables with lines, links without a pointer: they lead nowhere."""
    code_ground, line = theme.color("field"), theme.color("line")
    cursor = QTextCursor(document)
    block = document.begin()
    while block.isValid():
        style = block.blockFormat()
        is_code = style.hasProperty(QTextBlockFormat.Property.BlockCodeFence.value) or style.hasProperty(
            QTextBlockFormat.Property.BlockCodeLanguage.value
        )
        cursor.setPosition(block.position())
        if is_code:
            ground = QTextBlockFormat()
            ground.setBackground(code_ground)
            cursor.mergeBlockFormat(ground)
        elif block.textList() is None and cursor.currentTable() is None:
            spaced = QTextBlockFormat()
            spaced.setBottomMargin(theme.px(6))
            cursor.mergeBlockFormat(spaced)
        _style_fragments(cursor, block.position(), block.length(), theme)
        if style.hasProperty(QTextBlockFormat.Property.BlockQuoteLevel.value):
            _mute_quotation(cursor, block.position(), block.length(), theme)
        block = block.next()
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            table = frame.format()
            table.setBorder(1)
            table.setBorderBrush(line)
            table.setCellPadding(theme.px(4))
            table.setCellSpacing(0)
            table.setBorderCollapse(True)
            frame.setFormat(table)
            _style_cells(frame)


def _style_cells(table: QTextTable) -> None:
    """No cell has the margins of the paragraph before the table; the first row is the heading."""
    bold = QTextCharFormat()
    bold.setFontWeight(QFont.Weight.DemiBold)
    for row in range(table.rows()):
        for column in range(table.columns()):
            cell = table.cellAt(row, column)
            cursor = cell.firstCursorPosition()
            if cell.firstPosition() < cell.lastPosition() and cursor.block().length() == 1:
                cursor.deleteChar()  # Qt's reader begins the first cell with an empty paragraph
            cursor = cell.firstCursorPosition()
            style = QTextBlockFormat()
            style.setAlignment(cursor.blockFormat().alignment())
            cursor.setBlockFormat(style)
            if row == 0:
                cursor.setPosition(cell.lastPosition(), QTextCursor.MoveMode.KeepAnchor)
                cursor.mergeCharFormat(bold)


def _style_fragments(cursor: QTextCursor, start: int, length: int, theme: Theme) -> None:
    at = start
    end = start + max(0, length - 1)
    while at < end:
        cursor.setPosition(at)
        cursor.setPosition(at + 1, QTextCursor.MoveMode.KeepAnchor)
        style = cursor.charFormat()
        fragment_end = _fragment_end(cursor, at, end)
        cursor.setPosition(at)
        cursor.setPosition(fragment_end, QTextCursor.MoveMode.KeepAnchor)
        merged = QTextCharFormat()
        if style.isAnchor():
            merged.setAnchor(False)
            merged.setAnchorHref("")
            merged.setForeground(theme.color("accent"))
            merged.setToolTip("")
        if style.fontFixedPitch():
            merged.setBackground(theme.color("field"))
        if merged.propertyCount():
            cursor.mergeCharFormat(merged)
        at = fragment_end


def _mute_quotation(cursor: QTextCursor, start: int, length: int, theme: Theme) -> None:
    """What is quoted is quieter."""
    quiet = QTextCharFormat()
    quiet.setForeground(theme.color("muted"))
    cursor.setPosition(start)
    cursor.setPosition(start + max(0, length - 1), QTextCursor.MoveMode.KeepAnchor)
    cursor.mergeCharFormat(quiet)


def _fragment_end(cursor: QTextCursor, at: int, end: int) -> int:
    """Where the fragment ends that a place lies in."""
    fragments = cursor.document().findBlock(at).begin()
    while not fragments.atEnd():
        fragment = fragments.fragment()
        if fragment.position() <= at < fragment.position() + fragment.length():
            return min(end, fragment.position() + fragment.length())
        fragments += 1
    return end
