"""The input for messages below the views: editor, Send button, examples, and a warning when the context is full."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from decodescope.app.panels.adapter_panel import AdapterEntry
from decodescope.app.storage.examples import ExamplePrompt
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_up, show_text
from decodescope.app.widgets.labels import ElidedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.core import adapters, cut_short
from decodescope.resources.language import join_names, mark, tr, trn

SEND_MODES = {"run": mark("Send"), "stop": mark("Stop"), "stopping": mark("Stopping…")}
KEY_HINTS = {
    True: mark("Enter sends · Shift+Enter starts a new line"),
    False: mark("Shift+Enter sends · Enter starts a new line"),
}
MAX_ADAPTER_NAME = 28
"""Maximum length of the name of an adapter in the button, in characters."""
BUSY_HINT = mark("An answer is being written. Esc stops it.")


class ChatComposer(Themed, QFrame):
    """Holds the prompt editor while messages are written.

    Emits `sendRequested` (also to stop an answer), `exampleChosen(example)` and `adapterSwitched(path, is on)`.
    """

    sendRequested = Signal()
    exampleChosen = Signal(object)
    adapterSwitched = Signal(str, bool)

    def __init__(self, examples: Sequence[ExamplePrompt], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="chatComposer", role="panel")
        self._examples = examples
        self.warning = set_up(
            PlainLabel(wordWrap=True), name="contextWarning", role="warning", accessible_name=tr("Context of the model")
        )
        self.warning.hide()
        self.send = set_up(QPushButton(tr("Send")), name="sendButton", role="primary", clicked=self.sendRequested)
        self.send.setCursor(Qt.CursorShape.PointingHandCursor)
        self.send.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the cursor in the message
        self.examples = self._examples_button()
        self.adapters = set_up(QToolButton(), name="chatAdapters", accessible_name=tr("Adapters"))
        self.adapters.setToolTip(tooltip(tr("Adapters for the next answer")))
        self.adapters.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.adapters.setMenu(QMenu(self.adapters))
        self.adapters.menu().aboutToShow.connect(self._fill_adapters)
        self._entries: Sequence[AdapterEntry] = ()
        self.adapters.hide()
        self.hint = set_up(ElidedLabel(), role="muted", name="sendHint")
        self._mode, self._enter_sends = "run", True
        self._input: QWidget = self
        self._row = arrange(QHBoxLayout(), spacing=8)
        self._foot = QWidget(self)
        arrange(QHBoxLayout(self._foot), self.examples, self.adapters, (self.hint, 1), margins=0, spacing=8)
        self._column = arrange(QVBoxLayout(self), self.warning, self._row, self._foot, spacing=4)
        self._row.addWidget(self.send, 0, Qt.AlignmentFlag.AlignBottom)
        self._update()

    def take_input(self, area: QWidget) -> None:
        """Take the editor from the panel of settings."""
        self._input = area
        self._row.insertWidget(0, area, 1)
        area.show()

    def set_low(self, is_low: bool) -> None:
        """Hide examples and hint where the window is too low for them."""
        self._foot.setVisible(not is_low)

    def set_key(self, enter_sends: bool) -> None:
        """Describe the key that sends."""
        self._enter_sends = enter_sends
        self._update()

    @Slot(str)
    def set_mode(self, mode: str) -> None:
        """Show one of SEND_MODES."""
        self._mode = mode
        self._update()

    def show_warning(self, text: str) -> None:
        """Show that the chat does not fit the context, with what would help; nothing if empty."""
        show_text(self.warning, text)

    def show_adapters(self, entries: Sequence[AdapterEntry]) -> None:
        """List the adapters of the model, those in use with a check mark; hide the button if there are none."""
        self._entries = entries
        names = [adapters.adapter_name(one.path) for one in entries if one.is_on]
        count = trn("{n:,} adapter", "{n:,} adapters", len(names)).format(n=len(names))
        text = cut_short(names[0], MAX_ADAPTER_NAME) if len(names) == 1 else count if names else tr("No adapter")
        self.adapters.setText(f"{caption(text)} ⌄")
        self.adapters.setAccessibleDescription(join_names(names))
        self.adapters.setVisible(bool(entries))

    @Slot()
    def _fill_adapters(self) -> None:
        """Fill the menu before it opens: its own actions change the list."""
        menu = self.adapters.menu()
        menu.clear()
        for one in self._entries:
            action = menu.addAction(caption(adapters.adapter_name(one.path)))
            action.setCheckable(True)
            action.setChecked(one.is_on)
            action.triggered.connect(partial(self.adapterSwitched.emit, one.path, not one.is_on))

    def restyle(self, theme: Theme) -> None:
        self._column.setContentsMargins(theme.px(26), theme.space(10), theme.px(26), theme.space(8))
        for part in (self.hint, self.examples, self.adapters, self.warning):
            part.setFont(theme.font(12))
        self.send.setMinimumWidth(theme.px(76))

    def _update(self) -> None:
        self.send.setText(tr(SEND_MODES[self._mode]))
        if self.send.hasFocus() and self._mode == "stopping":  # disabled, it would pass the focus on to the toolbar
            self._input.setFocus()
        self.send.setEnabled(self._mode != "stopping")
        key = tr("Enter") if self._enter_sends else tr("Shift+Enter")
        self.send.setToolTip(tooltip(tr("Stop the answer (Esc)") if self._mode != "run" else f"{tr('Send')} ({key})"))
        self.hint.setText(tr(KEY_HINTS[self._enter_sends] if self._mode == "run" else BUSY_HINT))

    def _examples_button(self) -> QToolButton:
        button = set_up(
            QToolButton(), name="chatExamples", accessible_name=tr("Examples"),
            tooltip=tooltip(tr("Start a new chat with an example")),
        )  # fmt: skip
        button.setText(f"{tr('Examples')} ⌄")
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(button)
        menu.setToolTipsVisible(True)
        for number, example in enumerate(self._examples):
            if example.is_chat:
                action = menu.addAction(tr(example.title))
                action.setToolTip(tr(example.about))
                action.setData(number)
        menu.triggered.connect(self._on_example)
        button.setMenu(menu)
        if menu.isEmpty():
            button.hide()
        return button

    @Slot(QAction)
    def _on_example(self, action: QAction) -> None:
        self.exampleChosen.emit(self._examples[action.data()])
