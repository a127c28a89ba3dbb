"""Export dialog: an image of any size and theme, data, or the whole run as a page or recording."""

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

from decodescope.app.storage.exported_files import CSV, JSON
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.inputs import ComboBox, DoubleSpinBox, SpinBox
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.widget_pictures import PictureOptions
from decodescope.resources.language import mark, tr

PNG, SVG, HTML, TRACE = "png", "svg", "html", "decodescope"


class ExportFormat(NamedTuple):
    """A file format of the export."""

    title: str
    save_title: str
    """Title of the save dialog."""
    filter_title: str
    description: str = ""


_SHARP = mark("Vector graphics: sharp at any size, with searchable text.")
_ROWS = mark("One line per row, in full precision; for spreadsheets.")
_OBJECTS = mark("One object per row, in full precision; for programs.")
_PAGE = mark(
    "One file that opens in any browser, offline and without this program: the text, the alternatives "
    "of every token, and why each was chosen."
)
_RECORDED = mark("One file that this program can open again: every view of the run, without its model.")
EXPORT_FORMATS = {
    PNG: ExportFormat(mark("Image (PNG)"), mark("Save an image"), mark("Images")),
    SVG: ExportFormat(mark("Drawing (SVG)"), mark("Save a drawing"), mark("Drawings"), _SHARP),
    CSV: ExportFormat(mark("Data (CSV)"), mark("Save data"), mark("Tables"), _ROWS),
    JSON: ExportFormat(mark("Data (JSON)"), mark("Save data"), mark("Tables"), _OBJECTS),
    HTML: ExportFormat(mark("Web page (HTML)"), mark("Save the run"), mark("Web pages"), _PAGE),
    TRACE: ExportFormat(mark("Recording (DECODESCOPE)"), mark("Save the run"), mark("Recordings"), _RECORDED),
}
_SMALLEST_SCALE, _LARGEST_SCALE = 0.5, 8.0
_THEMES = ((mark("As shown"), ""), (mark("Light"), "light"), (mark("Dark"), "dark"))
_SMALLEST, _LARGEST = 120, 10_000
"""Limits of an image side, in pixels."""
_WIDTH = 460
"""Smallest width of the dialog, in pixels."""
_NO_LABEL = " "
"""Label of a row that continues the one above."""


class ExportTarget(NamedTuple):
    """Something that can be exported, and the file formats it supports."""

    name: str
    title: str
    formats: tuple[str, ...]
    size: QSize
    is_fixed: bool = False
    """Whether its size and theme are fixed."""


