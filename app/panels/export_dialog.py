"""What to save, and how: a part of the window as a picture of any size and theme, or its figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.views.shared.portrait import Pose

PNG, SVG, CSV = "png", "svg", "csv"
_KINDS = (("Picture (PNG)", PNG), ("Picture (SVG)", SVG), ("Figures (CSV)", CSV))
_SCALES = (1, 2, 3, 4)
_THEMES = (("As shown", ""), ("Light", "light"), ("Dark", "dark"))
_SMALLEST, _LARGEST = 120, 10_000
"""Pixels of a side."""


class Offer(NamedTuple):
    """One thing that can be saved."""

    title: str
    size: QSize
    has_figures: bool = False


class ExportDialog(QDialog):
    """`chosen(number of the offer, kind, Pose)` once Save was pressed."""

    chosen = Signal(int, str, object)

    def __init__(self, offers: Sequence[Offer], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("exportDialog")
        self.setWindowTitle("Save a picture or figures")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._offers = tuple(offers)
        self.what, self.kind, self.scale, self.theme = (QComboBox(self) for _ in range(4))
        self.width_box, self.height_box = (_pixels(self, name) for name in ("Width", "Height"))
        self.whole = QCheckBox("as high as all of it", self)
        self._told = QLabel(self)
        self._told.setProperty("role", "muted")
        self._fill()
        self._lay_out()
        self._connect()
        self._on_what()

    def _fill(self) -> None:
        for offer in self._offers:
            self.what.addItem(offer.title)
        for factor in _SCALES:
            self.scale.addItem(f"{factor} ×", factor)
        for title, name in _THEMES:
            self.theme.addItem(title, name)
        self.scale.setCurrentIndex(1)
        self.whole.setToolTip("What would have to be scrolled is in the picture too. An SVG always shows all of it.")

    def _lay_out(self) -> None:
        size = QHBoxLayout()
        for part in (self.width_box, QLabel("×", self), self.height_box, self.whole):
            size.addWidget(part)
        size.addStretch(1)
        form = QFormLayout()
        for title, field in (("What", self.what), ("As", self.kind), ("Size", size), ("Scale", self.scale),
                             ("Theme", self.theme), ("", self._told)):  # fmt: skip
            form.addRow(title, field)
        self.buttons = QDialogButtonBox(self)
        self.save = self.buttons.addButton("Save…", QDialogButtonBox.ButtonRole.AcceptRole)
        self.buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(14)
        column.addLayout(form)
        column.addWidget(self.buttons)

    def _connect(self) -> None:
        self.what.currentIndexChanged.connect(self._on_what)
        for box in (self.kind, self.scale):
            box.currentIndexChanged.connect(self._show)
        for pixels in (self.width_box, self.height_box):
            pixels.valueChanged.connect(self._show)
        self.whole.toggled.connect(self._show)
        self.buttons.accepted.connect(self._on_save)
        self.buttons.rejected.connect(self.close)

    @property
    def pose(self) -> Pose:
        """How the picture is to look."""
        size = QSize(self.width_box.value(), self.height_box.value())
        is_svg = self.kind.currentData() == SVG
        scale = 1.0 if is_svg else float(self.scale.currentData())
        return Pose(size, self.whole.isChecked() or is_svg, scale, self.theme.currentData())

    @Slot()
    def _on_what(self) -> None:
        offer = self._offers[self.what.currentIndex()]
        kind = self.kind.currentData()
        self.kind.blockSignals(True)
        self.kind.clear()
        for title, name in _KINDS:
            if name != CSV or offer.has_figures:
                self.kind.addItem(title, name)
        self.kind.setCurrentIndex(max(0, self.kind.findData(kind)))
        self.kind.blockSignals(False)
        self.width_box.setValue(offer.size.width())
        self.height_box.setValue(offer.size.height())
        self._show()

    @Slot()
    def _show(self) -> None:
        """Only what matters for that kind can be set; how large the file's picture will be."""
        kind, pose = self.kind.currentData(), self.pose
        for part in (self.width_box, self.height_box, self.theme):
            part.setEnabled(kind != CSV)
        self.whole.setEnabled(kind == PNG)
        self.scale.setEnabled(kind == PNG)
        self.height_box.setEnabled(kind == PNG and not self.whole.isChecked())
        width, height = (round(side * pose.scale) for side in pose.size.toTuple())
        high = "as many as it takes" if pose.whole else f"{height:,}"
        self._told.setText("" if kind == CSV else f"{width:,} × {high} pixels")

    @Slot()
    def _on_save(self) -> None:
        self.chosen.emit(self.what.currentIndex(), self.kind.currentData(), self.pose)
        self.close()


def _pixels(parent: QWidget, name: str) -> QSpinBox:
    box = QSpinBox(parent)
    box.setRange(_SMALLEST, _LARGEST)
    box.setAccessibleName(name)
    return box
