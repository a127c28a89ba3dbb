"""A message inside the window: what happened, why, what to do; details can be expanded."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets import icons
from decodescope.app.widgets.accessibility import announce
from decodescope.app.widgets.building import arrange, set_up, show_text
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption
from decodescope.resources.language import join_sentences, tr

_GAP = 10
_NARROW_ICON_WIDTHS = 20
"""Width below which the lower part is not indented, in icon widths."""


class Banner(Themed, QFrame):
    """A message bar, hidden until `show_message`, which builds it on first use.

    `actionChosen` reports the pressed button; dismissing reports `dismiss`.
    """

    actionChosen = Signal(str)

    def __init__(self, name: str, icon: str = "warning", role: str = "banner", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name=name, role=role)
        self._icon_name, self._role = icon, role
        self._buttons: list[QPushButton] = []
        self._is_built = False
        self.hide()

    def show_message(
        self, title: str, cause: str = "", remedy: str = "", details: str = "", actions: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Replace the message. `actions` are (name, label)."""
        self._build()
        self.title.setText(title)
        for label, text in ((self.cause, cause), (self.remedy, remedy)):
            show_text(label, text)
        self.details.setPlainText(details)
        self.details_button.setVisible(bool(details))
        self.details_button.setChecked(False)
        self._set_actions(actions)
        set_up(self, accessible_name=title, description=join_sentences(cause, remedy))
        self.show()
        announce(
            self, ". ".join(filter(None, (title, join_sentences(cause, remedy)))), is_urgent=self._role == "banner"
        )

    @property
    def last_title(self) -> str:
        """Title of the last message; empty before the first one."""
        return self.accessibleName()

    @property
    def message(self) -> tuple[str, str, list[tuple[str, str]]]:
        """Title, cause and buttons of the last message."""
        actions = [(button.objectName().removesuffix("Action"), button.text()) for button in self._buttons]
        return self.title.text(), self.cause.text(), actions

    @Slot()
    def dismiss(self) -> None:
        """Hide the banner and emit `dismiss`."""
        if not self.isHidden():
            self.hide()
            self.actionChosen.emit("dismiss")

    def button(self, name: str) -> QPushButton | None:
        """Return the button of an action, or None if this message has no such action."""
        return next((button for button in self._buttons if button.objectName() == f"{name}Action"), None)

    def restyle(self, theme: Theme) -> None:
        if not self._is_built:
            return
        color = theme.danger if self._role == "banner" else theme.muted
        self._icon_label.setPixmap(icons.icon_pixmap(self._icon_name, color, theme.px(18)))
        self.details.setMinimumHeight(theme.px(48))
        self.details.setMaximumHeight(theme.px(132))

    def _build(self) -> None:
        if self._is_built:
            return
        self._is_built = True
        self._icon_label = PlainLabel(self)
        self.title, self.cause, self.remedy = self._label(), self._label(), self._label()
        self.title.setProperty("role", "bannerTitle")
        self.details = set_up(QPlainTextEdit(self, readOnly=True), accessible_name=tr("Details of the message"))
        self.details.setObjectName(f"{self.objectName()}Details")
        self.details.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.details.hide()
        self.details_button = set_up(QPushButton(tr("Details"), self), name="detailsButton", role="quiet")
        self.details_button.setCheckable(True)
        self.details_button.toggled.connect(self.details.setVisible)
        self.close_button = set_up(IconButton("close", tr("Dismiss this message"), self), clicked=self.dismiss)
        self._lay_out()
        self.set_theme(self._theme)

    def _lay_out(self) -> None:
        words = arrange(QVBoxLayout(), self.title, self.cause, self.remedy, spacing=3)
        self._actions = FlowRow(self)
        self._actions.flow.addWidget(self.details_button)
        row, self._lower_layout = QHBoxLayout(), QVBoxLayout()
        row.setSpacing(_GAP)
        arrange(self._lower_layout, self._actions, self.details)
        arrange(QVBoxLayout(self), row, self._lower_layout, margins=(12, 10, 8, 10), spacing=6)
        row.addWidget(self._icon_label, 0, Qt.AlignmentFlag.AlignTop)
        arrange(row, (words, 1), (self.close_button, 0, Qt.AlignmentFlag.AlignTop))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Indent the lower part to the text, or to the icon if the banner is narrow."""
        super().resizeEvent(event)
        if not self._is_built:
            return
        narrow = self.width() < _NARROW_ICON_WIDTHS * self._icon_label.width()
        self._lower_layout.setContentsMargins(0 if narrow else self._icon_label.width() + _GAP, 0, 0, 0)

    def _label(self) -> WrappedLabel:
        label = WrappedLabel("", self)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label

    def _set_actions(self, actions: Sequence[tuple[str, str]]) -> None:
        for button in self._buttons:
            self._actions.flow.removeWidget(button)
            button.deleteLater()
        self._actions.flow.removeWidget(self.details_button)
        self._buttons = [self._action_button(name, label) for name, label in actions]
        arrange(self._actions.flow, *self._buttons, self.details_button)
        self._actions.setVisible(bool(actions) or not self.details_button.isHidden())

    def _action_button(self, name: str, label: str) -> QPushButton:
        button = set_up(QPushButton(caption(label), self._actions), name=f"{name}Action", clicked=self._on_action)
        button.setProperty("action", name)
        return button

    @Slot()
    def _on_action(self) -> None:
        name = self.sender().property("action")
        self.hide()
        self.actionChosen.emit(name)
