"""Formatted chat answers: fold the thinking, detect Markdown, and paint documents that load nothing."""

from __future__ import annotations

import math
import re

from PySide6.QtCore import QByteArray, QPointF, QRectF, QUrl
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QFont,
    QFontMetricsF,
    QPainter,
    QPalette,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
    QTextTable,
)

from decodescope.app.state.answer_thinking import thinking_summary
from decodescope.app.theme.theme import Theme, tab_distance
from decodescope.core import words
from decodescope.core.thinking import NO_THINKING, AnswerThinking
from decodescope.resources.language import tr

MAX_FORMATTED_CHARS = 40_000
"""Maximum number of characters of a formatted answer. Longer answers are shown as text."""
MAX_LINES, MAX_TABLE_LINES, MAX_COLUMNS, MAX_CELLS, MAX_DEFINITIONS, MAX_MARKS = 2000, 400, 40, 1000, 100, 4000
"""Largest parts of an answer that is formatted: lines, lines and cells of tables, columns, definitions of links, and
marks of emphasis, code or links. A layout of larger ones takes seconds: its time grows with the square of their number.
"""
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
    | ^[ ]{0,3}\|.*\|                     # table
    | ^[ ]{0,3}(?:---+|\*\*\*+)[ \t]*$     # rule
    | \[[^\[\]\n]+\]\([^()\s]+\)          # link
    """,
    re.VERBOSE | re.MULTILINE,
)
_DEFINITION = re.compile(r"^ {0,3}\[[^\[\]\n]+\]:", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_DEEP_NESTING = re.compile(r"^(?:[ \t]*>){12}|^[ \t]{60}", re.MULTILINE)
"""Quotations and lists nested so deeply that a document would take too long to lay out."""
_BROKEN_IMAGE = "!\u2060["
"""`![` with a zero-width word joiner inside, so that it no longer starts an image."""


def has_formatting(answer: AnswerThinking) -> bool:
    """Return whether formatting would change how the answer looks."""
    return not plain_text_reason(answer) and _has_markup(answer)


def plain_text_reason(answer: AnswerThinking) -> str:
    """Return why an answer with markup is shown as text; empty if it can be formatted. Takes time linear in the
    length.
    """
    if len(answer.thinking) + len(answer.body) > MAX_FORMATTED_CHARS:
        return tr("too long to be formatted") if _has_markup(answer) else ""
    reason = _size_problem(answer.body)
    return reason if reason and _has_markup(answer) else ""


def _size_problem(text: str) -> str:
    """Return which part of a text is too large to be laid out in a moment."""
    if text.count("\n") > MAX_LINES:
        return tr("too many lines to be formatted")
    if _DEEP_NESTING.search(text):
        return tr("too deeply nested to be formatted")
    if sum(text.count(mark) for mark in "*_`[~<") > 2 * MAX_MARKS:
        return tr("too much markup to be formatted")
    rows = [line.count("|") for line in text.split("\n") if "|" in line]
    if len(rows) > MAX_TABLE_LINES or sum(rows) > MAX_CELLS or max(rows, default=0) > MAX_COLUMNS:
        return tr("its table is too large to be formatted")
    if len(_DEFINITION.findall(text)) > MAX_DEFINITIONS:
        return tr("too many links to be formatted")
    return ""


def _has_markup(answer: AnswerThinking) -> bool:
    return bool(answer.thinking) or _MARKUP.search(answer.body) is not None


class OfflineDocument(QTextDocument):
    """A document that loads nothing from the disk or the network."""

    def loadResource(self, kind: int, address: QUrl | str) -> object:
        """Return no data for any resource."""
        return QByteArray()


def markdown_document(text: str, theme: Theme, width: float) -> QTextDocument:
    """Return a document with the Markdown text, laid out to `width` in the theme's colours."""
    document = _document(theme, theme.font(15))
    features = QTextDocument.MarkdownFeature
    document.setMarkdown(
        words.visible(_prepare_markdown(text)), features.MarkdownDialectGitHub | features.MarkdownNoHTML
    )
    _style_document(document, theme)
    document.setTextWidth(width)
    return document


