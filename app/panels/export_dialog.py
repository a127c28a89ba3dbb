"""What to take out of the window, and how: a picture of any size and theme, figures, or the whole run as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.storage.exported_files import CSV, JSON
from app.widgets.dialog import BaseDialog
from app.widgets.inputs import ComboBox, DoubleSpinBox, SpinBox
from app.widgets.plain_text import PlainLabel
from app.widgets.widget_pictures import PictureOptions
from resources.language import mark, tr

PNG, SVG, HTML, TRACE = "png", "svg", "html", "decodescope"


class ExportFormat(NamedTuple):
    """One kind of file."""

    title: str
    save_title: str
    """What a dialog that saves one is called."""
    filter_title: str
    description: str = ""


_SHARP = mark("Lines and letters: sharp at any size, and its text can be searched.")
_ROWS = mark("A line for each row, as exact as they are; for a spreadsheet.")
_OBJECTS = mark("An object for each row, as exact as they are; for a program.")
_PAGE = mark(
    "One file that opens in any browser, without this program and without a network: the text, what else every token "
    "could have been, and why it was chosen."
)
_RECORDED = mark("One file that this program opens again: every view of the run as it was, without its model.")
EXPORT_FORMATS = {
    PNG: ExportFormat(mark("Picture (PNG)"), mark("Save a picture"), mark("Pictures")),
    SVG: ExportFormat(mark("Drawing (SVG)"), mark("Save a drawing"), mark("Drawings"), _SHARP),
    CSV: ExportFormat(mark("Figures (CSV)"), mark("Save figures"), mark("Tables"), _ROWS),
    JSON: ExportFormat(mark("Figures (JSON)"), mark("Save figures"), mark("Tables"), _OBJECTS),
    HTML: ExportFormat(mark("Web page (HTML)"), mark("Save the run"), mark("Web pages"), _PAGE),
    TRACE: ExportFormat(mark("Recorded run (DECODESCOPE)"), mark("Save the run"), mark("Recorded runs"), _RECORDED),
}
_SMALLEST_SCALE, _LARGEST_SCALE = 0.5, 8.0
_THEMES = ((mark("As shown"), ""), (mark("Light"), "light"), (mark("Dark"), "dark"))
_SMALLEST, _LARGEST = 120, 10_000
"""Pixels of a side."""
_WIDTH = 460
"""Pixels of the dialog at least."""
_INSET = 5
"""Pixels before a number."""


class ExportTarget(NamedTuple):
    """One thing that can be taken out, as files of those kinds."""

    name: str
    title: str
    formats: tuple[str, ...]
    size: QSize
    is_fixed: bool = False
    """Its size and theme cannot be chosen."""


class ExportDialog(BaseDialog):
    """`chosen(name of the offer, kind, Pose)` once Save was pressed, `copyRequested` with the same once Copy was."""

    chosen = Signal(str, str, object)
    copyRequested = Signal(str, str, object)

    def __init__(self, offers: Sequence[ExportTarget], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("exportDialog")
        self.setWindowTitle(tr("Save or copy what is shown"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.offers = tuple(offers)
        self.content_combo, self.format_combo, self.theme = (ComboBox(self) for _ in range(3))
        self.width_box, self.height_box = (_pixels(self, name) for name in (tr("Width"), tr("Height")))
        self.scale = _scale(self)
        self.full_height_box = QCheckBox(tr("as high as all of it"), self)
        self.escape_formulas_box = QCheckBox(tr("Mark texts that look like formulas"), self)
        self.description = PlainLabel(self, wordWrap=True)
        self.description.setProperty("role", "muted")
        self._fill()
        self._lay_out()
        self._connect()
        self._on_content_changed()

    @property
    def offer(self) -> ExportTarget:
        """What is chosen."""
        return self.offers[self.content_combo.currentIndex()]

    def _fill(self) -> None:
        for offer in self.offers:
            self.content_combo.addItem(offer.title)
        for title, name in _THEMES:
            self.theme.addItem(tr(title), name)
        self.full_height_box.setToolTip(
            tr("What would have to be scrolled is in the picture too. An SVG always shows all of it.")
        )

        self.escape_formulas_box.setChecked(True)
        self.escape_formulas_box.setToolTip(
            tr("A text that begins with =, +, - or @ gets an apostrophe in front: a spreadsheet would run it.")
        )

    def _lay_out(self) -> None:
        self._size = QWidget(self)
        size = QHBoxLayout(self._size)
        size.setContentsMargins(0, 0, 0, 0)
        for part in (self.width_box, PlainLabel("×", self), self.height_box):
            size.addWidget(part)
        size.addStretch(1)
        form = self._form = QFormLayout()
        for title, field in ((tr("What"), self.content_combo), (tr("As"), self.format_combo), ("", self.description), (tr("Size"), self._size),
                             ("", self.full_height_box), ("", self.escape_formulas_box), (tr("Scale"), self.scale),
                             (tr("Theme"), self.theme)):  # fmt: skip
            label = PlainLabel(title, self)
            label.setMinimumWidth(label.fontMetrics().horizontalAdvance(tr("Theme")))
            label.setBuddy(field)
            form.addRow(label, field)
        for box in (self.width_box, self.height_box, self.scale):
            box.lineEdit().setTextMargins(_INSET, 0, 0, 0)
        self.description.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.buttons = QDialogButtonBox(self)
        self.save = self.buttons.addButton(tr("Save…"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.save.setDefault(True)
        self.copy = self.buttons.addButton(tr("Copy"), QDialogButtonBox.ButtonRole.ActionRole)
        self.buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(14)
        column.addLayout(form)
        column.addStretch(1)
        column.addWidget(self.buttons)
        self.setMinimumSize(_WIDTH, self.sizeHint().height())

    def _connect(self) -> None:
        self.content_combo.currentIndexChanged.connect(self._on_content_changed)
        for box in (self.format_combo, self.theme):
            box.currentIndexChanged.connect(self._update_options)
        for number in (self.width_box, self.height_box, self.scale):
            number.valueChanged.connect(self._update_options)
        self.full_height_box.toggled.connect(self._update_options)
        self.copy.clicked.connect(self._on_copy)
        self.buttons.accepted.connect(self._on_save)
        self.buttons.rejected.connect(self.close)

    @property
    def pose(self) -> PictureOptions:
        """How the picture is to look."""
        size = QSize(self.width_box.value(), self.height_box.value())
        is_svg = self.format_combo.currentData() == SVG
        return PictureOptions(size, self.full_height_box.isChecked() or is_svg, 1.0 if is_svg else self.scale.value(),
                    self.theme.currentData(), self.escape_formulas_box.isChecked())  # fmt: skip

    @Slot()
    def _on_content_changed(self) -> None:
        kind = self.format_combo.currentData()
        self.format_combo.blockSignals(True)
        self.format_combo.clear()
        for name in self.offer.formats:
            self.format_combo.addItem(tr(EXPORT_FORMATS[name].title), name)
        self.format_combo.setCurrentIndex(max(0, self.format_combo.findData(kind)))
        self.format_combo.blockSignals(False)
        self.width_box.setValue(self.offer.size.width())
        self.height_box.setValue(self.offer.size.height())
        self._update_options()

    @Slot()
    def _update_options(self) -> None:
        """Only what matters for that kind is there to be set; how large the file's picture will be."""
        kind, is_free = self.format_combo.currentData(), not self.offer.is_fixed
        for part in (self._size, self.full_height_box, self.theme):
            self._form.setRowVisible(part, kind in (PNG, SVG) and is_free)
        self._form.setRowVisible(self.scale, kind == PNG)
        self._form.setRowVisible(self.escape_formulas_box, kind == CSV)
        self.full_height_box.setEnabled(kind == PNG)
        self.height_box.setEnabled(kind == PNG and not self.full_height_box.isChecked())
        self.copy.setEnabled(kind in (PNG, CSV, JSON))
        self.copy.setText(tr("Copy"))
        self.description.setText(tr(EXPORT_FORMATS[kind].description) or self._size_text())

    def _size_text(self) -> str:
        pose = self.pose
        width, height = (round(side * pose.scale) for side in pose.size.toTuple())
        if pose.expands_scrolled:
            return tr("{width:,} × as many as it takes pixels").format(width=width)
        return tr("{width:,} × {height:,} pixels").format(width=width, height=height)

    @Slot()
    def _on_save(self) -> None:
        self.chosen.emit(self.offer.name, self.format_combo.currentData(), self.pose)
        self.close()

    @Slot()
    def _on_copy(self) -> None:
        """The button says that it is done; there is nothing else to be seen of it."""
        self.copyRequested.emit(self.offer.name, self.format_combo.currentData(), self.pose)
        self.copy.setText(tr("Copied"))


def _pixels(parent: QWidget, name: str) -> QSpinBox:
    box = SpinBox(parent)
    box.setRange(_SMALLEST, _LARGEST)
    box.setAccessibleName(name)
    return box


def _scale(parent: QWidget) -> QDoubleSpinBox:
    box = DoubleSpinBox(parent)
    box.setRange(_SMALLEST_SCALE, _LARGEST_SCALE)
    box.setSingleStep(0.5)
    box.setDecimals(2)
    box.setSuffix(" ×")
    box.setValue(2.0)
    box.setAccessibleName(tr("Scale"))
    return box
