"""What a person sets about presenting: whether choices are seen happening, and heard."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from app.storage.settings import AppearanceSection
from app.widgets.animation.allowed import prefers_reduced_motion
from app.widgets.plain_text import caption
from app.widgets.sound_player import sound_unsupported_reason
from app.widgets.wrapped_label import WrappedLabel
from resources.language import tr


class StageSettings(QWidget):
    """Two boxes; one that cannot be had says why. `changed` when either was ticked."""

    changed = Signal()

    def __init__(self, settings: AppearanceSection) -> None:
        super().__init__()
        self._settings = settings
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        still = tr("This system asks for less motion.") if prefers_reduced_motion() else ""
        self.animated = self._add(
            "animatedChoice", tr("Let choices be seen happening on the stage"), settings.animated, still
        )
        self.animated.toggled.connect(self._on_animated)
        self.sounds = self._add(
            "soundsChoice",
            tr("A sound when a draft is accepted or refused, and at the end"),
            settings.sounds,
            sound_unsupported_reason(),
        )
        self.sounds.toggled.connect(self._on_sounds)

    def _add(self, name: str, title: str, on: bool, unavailable_reason: str) -> QCheckBox:
        box = QCheckBox(caption(title))
        box.setObjectName(name)
        box.setChecked(on and not unavailable_reason)
        box.setEnabled(not unavailable_reason)
        self._column.addWidget(box)
        if unavailable_reason:
            box.setAccessibleDescription(unavailable_reason)
            label = WrappedLabel(unavailable_reason)
            label.setProperty("role", "muted")
            self._column.addWidget(label)
        return box

    @Slot(bool)
    def _on_animated(self, on: bool) -> None:
        self._settings.animated = on
        self.changed.emit()

    @Slot(bool)
    def _on_sounds(self, on: bool) -> None:
        self._settings.sounds = on
        self.changed.emit()