def shown_text(text: str) -> str:
    """Return a text for a document: control characters are visible, and line breaks of all kinds stay."""
    return words.visible(_LINE_BREAK.sub("\n", text))


_LINE_BREAK = re.compile("\r\n?|[\u2028\u2029]")


def thinking_document(text: str, theme: Theme, width: float) -> QTextDocument:
    """Return a document with the thinking as plain, small text."""
    document = _document(theme, theme.font(13))
    document.setPlainText(shown_text(text))
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
    """Disable images and keep each line break, which a model writes on purpose."""
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
    """Give code a background, tables a border, and links no target."""
    code_ground, line = theme.color("field"), theme.color("line")
    cursor = QTextCursor(document)
    cursor.beginEditBlock()  # lays out once, not after each change
    block = document.begin()
    while block.isValid():
        style = block.blockFormat()
        is_code = _is_code(block)
        cursor.setPosition(block.position())
        if is_code:
            ground = QTextBlockFormat()
            ground.setBackground(code_ground)
            if not _is_code(block.previous()):
                ground.setTopMargin(theme.px(4))
            if not _is_code(block.next()):
                ground.setBottomMargin(theme.px(8))
            cursor.mergeBlockFormat(ground)
        elif cursor.currentTable() is None and (block.textList() is None or block.next().textList() is None):
            spaced = QTextBlockFormat()
            spaced.setBottomMargin(theme.px(6))
            cursor.mergeBlockFormat(spaced)
        _style_fragments(cursor, block, theme)
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
    cursor.endEditBlock()


def _is_code(block: QTextBlock) -> bool:
    """Return whether a block is a line of a code block."""
    style = block.blockFormat()
    return bool(
        style.hasProperty(QTextBlockFormat.Property.BlockCodeFence.value)
        or style.hasProperty(QTextBlockFormat.Property.BlockCodeLanguage.value)
    )


def _style_cells(table: QTextTable) -> None:
    """Clear the margins that cells take over from the paragraph before the table, and make the first row bold."""
    bold = QTextCharFormat()
    bold.setFontWeight(QFont.Weight.DemiBold)
    for row in range(table.rows()):
        for column in range(table.columns()):
            cell = table.cellAt(row, column)
            cursor = cell.firstCursorPosition()
            if cell.firstPosition() < cell.lastPosition() and cursor.block().length() == 1:
                cursor.deleteChar()  # Qt's Markdown reader starts the first cell with an empty paragraph
            cursor = cell.firstCursorPosition()
            style = QTextBlockFormat()
            style.setAlignment(cursor.blockFormat().alignment())
            cursor.setBlockFormat(style)
            if row == 0:
                cursor.setPosition(cell.lastPosition(), QTextCursor.MoveMode.KeepAnchor)
                cursor.mergeCharFormat(bold)


def _style_fragments(cursor: QTextCursor, block: QTextBlock, theme: Theme) -> None:
    """Give inline code a background, and links no target."""
    found = []
    fragments = block.begin()
    while not fragments.atEnd():
        fragment = fragments.fragment()
        style = fragment.charFormat()
        if style.isAnchor() or style.fontFixedPitch():
            found.append((fragment.position(), fragment.length(), style))
        fragments += 1
    for start, length, style in found:  # changed afterwards, as a change would end the iteration
        merged = QTextCharFormat()
        if style.isAnchor():
            merged.setAnchor(False)
            merged.setAnchorHref("")
            merged.setForeground(theme.color("accent"))
            merged.setToolTip("")
        if style.fontFixedPitch():
            merged.setBackground(theme.color("field"))
        cursor.setPosition(start)
        cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(merged)


def _mute_quotation(cursor: QTextCursor, start: int, length: int, theme: Theme) -> None:
    """Show quotations in the muted colour."""
    quiet = QTextCharFormat()
    quiet.setForeground(theme.color("muted"))
    cursor.setPosition(start)
    cursor.setPosition(start + max(0, length - 1), QTextCursor.MoveMode.KeepAnchor)
    cursor.mergeCharFormat(quiet)


