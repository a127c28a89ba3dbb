"""The list of saved chats beside the conversation: search, open, rename, delete, import and export."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QDateTime, QLocale, QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.state.conversation import ChatSummary
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.labels import ElidedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.resources.language import tr, trn

QWIDGETSIZE_MAX = 2**24 - 1
WIDTH = 216
"""Width in pixels at 100 %."""
_ID = Qt.ItemDataRole.UserRole


def _date(seconds: float) -> str:
    """Return a time in seconds since 1970 in the format of the system's language."""
    when = QDateTime.fromSecsSinceEpoch(round(seconds))
    return QLocale().toString(when, QLocale.FormatType.ShortFormat)


class ChatList(Themed, QFrame):
    """Emits `opened(id)`, `renamed(id, title)`, `deleted(id)`, `undone`, `newRequested`, `importRequested` and
    `exportRequested(id, kind)`.
    """

    opened = Signal(str)
    renamed = Signal(str, str)
    deleted = Signal(str)
    undone = Signal()
    newRequested = Signal()
    importRequested = Signal()
    exportRequested = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="chatList", role="panel")
        self._chats: Sequence[ChatSummary] = ()
        self._open_id, self._is_covering = "", False
        self.new = IconButton("plus", tr("New chat"))
        set_up(self.new, name="newChatInList", clicked=self.newRequested)
        self.more = IconButton("more", tr("Chats"))
        set_up(self.more, name="chatsMenuButton", tooltip=tooltip(tr("Import and export")))
        self.more.setPopupMode(IconButton.ToolButtonPopupMode.InstantPopup)
        self.more.setMenu(self._chats_menu())
        self.search = set_up(QLineEdit(), name="chatSearch", accessible_name=tr("Search chats"))
        self.search.setPlaceholderText(tr("Search chats"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._fill)
        self.items = set_up(QListWidget(), name="chatItems", accessible_name=tr("Chats"))
        self.items.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.items.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.items.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.items.setUniformItemSizes(True)
        self.items.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.items.customContextMenuRequested.connect(self._show_menu)
        self.items.itemClicked.connect(self._on_clicked)
        self.items.itemActivated.connect(self._on_clicked)
        self.none_found = set_up(PlainLabel(tr("No matches"), wordWrap=True), role="muted")
        self.undo_text = set_up(ElidedLabel(), role="muted")
        undo = set_up(QPushButton(tr("Undo")), name="undoDeleteChat", role="quiet", clicked=self.undone)
        self.undo_row = QWidget()
        arrange(QHBoxLayout(self.undo_row), (self.undo_text, 1), undo, margins=0, spacing=4)
        self.undo_row.hide()
        self._top = arrange(QHBoxLayout(), (set_up(PlainLabel(tr("CHATS")), role="heading"), 1), self.new, self.more)
        self._column = arrange(
            QVBoxLayout(self), self._top, self.search, self.none_found, (self.items, 1), self.undo_row, spacing=6
        )

    def show_chats(self, chats: Sequence[ChatSummary], deleted: str) -> None:
        """Show the saved chats, and the name of a deleted one that can be restored."""
        self._chats = chats
        self.undo_row.setVisible(bool(deleted))
        self.undo_text.setText(tr("Deleted: {name}").format(name=deleted))
        self._fill()

    def show_open(self, chat: str) -> None:
        """Mark the open chat."""
        if chat != self._open_id:
            self._open_id = chat
            self._mark_open()

    def set_covering(self, on: bool) -> None:
        """Take the whole width of the view, or that of a list beside the conversation."""
        width = self._theme.px(WIDTH)
        self.setMinimumWidth(0 if on else width)
        self.setMaximumWidth(QWIDGETSIZE_MAX if on else width)
        if on != self._is_covering:
            self._is_covering = on
            self._set_margins(self._theme)

    def restyle(self, theme: Theme) -> None:
        self._set_margins(theme)
        self.items.setFont(theme.font(13))
        self.search.setFont(theme.font(13))
        self._fill()

    def _set_margins(self, theme: Theme) -> None:
        """Align the list with the conversation and the message below, where it takes their place."""
        left, right = (theme.px(26), theme.px(26)) if self._is_covering else (theme.space(12), theme.space(8))
        self._column.setContentsMargins(left, theme.space(10), right, theme.space(8))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Rename with F2 and delete with Del."""
        chat = self._selected()
        if chat is not None and event.key() == Qt.Key.Key_F2:
            self._rename(chat)
        elif chat is not None and event.key() == Qt.Key.Key_Delete:
            self.deleted.emit(chat.id)
        else:
            super().keyPressEvent(event)

    @Slot()
    def _fill(self) -> None:
        found = [chat for chat in self._chats if chat.matches(self.search.text())]
        row = QSize(0, self._theme.px(32))
        self.items.clear()
        for chat in found:
            item = QListWidgetItem(chat.name)
            turns = trn("{n:,} turn", "{n:,} turns", chat.turns).format(n=chat.turns)
            item.setToolTip(tooltip("\n".join((chat.name, turns, _date(chat.updated)))))
            item.setData(_ID, chat.id)
            item.setSizeHint(row)
            self.items.addItem(item)
        self.none_found.setVisible(not found and bool(self._chats))
        self._mark_open()

    def _mark_open(self) -> None:
        for number in range(self.items.count()):
            if self.items.item(number).data(_ID) == self._open_id:
                self.items.setCurrentRow(number)
                return
        self.items.setCurrentRow(-1)

    def _selected(self) -> ChatSummary | None:
        return self._chat_of(self.items.currentItem()) if self.items.currentRow() >= 0 else None

    def _chat_of(self, item: QListWidgetItem) -> ChatSummary | None:
        return next((chat for chat in self._chats if chat.id == item.data(_ID)), None)

    @Slot(QListWidgetItem)
    def _on_clicked(self, item: QListWidgetItem) -> None:
        self.opened.emit(item.data(_ID))
        self._mark_open()

    def _chats_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.addAction(caption(tr("Import chats…")), self.importRequested.emit)
        menu.addSeparator()
        self._add_exports(menu, "")
        return menu

    def _add_exports(self, menu: QMenu, chat: str) -> None:
        menu.addAction(caption(tr("Export as JSON…")), lambda: self.exportRequested.emit(chat, "json"))
        menu.addAction(caption(tr("Export as Markdown…")), lambda: self.exportRequested.emit(chat, "md"))

    @Slot(QPoint)
    def _show_menu(self, position: QPoint) -> None:
        row = self.items.indexAt(position).row()
        chat = self._chat_of(self.items.item(row)) if row >= 0 else self._selected()
        if chat is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(caption(tr("Rename…")), lambda: self._rename(chat))
        self._add_exports(menu, chat.id)
        menu.addSeparator()
        menu.addAction(caption(tr("Delete")), lambda: self.deleted.emit(chat.id))
        menu.popup(self.items.viewport().mapToGlobal(position))

    def _rename(self, chat: ChatSummary) -> None:
        from decodescope.app.widgets.confirmation import ask_text

        ask_text(
            self,
            "renameChat",
            tr("Rename chat"),
            tr("Title"),
            lambda title: self.renamed.emit(chat.id, title),
            chat.name,
        )
