"""Window of the preference lab."""

from __future__ import annotations

from PySide6.QtWidgets import QDialogButtonBox, QVBoxLayout, QWidget

from decodescope.app.features.labs.view.preference.view import PreferenceView
from decodescope.app.features.labs.view.speed.view import SpeedView
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.resources.language import tr


class PreferenceLabDialog(BaseDialog):
    """Window of the preference lab; not modal, so runs continue in the main window."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "preferenceLab", tr("Preference lab"))
        self.view = PreferenceView(self)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        buttons.setContentsMargins(20, 0, 20, 16)
        arrange(QVBoxLayout(self), self.view, buttons, margins=0)
        self.resize(960, 720)

    def wording_changed(self) -> None:
        """Do nothing: the lab's sentences are the same at every level of detail."""


SIZE = (1080, 760)
"""Initial size in pixels at 100 %, if the screen is large enough."""


class SpeedLabDialog(BaseDialog):
    """Window of the speed lab; not modal, deleted on close."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "speedLab", tr("Speed lab: measure ways to lower latency"))
        self.view = SpeedView(self)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        arrange(QVBoxLayout(self), (self.view, 1), buttons, margins=(20, 16, 20, 16), spacing=14)
        self.resize(*SIZE)

    def wording_changed(self) -> None:
        """Update the texts after a change of the level of detail."""
        self.view.wording_changed()
