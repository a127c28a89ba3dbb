"""What a person sets about presenting: whether choices are seen happening, and heard."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from app.storage.settings import Appearance
from app.widgets.animation.allowed import system_reduces
from app.widgets.plain_text import caption
from app.widgets.sound_player import why_silent
from app.widgets.wrapped_label import WrappedLabel
from resources.language import tr


class StageSettings(QWidget):
    """Two boxes; one that cannot be had says why. `changed` when either was ticked."""

    changed = Signal()

    def __init__(self, kept: Appearance) -> None:
        super().__init__()
        self._kept = kept
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        still = tr("This system asks for less motion.") if system_reduces() else ""
        self.animated = self._add(
            "animatedChoice", tr("Let choices be seen happening on the stage"), kept.animated, still
        )
        self.animated.toggled.connect(self._on_animated)
        self.sounds = self._add(
            "soundsChoice", tr("A sound when a draft is accepted or refused, and at the end"), kept.sounds, why_silent()
        )
        self.sounds.toggled.connect(self._on_sounds)

    def _add(self, name: str, title: str, on: bool, why_not: str) -> QCheckBox:
        box = QCheckBox(caption(title))
        box.setObjectName(name)
        box.setChecked(on and not why_not)
        box.setEnabled(not why_not)
        self._column.addWidget(box)
        if why_not:
            box.setAccessibleDescription(why_not)
            label = WrappedLabel(why_not)
            label.setProperty("role", "muted")
            self._column.addWidget(label)
        return box

    @Slot(bool)
    def _on_animated(self, on: bool) -> None:
        self._kept.animated = on
        self.changed.emit()

    @Slot(bool)
    def _on_sounds(self, on: bool) -> None:
        self._kept.sounds = on
        self.changed.emit()