class ExportDialog(BaseDialog):
    """Export dialog. Emits `chosen(offer name, format, Pose)` on Save and `copyRequested` with the same arguments on
    Copy.
    """

    chosen = Signal(str, str, object)
    copyRequested = Signal(str, str, object)

    def __init__(self, offers: Sequence[ExportTarget], parent: QWidget | None = None) -> None:
        super().__init__(parent, "exportDialog", tr("Export"))
        self.offers = tuple(offers)
        self.content_combo, self.format_combo, self.theme = (ComboBox(self) for _ in range(3))
        self.width_box, self.height_box = (_pixels(self, name) for name in (tr("Width"), tr("Height")))
        self.scale = _scale(self)
        self.full_height_box = QCheckBox(tr("Full height"), self)
        self.escape_formulas_box = QCheckBox(tr("Escape formula-like text"), self)
        self.description = set_up(PlainLabel(self, wordWrap=True), role="muted")
        self._fill()
        self._lay_out()
        self._connect()
        self._on_content_changed()

    @property
    def offer(self) -> ExportTarget:
        """The selected offer."""
        return self.offers[self.content_combo.currentIndex()]

    def _fill(self) -> None:
        for offer in self.offers:
            self.content_combo.addItem(offer.title)
        for title, name in _THEMES:
            self.theme.addItem(tr(title), name)
        self.full_height_box.setToolTip(
            tr("Include the parts that would need scrolling. An SVG always shows everything.")
        )

        self.escape_formulas_box.setChecked(True)
        self.escape_formulas_box.setToolTip(
            tr(
                "A text that starts with =, +, - or @ gets a leading apostrophe, because a spreadsheet "
                "would run it as a formula."
            )
        )

    def _lay_out(self) -> None:
        self._size = QWidget(self)
        arrange(QHBoxLayout(self._size), self.width_box, PlainLabel("×", self), self.height_box, STRETCH, margins=0)
        self._options_heading = set_up(PlainLabel("", self), role="heading")
        form = self._form = QFormLayout()
        for title, field in (
            ("", set_up(PlainLabel(tr("What to export").upper(), self), role="heading")),
            (tr("Content"), self.content_combo),
            (tr("Format"), self.format_combo),
            (_NO_LABEL, self.description),
            ("", self._options_heading),
            (tr("Size"), self._size),
            (_NO_LABEL, self.full_height_box),
            (tr("Scale"), self.scale),
            (tr("Theme"), self.theme),
            (_NO_LABEL, self.escape_formulas_box),
        ):
            if not title:  # a section's head, across both columns
                form.addRow(field)
                continue
            label = PlainLabel(title.strip(), self)
            label.setMinimumWidth(label.fontMetrics().horizontalAdvance(tr("Theme")))
            label.setBuddy(field)
            form.addRow(label, field)
        self.description.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.buttons = QDialogButtonBox(self)
        self.save = self.buttons.addButton(tr("Save…"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.save.setDefault(True)
        self.copy = self.buttons.addButton(tr("Copy"), QDialogButtonBox.ButtonRole.ActionRole)
        self.buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        arrange(QVBoxLayout(self), form, STRETCH, self.buttons, margins=(20, 16, 20, 16), spacing=14)
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
        """Size, scale and theme of the image."""
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
        """Show only the options that apply to the selected file format, and the resulting image size."""
        kind, is_free = self.format_combo.currentData(), not self.offer.is_fixed
        for part in (self._size, self.full_height_box, self.theme):
            self._form.setRowVisible(part, kind in (PNG, SVG) and is_free)
        self._form.setRowVisible(self.scale, kind == PNG)
        self._form.setRowVisible(self.escape_formulas_box, kind == CSV)
        heading = {PNG: tr("Image"), SVG: tr("Drawing") if is_free else "", CSV: tr("Table")}.get(kind, "")
        self._options_heading.setText(heading.upper())
        self._form.setRowVisible(self._options_heading, bool(heading))
        self.full_height_box.setEnabled(kind == PNG)
        self.height_box.setEnabled(kind == PNG and not self.full_height_box.isChecked())
        self.copy.setEnabled(kind in (PNG, CSV, JSON))
        self.copy.setText(tr("Copy"))
        self.description.setText(tr(EXPORT_FORMATS[kind].description) or self._size_text())

    def _size_text(self) -> str:
        pose = self.pose
        width, height = (round(side * pose.scale) for side in pose.size.toTuple())
        if pose.expands_scrolled:
            return tr("{width:,} pixels wide, full height").format(width=width)
        return tr("{width:,} × {height:,} pixels").format(width=width, height=height)

    @Slot()
    def _on_save(self) -> None:
        self.chosen.emit(self.offer.name, self.format_combo.currentData(), self.pose)
        self.close()

    @Slot()
    def _on_copy(self) -> None:
        """Copy the export and confirm it on the button."""
        self.copyRequested.emit(self.offer.name, self.format_combo.currentData(), self.pose)
        self.copy.setText(tr("Copied"))


def _pixels(parent: QWidget, name: str) -> QSpinBox:
    box = set_up(SpinBox(parent), accessible_name=name)
    box.setRange(_SMALLEST, _LARGEST)
    return box


def _scale(parent: QWidget) -> QDoubleSpinBox:
    box = set_up(DoubleSpinBox(parent), accessible_name=tr("Scale"))
    box.setRange(_SMALLEST_SCALE, _LARGEST_SCALE)
    box.setSingleStep(0.5)
    box.setDecimals(2)
    box.setSuffix(" ×")
    box.setValue(2.0)
    return box
