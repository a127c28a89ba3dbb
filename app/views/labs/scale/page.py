"""What the pages of the lab have in common: settings to the left, a sentence, and what it speaks of below it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.theme.theme import Theme
from app.views.labs.scale.form import ScaleForm
from app.views.labs.scale.legend import PartLegend
from app.views.labs.settings import lay_out_beside_settings
from app.widgets.wrapped_label import WrappedLabel


class ScalePage(QWidget):
    """`form` takes the settings, `body` what is shown."""

    def __init__(self, settings: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form = ScaleForm(settings, self)
        self.legend = PartLegend(self)
        self.legend.hide()
        self._card = QFrame(self)
        self._card.setProperty("role", "card")
        inside = QVBoxLayout(self._card)
        inside.setContentsMargins(14, 10, 14, 10)
        self.sentence = WrappedLabel("", self._card)
        self.sentence.setObjectName("scaleSentence")
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        inside.addWidget(self.sentence)
        self.body = lay_out_beside_settings(self, self.form, settings)
        self.body.addWidget(self._card)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.form.set_theme(theme)
        self.legend.set_theme(theme)

    def set_sentence(self, text: str) -> None:
        """The sentence above all."""
        self.sentence.setText(text)

    def words_changed(self) -> None:
        """Say it all again: at another depth."""


def horizontal_scroll_area(widget: QWidget) -> QScrollArea:
    """Scrolled from side to side alone."""
    scroll = QScrollArea()
    scroll.setWidgetResizable(True)
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setAccessibleName(widget.accessibleName())
    scroll.setWidget(widget)
    return scroll
