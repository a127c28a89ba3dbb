"""The inspector's pages, of which one is seen: of nothing, of a token, of a node. The last two are made when there is
something to say of one: the window is complete without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.theme.theme import Theme, theme_for
from app.views.inspector.page_margins import page_margins
from app.views.node_reports import NodeReport
from app.widgets.empty_offer import EmptyOffer
from app.widgets.inputs import ScrollArea
from app.widgets.text_block import TextBlock
from resources.language import tr

if TYPE_CHECKING:
    from app.views.inspector.node_card import NodeCard
    from app.views.inspector.token_page import TokenPage


class EmptyPage(QFrame):
    """There is no token yet, and what can be done about it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "panel")
        self._theme = theme_for("light")
        self.heading, self.title, self.facts = (TextBlock(self, role) for role in ("heading", "title", "muted"))
        self.offer = EmptyOffer(tr("Run this prompt"), self)
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

    def leave_room(self, taken: int) -> None:
        """Have the right margin narrower by so many pixels, which a scroll bar has taken."""
        self._column.setContentsMargins(page_margins(self._theme, taken))

    def tell(self, waiting: bool) -> None:
        """None has come yet (`waiting`), or nothing was run."""
        self.heading.set_text(tr("INSPECTOR"))
        self.title.set_text(tr("Waiting for the first token") if waiting else tr("No token yet"))
        self.facts.set_text(
            "" if waiting else tr("Run something, then click a token: here you read why it was chosen.")
        )
        self.offer.offer(not waiting)
        self._column.activate()


class Pages(ScrollArea):
    """`made(TokenPage)`: there is one now."""

    made = Signal(object)

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
        self._holder = QWidget(self)
        self._column = QVBoxLayout(self._holder)
        self._column.setContentsMargins(0, 0, 0, 0)
        self.empty = EmptyPage(self._holder)
        self._column.addWidget(self.empty)
        self.setWidget(self._holder)
        self.verticalScrollBar().rangeChanged.connect(self._keep_width)

    @property
    def token(self) -> TokenPage:
        """The page of a token."""
        if self._token is None:
            from app.views.inspector.token_page import TokenPage

            self._token = TokenPage(self._holder)
            self._token.set_theme(self._theme)
            self._token.hide()
            self._column.addWidget(self._token)
            self._keep_width()
            self.made.emit(self._token)
        return self._token

    @Slot()
    def make(self) -> None:
        """Make the page of a token while there is nothing else to do."""
        assert self.token is not None

    @property
    def speaks_of_node(self) -> bool:
        """Whether a node's page is the one that is seen."""
        return self._node is not None and self._node.report is not None

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        for page in (self.empty, self._token, self._node):
            if page is not None:
                page.set_theme(theme)
        self._keep_width()

    def show_report(self, report: NodeReport | None) -> None:
        """Speak of a node; None: no more."""
        if report is not None and self._node is None:
            from app.views.inspector.node_card import NodeCard

            self._node = NodeCard(self._holder)
            self._node.set_theme(self._theme)
            self._column.addWidget(self._node)
        if self._node is not None:
            self._node.show_report(report)
        self._settle()

    def tell_nothing(self, waiting: bool) -> None:
        """There is no token to speak of."""
        self._is_empty = True
        self.empty.tell(waiting)
        self._settle()

    def tell_token(self) -> TokenPage:
        """There is one; its page."""
        self._is_empty = False
        page = self.token
        self._settle()
        return page

    def _settle(self) -> None:
        self.empty.setVisible(self._is_empty and not self.speaks_of_node)
        if self._token is not None:
            self._token.setVisible(not self._is_empty and not self.speaks_of_node)

    @Slot()
    def _keep_width(self) -> None:
        """The scroll bar takes its room from the margin, so that nothing is wrapped anew when it comes and goes."""
        bar = self.verticalScrollBar()
        taken = bar.sizeHint().width() if bar.maximum() > bar.minimum() else 0
        for page in (self.empty, self._token):
            if page is not None:
                page.leave_room(taken)
