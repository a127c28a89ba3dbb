"""Dialog to connect to a remote engine: address, key and model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.building import arrange, set_role
from decodescope.app.widgets.dialog import WINDOW_FRAME, BaseDialog
from decodescope.app.widgets.labels import WrappedLabel, paint_empty_text
from decodescope.app.widgets.screen import available_rect
from decodescope.resources.language import tr


class EngineInput(NamedTuple):
    """Values typed into the dialog."""

    address: str
    key: str
    keeps_key: bool
    """Whether to store the key in the system keyring."""
    allows_plain_http: bool


class _EngineModels(Themed, QListWidget):
    """The models of an engine; a sentence in its place while it is empty."""

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.count():
            paint_empty_text(self, self._theme)


class EngineDialog(BaseDialog):
    """Dialog to connect to an engine.

    Emits `modelsRequested(EngineInput)` to list its models, `connectRequested(EngineInput, model)`,
    `forgetRequested(EngineInput)`, and `edited(address)` when the address changes.
    """

    modelsRequested = Signal(object)
    connectRequested = Signal(object, str)
    forgetRequested = Signal(object)
    edited = Signal(str)

    def __init__(self, keyring_reason: str, parent: QWidget | None = None) -> None:
        """`keyring_reason`: why no key can be stored; empty if one can."""
        super().__init__(parent, "engineDialog", tr("Connect to an engine"))
        self.address, self.key = QLineEdit(), QLineEdit()
        self.keep_key_box = QCheckBox(tr("Store the key in the system keyring"))
        self.allow_plain_box = QCheckBox(tr("Allow http: I trust the network to that machine"))
        self.list_button = QPushButton(tr("List models"))
        self.models = _EngineModels()
        self.models.setAccessibleDescription(tr("The models of the engine are listed here."))
        self.status = WrappedLabel("")
        self._about = WrappedLabel(tr(
            "A model on another machine with an OpenAI-compatible API: vLLM, SGLang, llama.cpp server, "
                "transformers serve and others. Prompts are sent there."
        ))  # fmt: skip
        self._key_note = WrappedLabel(keyring_reason)
        self._keyring_reason = keyring_reason
        self._set_up()
        self._lay_out()
        self.set_plain_http_visible(False)
        self._refresh()
        self.address.setFocus()

    @property
    def values(self) -> EngineInput:
        """The values typed now."""
        return EngineInput(
            self.address.text().strip(),
            self.key.text(),
            self.keep_key_box.isChecked(),
            self.allow_plain_box.isChecked(),
        )

    @property
    def model(self) -> str:
        """The selected model; empty if there is none."""
        row = self.models.currentRow()
        return str(self.models.item(row).data(Qt.ItemDataRole.UserRole)) if row >= 0 else ""

    def show_models(self, names: Sequence[tuple[str, str]], selected_name: str) -> None:
        """List the engine's models as (name, facts)."""
        self.models.clear()
        for name, facts in names:
            item = QListWidgetItem(f"{name}  ·  {facts}" if facts else name)
            item.setData(Qt.ItemDataRole.UserRole, name)
            self.models.addItem(item)
            if name == selected_name or self.models.currentRow() < 0:
                self.models.setCurrentItem(item)
        self._refresh()

    def show_status(self, text: str, role: str = "muted") -> None:
        """Show the result or the error of a request; `role`: muted, finished or danger."""
        self.status.setText(text)
        set_role(self.status, role)
        if text:
            announce(self, text)

    def set_plain_http_visible(self, is_visible: bool) -> None:
        """Show or hide the permission for plain http, which a remote address needs."""
        self.allow_plain_box.setVisible(is_visible)
        if not is_visible:
            self.allow_plain_box.setChecked(False)

    def set_forget_visible(self, is_visible: bool) -> None:
        """Show or hide the button that deletes what is stored for this address."""
        self.forget.setVisible(is_visible)

    def restyle(self, theme: Theme) -> None:
        self.models.setMinimumHeight(theme.px(96))
        self.setMinimumWidth(min(theme.px(520), available_rect(self).width() - WINDOW_FRAME.width()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """List the models on Enter in a field, or press the focused button; no default button is pressed."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
        elif isinstance(button := self.focusWidget(), QPushButton):
            button.click()

    def _set_up(self) -> None:
        self.address.setObjectName("engineAddress")
        self.address.setPlaceholderText("http://localhost:8000/v1")
        self.address.setAccessibleName(tr("Address"))
        self.key.setObjectName("engineKey")
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setPlaceholderText(tr("Only if the engine requires one"))
        self.key.setAccessibleName(tr("Key"))
        self.list_button.setObjectName("engineLook")
        self.list_button.setAutoDefault(False)
        self.models.setObjectName("engineModels")
        self.models.setAccessibleName(tr("Models of the engine"))
        self.status.setObjectName("engineStatus")
        self.keep_key_box.setEnabled(not self._keyring_reason)
        for label in (self._about, self._key_note):
            label.setProperty("role", "muted")
        self.address.textChanged.connect(self._on_address)
        self.address.returnPressed.connect(self._request_models)
        self.key.returnPressed.connect(self._request_models)
        self.list_button.clicked.connect(self._request_models)
        self.models.currentRowChanged.connect(self._refresh)
        self.models.itemActivated.connect(self._connect)

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        row = arrange(QHBoxLayout(), (self.address, 1), self.list_button)
        form.addRow(tr("Address"), row)
        form.addRow("", self.allow_plain_box)
        form.addRow(tr("Key"), self.key)
        form.addRow("", self.keep_key_box)
        if self._keyring_reason:
            form.addRow("", self._key_note)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self.connect_button = buttons.addButton(tr("Connect"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.connect_button.setObjectName("engineConnect")
        self.forget = buttons.addButton(tr("Forget this engine"), QDialogButtonBox.ButtonRole.ResetRole)
        self.forget.setObjectName("engineForget")
        self.forget.hide()
        self.connect_button.clicked.connect(self._connect)
        self.forget.clicked.connect(self._forget)
        buttons.rejected.connect(self.close)
        column = arrange(QVBoxLayout(self), margins=(20, 16, 20, 16), spacing=10)
        arrange(column, self._about, form, (self.models, 1), self.status, buttons)

    @Slot()
    def _refresh(self) -> None:
        self.list_button.setEnabled(bool(self.values.address))
        self.models.setEnabled(self.models.count() > 0)
        self.connect_button.setEnabled(bool(self.model))

    @Slot()
    def _on_address(self) -> None:
        self.models.clear()
        self.show_status("")
        self.edited.emit(self.values.address)
        self._refresh()

    @Slot()
    def _request_models(self) -> None:
        if self.values.address:
            self.modelsRequested.emit(self.values)

    @Slot()
    def _connect(self) -> None:
        if self.model:
            self.connectRequested.emit(self.values, self.model)

    @Slot()
    def _forget(self) -> None:
        self.forgetRequested.emit(self.values)
