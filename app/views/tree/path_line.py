"""The text so far, on one line below the tree."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.accessibility import AccessibleWidget, Role
from app.widgets.plain_text import tooltip
from resources.language import tr


class PathLine(QWidget, AccessibleWidget):
    """The text so far on one line: what leads to the selected node, the node's own token last and strong."""

    accessible_role = Role.StaticText

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("pathLine")
        self._theme = theme_for("light")
        self.before, self.last, self.hint = "", "", ""

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def show_text(self, before: str, last: str, hint: str = "") -> None:
        """`hint` is shown where there is no text."""
        self.before, self.last, self.hint = " ".join(before.split("\n")), last, hint
        self.setAccessibleName(
            tr("Text so far: {before}{last}").format(before=before, last=last) if before or last else hint
        )
        self.setToolTip(tooltip(before + last))
        self.update()

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(self._theme.px(200), self._theme.px(32))

    minimumSizeHint = sizeHint

    def paintEvent(self, event: QPaintEvent) -> None:
        """The end of the text counts: what does not fit is left out at its beginning."""
        theme, painter = self._theme, QPainter(self)
        plain, strong = theme.font(14), theme.font(14, 600)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        room = QRectF(self.rect()).adjusted(theme.px(16), 0, -theme.px(16), 0)
        if not self.before and not self.last:
            painter.setFont(theme.font(12))
            painter.setPen(theme.color("muted"))
            painter.drawText(room, flags, self.hint)
            return
        tail = QFontMetricsF(strong).horizontalAdvance(self.last)
        room_before = max(0.0, room.width() - tail)
        before = QFontMetricsF(plain).elidedText(self.before, Qt.TextElideMode.ElideLeft, room_before)
        self._make_layout(before, plain, strong).draw(painter, room.topLeft())

    def _make_layout(self, before: str, plain: QFont, strong: QFont) -> QTextLayout:
        """Both parts as one line, so that they join and run in the direction of the text."""
        muted, accent = QTextCharFormat(), QTextCharFormat()
        muted.setForeground(self._theme.color("muted"))
        accent.setForeground(self._theme.color("accent"))
        accent.setFont(strong)
        layout = QTextLayout(before + self.last, plain)
        split = len(before.encode("utf-16-le")) // 2
        layout.setFormats(
            [_format_range(0, split, muted), _format_range(split, len(self.last.encode("utf-16-le")) // 2, accent)]
        )
        layout.beginLayout()
        line = layout.createLine()
        line.setPosition(QPointF(0, (self.height() - line.height()) / 2))
        layout.endLayout()
        return layout


def _format_range(start: int, length: int, look: QTextCharFormat) -> QTextLayout.FormatRange:
    result = QTextLayout.FormatRange()
    result.start, result.length, result.format = start, length, look
    return result
