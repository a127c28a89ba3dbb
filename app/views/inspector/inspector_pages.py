"""The inspector's pages, of which one is seen: of nothing, of a token, of a node. The last two are made when there is
something to say of one: the window is complete without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.theme.theme import Theme, theme_for
from app.views.inspector.page_margins import page_margins
from app.views.node_reports import NodeReport
from app.widgets.empty_offer import FillButton
from app.widgets.inputs import ScrollArea
from app.widgets.text_block import TextBlock
from resources.language import tr

if TYPE_CHECKING:
    from app.views.inspector.node_card import NodeCard
    from app.views.inspector.token_page import TokenPage


class EmptyInspectorPage(QFrame):
    """There is no token yet, and what can be done about it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "panel")
        self._theme = theme_for("light")
        self.heading, self.title, self.facts = (TextBlock(self, role) for role in ("heading", "title", "muted"))
        self.offer = FillButton(tr("Run this prompt"), self)
        self._column = QVBoxLayout(self)
        for widget in (self.heading, self.title, self.facts):
            self._column.addWidget(widget)
        self._column.addSpacing(6)
        self._column.addWidget(self.offer)
        self._column.addStretch(1)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self._column.setSpacing(theme.px(4))
        for block in (self.heading, self.title, self.facts):
            block.refit()

    def set_scroll_bar_width(self, width: int) -> None:
        """Have the right margin narrower by so many pixels, which a scroll bar has taken."""
        self._column.setContentsMargins(page_margins(self._theme, width))

    def show_state(self, waiting: bool) -> None:
        """None has come yet (`waiting`), or nothing was run."""
        self.heading.set_text(tr("INSPECTOR"))
        self.title.set_text(tr("Waiting for the first token") if waiting else tr("No token yet"))
        self.facts.set_text(
            "" if waiting else tr("Run something, then click a token: here you read why it was chosen.")
        )
        self.offer.update_state(not waiting)
        self._column.activate()


class InspectorPages(ScrollArea):
    """`tokenPageCreated(TokenPage)`: there is one now."""

    tokenPageCreated = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._token: TokenPage | None = None
        self._node: NodeCard | None = None
        self._is_empty = True
        self.setAccessibleName(tr("Inspector"))
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._container = QWidget(self)
        self._column = QVBoxLayout(self._container)
        self._column.setContentsMargins(0, 0, 0, 0)
        self.empty = EmptyInspectorPage(self._container)
        self._column.addWidget(self.empty)
        self.setWidget(self._container)
        self.verticalScrollBar().rangeChanged.connect(self._update_margins)

    @property
    def token(self) -> TokenPage:
        """The page of a token."""
        if self._token is None:
            from app.views.inspector.token_page import TokenPage

            self._token = TokenPage(self._container)
            self._token.set_theme(self._theme)
            self._token.hide()
            self._column.addWidget(self._token)
            self._update_margins()
            self.tokenPageCreated.emit(self._token)
        return self._token

    @Slot()
    def create_token_page(self) -> None:
        """Make the page of a token while there is nothing else to do."""
        assert self.token is not None

    @property
    def shows_node(self) -> bool:
        """Whether a node's page is the one that is seen."""
        return self._node is not None and self._node.report is not None

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        for page in (self.empty, self._token, self._node):
            if page is not None:
                page.set_theme(theme)
        self._update_margins()

    def show_report(self, report: NodeReport | None) -> None:
        """Speak of a node; None: no more."""
        if report is not None and self._node is None:
            from app.views.inspector.node_card import NodeCard

            self._node = NodeCard(self._container)
            self._node.set_theme(self._theme)
            self._column.addWidget(self._node)
        if self._node is not None:
            self._node.show_report(report)
        self._update_visibility()

    def show_empty(self, waiting: bool) -> None:
        """There is no token to speak of."""
        self._is_empty = True
        self.empty.show_state(waiting)
        self._update_visibility()

    def show_token_page(self) -> TokenPage:
        """There is one; its page."""
        self._is_empty = False
        page = self.token
        self._update_visibility()
        return page

    def _update_visibility(self) -> None:
        self.empty.setVisible(self._is_empty and not self.shows_node)
        if self._token is not None:
            self._token.setVisible(not self._is_empty and not self.shows_node)

    @Slot()
    def _update_margins(self) -> None:
        """The scroll bar takes its room from the margin, so that nothing is wrapped anew when it comes and goes."""
        bar = self.verticalScrollBar()
        bar_width = bar.sizeHint().width() if bar.maximum() > bar.minimum() else 0
        for page in (self.empty, self._token):
            if page is not None:
                page.set_scroll_bar_width(bar_width)
