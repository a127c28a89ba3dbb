"""A report on a tree's node as a card: what it is, why it lived or died, whom it competed with."""

from __future__ import annotations

import html

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.theme.theme import Theme, theme_for
from app.views.inspector.inspector_rows import with_bold_figures
from app.views.inspector.report_table import ReportTable
from app.views.node_reports import NodeReport
from app.views.shared.glossary_link import add_glossary_tooltip
from app.widgets.plain_text import PlainLabel
from app.widgets.text_block import TextBlock
from resources.language import join_sentences, tr


class NodeCard(QFrame):
    """Shows a `NodeReport`; made to stand in a narrow panel."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("nodeCard")
        self.setProperty("role", "panel")
        self.report: NodeReport | None = None
        self._heading, self._token = TextBlock(self, "heading"), TextBlock(self, "title")
        self._facts = TextBlock(self, "muted")
        add_glossary_tooltip(self._heading, lambda: self.report.term if self.report is not None else "")
        self._card = QFrame(self)
        self._card.setProperty("role", "card")
        self._sentence = TextBlock(self._card, rich=True)
        self._text_title, self._text = self._title(tr("Text so far")), TextBlock(self)
        self._table_title, self._table = self._title(""), ReportTable(self)
        self._score_title, self._score = self._title(tr("Score")), TextBlock(self, "muted")
        self._card_layout = QHBoxLayout(self._card)
        self._card_layout.addWidget(self._sentence)
        column = self._column = QVBoxLayout(self)
        for widget in (self._heading, self._token, self._facts, self._card, self._text_title, self._text,
                       self._table_title, self._table, self._score_title, self._score):  # fmt: skip
            column.addWidget(widget)
        column.addStretch(1)
        self.set_theme(theme_for("light"))

    def _title(self, text: str) -> QLabel:
        label = PlainLabel(text.upper(), self)
        label.setProperty("role", "heading")
        return label

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self._column.setSpacing(theme.px(5))
        self._column.setContentsMargins(theme.px(16), theme.px(14), theme.px(16), theme.px(14))
        self._card_layout.setContentsMargins(theme.px(13), theme.px(11), theme.px(13), theme.px(11))
        for title in (self._text_title, self._table_title, self._score_title):
            title.setContentsMargins(0, theme.px(10), 0, 0)
        self._table.set_theme(theme)
        for block in (self._heading, self._token, self._facts, self._sentence, self._text, self._score):
            block.refit()

    def show_report(self, report: NodeReport | None) -> None:
        """Tell of another node; None empties the card."""
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
