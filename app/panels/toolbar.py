"""The toolbar: model, strategy, cache, tours, seed, export, Run."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from app.panels.draft_picker import DraftPicker
from app.panels.seed import SeedBox
from app.panels.shortcuts import key_of
from app.theme.theme import Theme, Themeable
from app.widgets.icons import IconButton
from app.widgets.picker_combo import PickerCombo
from app.widgets.plain_text import RichLabel
from app.widgets.run_button import RunButton
from resources.language import tr

BRAND_MIN_WIDTH, TOURS_MIN_WIDTH, KEYS_MIN_WIDTH, EXPORT_MIN_WIDTH = 1000, 860, 960, 660
"""Widths (at 100 %) from which there is room for the program's name, for the tours' button, for the word “Seed” and
the key of Run, and for the export button; the menus have tours and export too."""


class Toolbar(QFrame):
    """Only a row of parts; the window connects them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("toolbar")
        self.setProperty("role", "bar")
        self._theme: Theme | None = None
        self.brand = RichLabel()
        self.brand.setProperty("role", "brand")
        self.brand.setAccessibleName("Decodescope")
        self.model = PickerCombo("modelCombo", tr("Model"), 176)
        self.strategy = PickerCombo("strategyCombo", tr("Strategy"), 196)
        self.draft = DraftPicker("draftCombo", tr("Draft model"), 150)
        self.draft.hide()
        self.cache = PickerCombo("cacheCombo", tr("Cache"), 156)
        self.seed = SeedBox()
        self.export_button = IconButton(
            "save", tr("Save or copy what is shown… ({key})").format(key=key_of("save_picture"))
        )
        self.export_button.setObjectName("exportButton")
        self.tours_button = QToolButton()
        self.tours_button.setObjectName("toursButton")
        self.tours_button.setText(tr("Tours"))
        self.tours_button.setToolTip(tr("Guided tours ({key})").format(key=key_of("choose_tour")))
        self.run_button = RunButton()
        self.run_button.setObjectName("runButton")
        self._lay_out()

    @property
    def pickers(self) -> tuple[PickerCombo, ...]:
        """Model, its draft where there is one, strategy and cache."""
        return (self.model, self.draft, self.strategy, self.cache)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self._theme = theme
        self.brand.setText(f'Decode<span style="color:{theme.accent}">scope</span>')
        themed: tuple[Themeable, ...] = (*self.pickers, self.seed, self.export_button, self.run_button)
        for part in themed:
            part.set_theme(theme)
        self.tours_button.setFixedHeight(theme.px(34))
        self.export_button.setFixedSize(theme.px(38), theme.px(34))
        self._row.setContentsMargins(theme.space(16), 0, theme.space(16), 0)
        self.setFixedHeight(theme.px(38) + theme.space(14))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """In a narrow window the name gives way to what can be pressed, then words that the tips say too."""
        width = self.width() / self._theme.scale if self._theme else BRAND_MIN_WIDTH
        self.brand.setVisible(width >= BRAND_MIN_WIDTH)
        self.seed.label.setVisible(width >= KEYS_MIN_WIDTH)
        self.tours_button.setVisible(width >= TOURS_MIN_WIDTH)
        self.export_button.setVisible(width >= EXPORT_MIN_WIDTH)
        self.run_button.set_compact(width < KEYS_MIN_WIDTH)
        self._distribute_width()

    def event(self, event: QEvent) -> bool:
        """Share the room out again when a part wants more or less of it."""
        if event.type() == QEvent.Type.LayoutRequest and self._theme is not None:
            self._distribute_width()
        return super().event(event)

    def _distribute_width(self) -> None:
        """Give the pickers what room the other parts leave: what their names need first, then what else they want."""
        pickers = [picker for picker in self.pickers if not picker.isHidden()]
        others = [
            part
            for part in (self.brand, self.tours_button, self.seed, self.export_button, self.run_button)
            if not part.isHidden()
        ]
        margins = self._row.contentsMargins()
        gaps = self._row.spacing() * (len(pickers) + len(others) + 2)
        room = self.width() - margins.left() - margins.right() - gaps - sum(part.sizeHint().width() for part in others)
        for picker, width in zip(
            pickers, _distribute([(p.title_width, p.preferred_width) for p in pickers], room), strict=True
        ):
            picker.set_assigned_width(width)

    def _lay_out(self) -> None:
        row = self._row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(8)
        row.addWidget(self.brand)
        row.addSpacing(8)
        for picker in self.pickers:
            picker.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
            row.addWidget(picker, 0, Qt.AlignmentFlag.AlignVCenter)
        for part in (self.brand, self.seed):
            part.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        row.addStretch(1)
        for pressed in (self.tours_button, self.seed, self.export_button, self.run_button):
            row.addWidget(pressed, 0, Qt.AlignmentFlag.AlignVCenter)


def _distribute(widths: Sequence[tuple[int, int]], room: int) -> list[int | None]:
    """Pixels for each of (least, wanted) in `room`; None for each where all get what they want."""
    if sum(wanted for _least, wanted in widths) <= room:
        return [None] * len(widths)
    least = [min(wish) for wish in widths]
    spare = room - sum(least)
    if spare < 0:
        return [max(0, width * room // max(1, sum(least))) for width in least]
    missing = [max(0, wanted - width) for (_least, wanted), width in zip(widths, least, strict=True)]
    return [width + spare * more // max(1, sum(missing)) for width, more in zip(least, missing, strict=True)]
