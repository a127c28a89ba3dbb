"""A report on a tree node as a card: what it is, why it was kept or dropped, and its competitors."""

from __future__ import annotations

import html

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.inspector.inspector_rows import with_bold_figures
from decodescope.app.views.node_reports import NodeReport, ReportRow
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.labels import TextBlock
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.resources.language import join_sentences, tr


class ReportTable(Themed, QWidget):
    """A table whose first column is wrapped text; the other columns are figures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._content: tuple[tuple[str, ...], tuple[ReportRow, ...]] = ((), ())
        self._grid = arrange(QGridLayout(self), margins=0)
        self._cells: list[QLabel] = []
        self._is_stacked = False

    def restyle(self, theme: Theme) -> None:
        self._grid.setVerticalSpacing(theme.px(3))
        self.show_rows(*self._content)

    def show_rows(self, columns: tuple[str, ...], rows: tuple[ReportRow, ...]) -> None:
        """Fill the table, reusing its cells."""
        self._content = (columns, rows)
        column_count = max(1, len(columns))
        texts = [(text, "muted", 400) for text in columns]
        for row in rows:
            colour = "muted" if row.faint else "text"
            texts += [(text, colour, 600 if row.strong else 400) for text in row.cells]
        while len(self._cells) < len(texts):
            self._cells.append(PlainLabel(self))
        for index, label in enumerate(self._cells):
            label.setVisible(index < len(texts))
            if index < len(texts):
                self._fill(label, *texts[index], index % column_count)
        self._arrange()

    def _arrange(self) -> None:
        """Place the cells in columns; when stacked, the text has its own line and the figures the next."""
        column_count = max(1, len(self._content[0]))
        self._is_stacked = column_count > 1 and self._required_width(stacked=False) > self.width()
        self._grid.setHorizontalSpacing(self._gap(self._is_stacked))
        used = column_count * (1 + len(self._content[1]))
        for index, label in enumerate(self._cells[:used]):
            row, column = divmod(index, column_count)
            if not self._is_stacked:
                self._grid.addWidget(label, row, column)
            elif column == 0:
                self._grid.addWidget(label, 2 * row, 0, 1, column_count)
            else:
                self._grid.addWidget(label, 2 * row + 1, column)
        self._grid.setColumnStretch(0, 1)
        self.updateGeometry()

    def _required_width(self, stacked: bool) -> int:
        """Return the width needed to show all figures and words uncut."""
        column_count = max(1, len(self._content[0]))
        used = self._cells[: column_count * (1 + len(self._content[1]))]
        columns = [
            max((label.minimumSizeHint().width() for label in used[n::column_count]), default=0)
            for n in range(column_count)
        ]
        gap = self._gap(stacked)
        return (
            max(columns[0], sum(columns[1:]) + gap * (column_count - 2))
            if stacked
            else sum(columns) + gap * (column_count - 1)
        )

    def _gap(self, stacked: bool) -> int:
        """Return the pixels between two columns: fewer when stacked."""
        return self._theme.space(4 if stacked else 10)

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size, with text and figures stacked."""
        return QSize(self._required_width(stacked=True), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stack or unstack the cells when the width changes."""
        super().resizeEvent(event)
        if self._is_stacked != (self._required_width(stacked=False) > self.width()):
            self._arrange()

    def _fill(self, label: QLabel, text: str, colour: str, weight: int, column: int) -> None:
        theme = self._theme
        label.setWordWrap(column == 0)  # text wraps, figures do not
        label.setText(text)
        side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
        label.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        label.setFont(theme.font(12, weight, tabular=True))
        label.setStyleSheet(
            f"color: {getattr(theme, colour)}; font-size: {theme.px(12)}px; font-weight: {weight}; padding: 1px 0;"
        )


class NodeCard(Themed, QFrame):
    """Show a `NodeReport` in a narrow panel."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="nodeCard", role="panel")
        self.report: NodeReport | None = None
        self._heading, self._token = TextBlock(self, "heading"), TextBlock(self, "title")
        self._facts = TextBlock(self, "muted")
        add_glossary_tooltip(self._heading, lambda: self.report.term if self.report is not None else "")
        self._card = set_up(QFrame(self), role="card")
        self._sentence = TextBlock(self._card, rich=True)
        self._text_title, self._text = self._title(tr("Text so far")), TextBlock(self)
        self._table_title, self._table = self._title(""), ReportTable(self)
        self._score_title, self._score = self._title(tr("Score")), TextBlock(self, "muted")
        self._card_layout = arrange(QHBoxLayout(self._card), self._sentence)
        column = self._column = QVBoxLayout(self)
        for widget in (self._heading, self._token, self._facts, self._card, self._text_title, self._text,
                       self._table_title, self._table, self._score_title, self._score):  # fmt: skip
            column.addWidget(widget)
        column.addStretch(1)
        self.set_theme(theme_for("light"))

    def _title(self, text: str) -> QLabel:
        return set_up(PlainLabel(text.upper(), self), role="heading")

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(5))
        self._column.setContentsMargins(theme.px(16), theme.px(14), theme.px(16), theme.px(14))
        self._card_layout.setContentsMargins(theme.px(13), theme.px(11), theme.px(13), theme.px(11))
        for title in (self._text_title, self._table_title, self._score_title):
            title.setContentsMargins(0, theme.px(10), 0, 0)
        for block in (self._heading, self._token, self._facts, self._sentence, self._text, self._score):
            block.refit()

    def show_report(self, report: NodeReport | None) -> None:
        """Show the report of a node; None hides the card."""
        self.report = report
        self.setVisible(report is not None)
        if report is None:
            return
        self._heading.set_text(report.heading.upper())
        self._token.set_text(report.token)
        self._facts.set_text(report.facts)
        verdict = f"<b>{html.escape(report.verdict)}</b>" if report.verdict else ""
        self._sentence.set_text(join_sentences(verdict, with_bold_figures(report.sentence)))
        self._text.set_text(report.so_far.strip())
        self._text_title.setVisible(bool(report.so_far.strip()))
        self._text.setVisible(bool(report.so_far.strip()))
        self._table_title.setText(report.table_title.upper())
        self._table.show_rows(report.columns, report.rows)
        self._score_title.setText((report.formula_title or tr("Score")).upper())
        self._score.set_text(report.formula)
        self._score_title.setVisible(bool(report.formula))