HEADER_HEIGHT, GAP = 24, 8
"""Pixels at 100 %: height of the thinking header and the gap below it."""


class FormattedAnswer:
    """Lays out an answer, and caches the layout per text, width and theme."""

    def __init__(self) -> None:
        self.is_thinking_expanded = False
        """Whether the thinking is shown."""
        self.answer = NO_THINKING
        self.token_count = 0
        """Number of tokens of the answer; 0 if they are not known."""
        self._key: tuple[object, ...] = ()
        self._theme: Theme | None = None
        self._thinking_document: QTextDocument | None = None
        self._body_document: QTextDocument | None = None
        self._width = 0.0

    @property
    def thinking_header(self) -> str:
        """Text of the line that folds the thinking; empty if there is none."""
        if not self.answer.thinking:
            return ""
        mark = "▾" if self.is_thinking_expanded else "▸"
        parts = [f"{mark} {tr('Thinking')}", thinking_summary(self.answer, self.token_count)]
        return " · ".join([*parts, *([tr("cut off")] if self.answer.is_open else [])])

    def lay_out(self, answer: AnswerThinking, token_count: int, width: float, theme: Theme) -> tuple[float, float]:
        """Lay out an answer of `token_count` tokens (0: not known) within `width` and return the width and height."""
        key = (answer, token_count, width, theme, self.is_thinking_expanded)
        if key != self._key:
            self._key, self._theme = key, theme
            self.answer, self.token_count = answer, token_count
            shows = self.is_thinking_expanded and self.answer.thinking
            self._thinking_document = thinking_document(self.answer.thinking, theme, width) if shows else None
            self._body_document = (
                markdown_document(self.answer.body, theme, width) if self.answer.body.strip() else None
            )
            ideal = max(
                (part.idealWidth() for part in (self._thinking_document, self._body_document) if part is not None),
                default=0.0,
            )
            head = QFontMetricsF(theme.font(13)).horizontalAdvance(self.thinking_header)
            self._width = min(width, math.ceil(max(ideal, head)) + 1)
            for part in (self._thinking_document, self._body_document):
                if part is not None:
                    part.setTextWidth(self._width)  # code backgrounds then end at the bubble's edge
        return max(self._width, theme.px(28)), self._height(theme)

    def head_rect(self, theme: Theme) -> QRectF:
        """Rectangle of the thinking header, relative to the answer's corner; empty if there is no thinking."""
        return QRectF(0, 0, self._width, theme.px(HEADER_HEIGHT)) if self.answer.thinking else QRectF()

    def toggle_thinking(self) -> None:
        """Show or hide the thinking."""
        self.is_thinking_expanded = not self.is_thinking_expanded

    def paint(self, painter: QPainter, corner: QPointF, theme: Theme) -> None:
        """Paint the answer with its top left corner at `corner`."""
        painter.save()
        painter.translate(corner)
        if self.answer.thinking:
            painter.setFont(theme.font(13))
            painter.setPen(theme.color("muted"))
            painter.drawText(QPointF(0, theme.px(HEADER_HEIGHT) - theme.px(8)), self.thinking_header)
            painter.translate(0, theme.px(HEADER_HEIGHT))
        for part, color in ((self._thinking_document, "thinking"), (self._body_document, "text")):
            if part is None:
                continue
            context = QAbstractTextDocumentLayout.PaintContext()
            context.palette.setColor(QPalette.ColorRole.Text, theme.color(color))
            part.documentLayout().draw(painter, context)
            painter.translate(0, part.size().height() + theme.px(GAP))
        painter.restore()

    def _height(self, theme: Theme) -> float:
        parts = [part.size().height() for part in (self._thinking_document, self._body_document) if part is not None]
        height = sum(parts) + theme.px(GAP) * max(0, len(parts) - 1)
        return height + (theme.px(HEADER_HEIGHT) if self.answer.thinking else 0)
