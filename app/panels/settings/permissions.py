"""What single models have been allowed to do, and the way to take it back."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QListWidget, QPushButton, QVBoxLayout, QWidget

from app.panels.settings.fields import make_remark
from app.storage.settings import ModelsSection
from resources.language import mark, tr

_PERMISSIONS = {"allow_pickle": mark("pickled weights"), "allow_remote_code": mark("code of its own")}


class PermissionSettings(QWidget):
    """A list of models with what each may do; a sentence where there is none."""

    changed = Signal(str)

    def __init__(self, settings: ModelsSection) -> None:
        super().__init__()
        self._settings = settings
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        self.allowed = QListWidget()
        self.allowed.setObjectName("allowedList")
        self.allowed.setAccessibleName(tr("Permissions of single models"))
        self.allowed.setFixedHeight(84)
        self.revoke = QPushButton(tr("Take the permission back"))
        self.revoke.setObjectName("revokeButton")
        self.revoke.clicked.connect(self._on_revoke)
        self.none_allowed = make_remark(tr("No model may load pickled weights or run code of its own."))
        column.addWidget(self.none_allowed)
        column.addWidget(self.allowed)
        column.addWidget(self.revoke, 0, Qt.AlignmentFlag.AlignLeft)
        self._fill()

    def _fill(self) -> None:
        self.allowed.clear()
        for key, words in _PERMISSIONS.items():
            for model in getattr(self._settings, key):
                self.allowed.addItem(f"{model}: {tr(words)}")
                self.allowed.item(self.allowed.count() - 1).setData(Qt.ItemDataRole.UserRole, (key, model))
        self.none_allowed.setVisible(not self.allowed.count())
        for part in (self.allowed, self.revoke):
            part.setVisible(bool(self.allowed.count()))

    @Slot()
    def _on_revoke(self) -> None:
        item = self.allowed.currentItem()
        if item is not None:
            key, model = item.data(Qt.ItemDataRole.UserRole)
            getattr(self._settings, key).remove(model)
            self._fill()
            self.changed.emit("models")
