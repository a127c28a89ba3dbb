"""Saved generation configs as chips, with buttons to save, open and export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from decodescope.app.panels.parameter_row import MARGIN
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.flow_layout import FlowLayout, clear_layout
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.resources.language import mark, tr

BUILTIN_PRESETS = {
    mark("Predictable"): mark("Prefers likely words: temperature 0.7, top-p 0.9"),
    mark("Balanced"): mark("Leaves out unlikely words, then draws: the defaults of llama.cpp"),
    mark("Wide choice"): mark("Draws from a hundred words, the likely ones more often: the defaults of KoboldCpp"),
    mark("Surprising"): mark("Draws bold words, but none that make no sense: temperature 1.2, min-p 0.05"),
}
"""Names of the presets shipped with the program, as in their file names, in display order, and what they do."""
EXPORT_PROGRAMS = ("llama.cpp", "KoboldCpp")
"""Programs that settings can be exported for."""


class PresetBar(QWidget):
    """Preset chips. Emits `chosen` with the file of the pressed chip, and one signal for each button."""

    chosen = Signal(object)
    saveRequested = Signal()
    openRequested = Signal()
    deleteRequested = Signal(object)
    exportRequested = Signal(str)
    """Emitted with the name of the program to export the settings for."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        heading = set_up(PlainLabel(tr("PRESETS")), role="heading")
        self.open_button = self._quiet_button(
            tr("Open…"), tr("Open a generation config or settings of llama.cpp or KoboldCpp")
        )
        self.open_button.setObjectName("openPreset")
        self.open_button.clicked.connect(self.openRequested)
        top = arrange(QHBoxLayout(), (heading, 1), self.open_button, margins=0)
        self._chips = FlowLayout()
        arrange(QVBoxLayout(self), top, self._chips, margins=(MARGIN, 0, MARGIN, 0), spacing=4)

    def show_presets(self, shipped: Sequence[tuple[str, Path]], saved: Sequence[tuple[str, Path]]) -> None:
        """Show one chip for each preset; a saved preset replaces a shipped one of the same name."""
        clear_layout(self._chips)
        names = {name for name, _path in saved}
        places = {name: place for place, name in enumerate(BUILTIN_PRESETS)}
        shipped = sorted(shipped, key=lambda preset: places.get(preset[0], len(places)))
        for name, path in (*((n, p) for n, p in shipped if n not in names), *saved):
            self._chips.addWidget(self._chip(name, path, can_delete=name in names))
        save = self._make_chip(tr("+ Save"), tr("Save the settings as a preset"))
        save.setObjectName("savePreset")
        save.clicked.connect(self.saveRequested)
        self._chips.addWidget(save)
        self.export_button = self._make_chip(tr("Export…"), tr("Export the settings for llama.cpp or KoboldCpp"))
        self.export_button.setObjectName("exportPreset")
        self.export_button.clicked.connect(self._on_export)
        self._chips.addWidget(self.export_button)
        self.updateGeometry()

    def _chip(self, name: str, path: Path, can_delete: bool) -> QPushButton:
        title = name if can_delete else tr(name)
        chip = self._make_chip(title, tr("Use the preset “{name}”").format(name=title))
        if not can_delete and name in BUILTIN_PRESETS:
            about = tr(BUILTIN_PRESETS[name])
            set_up(chip, tooltip=tooltip(about), description=about)
        chip.setObjectName(f"preset.{name}")
        chip.setProperty("path", str(path))
        chip.clicked.connect(self._on_chip)
        if can_delete:
            chip.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
            chip.customContextMenuRequested.connect(self._on_menu)
        return chip

    @staticmethod
    def _make_chip(text: str, label: str) -> QPushButton:
        chip = set_up(QPushButton(caption(text)), tooltip=tooltip(label), accessible_name=label, role="chip")
        chip.setCursor(Qt.CursorShape.PointingHandCursor)
        return chip

    @staticmethod
    def _quiet_button(text: str, label: str) -> QPushButton:
        return set_up(QPushButton(caption(text)), role="quiet", tooltip=tooltip(label), accessible_name=label)

    @Slot()
    def _on_chip(self) -> None:
        self.chosen.emit(Path(self.sender().property("path")))

    @Slot()
    def _on_export(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for program in EXPORT_PROGRAMS:
            menu.addAction(caption(program)).triggered.connect(
                lambda _=False, name=program: self.exportRequested.emit(name)
            )
        menu.popup(self.export_button.mapToGlobal(self.export_button.rect().bottomLeft()))

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        chip = self.sender()
        assert isinstance(chip, QPushButton)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        path = Path(chip.property("path"))
        menu.addAction(tr("Delete this preset")).triggered.connect(lambda: self.deleteRequested.emit(path))
        menu.popup(chip.mapToGlobal(position))
