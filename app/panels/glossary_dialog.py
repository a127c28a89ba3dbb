"""Glossary window: searchable terms, each explained at every level of detail and linked to its source."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QKeyEvent
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.widgets.building import STRETCH, Gap, arrange, set_up
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.flow_layout import FlowLayout
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.app.widgets.screen import available_rect
from decodescope.core import glossary
from decodescope.resources import depth
from decodescope.resources.language import mark, tr

DEPTHS = {
    depth.PLAIN: mark("In plain words"),
    depth.USUAL: mark("In standard terms"),
    depth.EXACT: mark("Exactly"),
}
_COLUMNS, _LINES = 86, 24
"""Visible size, in characters."""
_LIST_KEYS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
"""Keys that move through the list while the search field has the focus."""


class GlossaryDialog(BaseDialog):
    """Search field, list of matching terms and the page of the selected term; shows the term `first` if given.

    `claimsRequested(name)`: show the claims about what the term explains (`strategy.greedy`).
    """

    claimsRequested = Signal(str)

    def __init__(self, first: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent, "glossary", tr("Glossary"))
        self.field = set_up(QLineEdit(self), name="glossaryField", accessible_name=tr("Find a term"))
        self.field.setPlaceholderText(tr("A term, in English or Chinese"))
        self.field.setClearButtonEnabled(True)
        self.field.installEventFilter(self)
        self.list = set_up(QListWidget(self), name="glossaryList", accessible_name=tr("Terms"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setWordWrap(True)
        self.list.setSpacing(1)
        self.no_matches = set_up(WrappedLabel(tr("No matches. Try a shorter search."), self), role="muted")
        self.page = TermPage(self)
        self.page.claimsRequested.connect(self.claimsRequested)
        self._lay_out()
        self.field.textChanged.connect(self._on_text)
        self.list.currentItemChanged.connect(self._on_term)
        self.list.itemActivated.connect(self.page.open_source)
        self._on_text("")
        if first:
            self.show_term(first)

    @property
    def current_term(self) -> glossary.GlossaryTerm | None:
        """The term shown on the page."""
        return self.page.term

    def show_term(self, name: str) -> None:
        """Show the term with this id.

        Raises KeyError if there is none.
        """
        glossary.term(name)
        self.field.clear()
        for row in range(self.list.count()):
            if self.list.item(row).data(Qt.ItemDataRole.UserRole) == name:
                self.list.setCurrentRow(row)

    @Slot()
    def wording_changed(self) -> None:
        """Update all texts after a change of language or level of detail."""
        if self.current_term is not None:
            self.page.show_term(self.current_term)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """While the search field has the focus, move through the terms with the arrow keys and open the source with
        Enter.
        """
        if watched is self.field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in _LIST_KEYS:
                self.list.keyPressEvent(event)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.page.open_source()
                return True
        return super().eventFilter(watched, event)

    def tab_panels(self) -> Sequence[QWidget]:
        """Tab goes from the list to the page of the selected term."""
        return self.field, self.list, self.page, self._buttons

    def _lay_out(self) -> None:
        self._buttons = buttons = QDialogButtonBox(self)
        buttons.addButton(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        left = arrange(QVBoxLayout(), (self.list, 1), self.no_matches)
        both = arrange(QHBoxLayout(), (left, 2), (self.page, 3), spacing=18)
        arrange(QVBoxLayout(self), self.field, (both, 1), buttons, margins=(20, 16, 20, 16), spacing=12)
        self.ensurePolished()
        metrics = self.field.fontMetrics()
        size = metrics.horizontalAdvance("x") * _COLUMNS + 80, metrics.lineSpacing() * _LINES + 110
        room = available_rect(self)
        self.resize(min(size[0], room.width() - 40), min(size[1], room.height() - 80))

    @Slot(str)
    def _on_text(self, text: str) -> None:
        found = glossary.search_terms(text)
        self.list.clear()
        for term in found:
            item = QListWidgetItem(term.title)
            item.setData(Qt.ItemDataRole.UserRole, term.id)
            self.list.addItem(item)
        self.no_matches.setVisible(not found)
        self.list.setCurrentRow(0)

    @Slot()
    def _on_term(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self.page.show_term(glossary.term(item.data(Qt.ItemDataRole.UserRole)))


class TermPage(QScrollArea):
    """Page of one term: its explanation at the current level of detail, then at the other two, its source, and a button
    for the claims about it. `claimsRequested(name)`: show them.
    """

    claimsRequested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.term: glossary.GlossaryTerm | None = None
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("The term explained"))
        page = QWidget(self)
        column = arrange(QVBoxLayout(page), margins=(0, 0, 8, 0), spacing=5)
        self.title = set_up(WrappedLabel(), role="title")
        column.addWidget(self.title)
        self.sentences = [(PlainLabel(), WrappedLabel()) for _ in DEPTHS]
        for heading, sentence in self.sentences:
            heading.setProperty("role", "heading")
            sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            arrange(column, Gap(8), heading, sentence)
        column.addSpacing(10)
        self.source = set_up(WrappedLabel(), role="muted")
        column.addWidget(self.source)
        self.link = set_up(QPushButton(tr("Open the source"), page), name="glossaryLink", clicked=self.open_source)
        self.link.setAutoDefault(False)
        self.claims = set_up(QPushButton(tr("Claims…"), page), name="glossaryClaims", clicked=self._show_claims)
        self.claims.setAutoDefault(False)
        self.claims.setToolTip(tooltip(tr("What papers say about it, tested on the selected model")))
        arrange(column, arrange(FlowLayout(spacing=8), self.link, self.claims), STRETCH)
        self.setWidget(page)

    def show_term(self, term: glossary.GlossaryTerm) -> None:
        """Show another term."""
        self.term = term
        self.title.setText(term.title)
        first = depth.current_depth()
        for (heading, sentence), each in zip(
            self.sentences, sorted(DEPTHS, key=lambda name: name != first), strict=True
        ):
            with depth.depth_context(each):
                heading.setText(tr(DEPTHS[each]).upper())
                sentence.setText(term.sentence)
        self.source.setText(term.source)
        self.link.setToolTip(tooltip(term.address))
        self.link.setAccessibleDescription(term.address)
        self.claims.setVisible(bool(_claim_subject(term)))

    @Slot()
    def _show_claims(self) -> None:
        if self.term is not None:
            self.claimsRequested.emit(_claim_subject(self.term))

    @Slot()
    def open_source(self) -> None:
        """Open the paper or document in the browser."""
        if self.term is not None:
            QDesktopServices.openUrl(QUrl(self.term.address))


def _claim_subject(term: glossary.GlossaryTerm) -> str:
    """Return the first name that the term explains and that has claims; empty if none has."""
    from decodescope.core import claims  # the glossary may open before anything needs them

    return next((name for name in term.of if claims.claims_about(name)), "")
