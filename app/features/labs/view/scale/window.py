"""The scale lab's window: pages for memory, pipelines, collectives, residual memory, and real processes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QDialogButtonBox, QHBoxLayout, QVBoxLayout, QWidget

from decodescope.app.features.labs.view.scale.memory_page import ScaleMemoryPage
from decodescope.app.features.labs.view.scale.pipeline_page import PipelinePage
from decodescope.app.features.labs.view.scale.residual_page import ResidualPage
from decodescope.app.features.labs.view.scale.ring_page import RingPage
from decodescope.app.features.labs.view.scale.run_page import DistributedRunPage
from decodescope.app.features.labs.view.scale.scale_page import ScalePage
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.buttons import MenuButton, SegmentedControl
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.resources.language import tr

WINDOW_SIZE = (1120, 720)
"""Preferred size in pixels at 100 %."""


class ScaleView(BaseDialog):
    """A window beside the main window; deleted when closed."""

    exportWanted = Signal()
    copyWanted = Signal()
    pageChanged = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "scaleView", tr("Scale lab: one model on many devices"))
        self.memory, self.pipeline, self.run = ScaleMemoryPage(self), PipelinePage(self), DistributedRunPage(self)
        self.ring, self.residual = RingPage(self), ResidualPage(self)
        self.pages: dict[str, ScalePage] = {
            "memory": self.memory,
            "pipeline": self.pipeline,
            "ring": self.ring,
            "residual": self.residual,
            "run": self.run,
        }
        titles = (
            ("memory", tr("Memory")),
            ("pipeline", tr("Pipeline")),
            ("ring", tr("Collectives")),
            ("residual", tr("ZeRO-R")),
            ("run", tr("Run")),
        )
        self.choice = SegmentedControl(titles, tr("Page"), self, wraps=True)
        self.choice.chosen.connect(self.show_page)
        self._lay_out()
        self.show_page("memory")
        self.set_theme(self._theme)

    @Slot(str)
    def show_page(self, name: str) -> None:
        """Show one of the pages."""
        self.choice.set_value(name)
        if not self.isVisible():
            self.choice.focus_value()
        for other, page in self.pages.items():
            page.setVisible(other == name)
        self.pageChanged.emit()

    @property
    def page(self) -> ScalePage:
        """The shown page."""
        return self.pages[self.choice.value]

    @Slot()
    def wording_changed(self) -> None:
        """Rebuild all texts, for example at another level of detail."""
        for page in self.pages.values():
            page.wording_changed()

    def _lay_out(self) -> None:
        column = arrange(QVBoxLayout(self), margins=(20, 16, 20, 16), spacing=14)
        takes = ((tr("Save as picture or data…"), self.exportWanted.emit), (tr("Copy text"), self.copyWanted.emit))
        self.export_button = MenuButton("scaleTake", tr("Export"), tr("Export this page"), takes, self)
        row = arrange(QHBoxLayout(), (self.choice, 1), (self.export_button, 0, Qt.AlignmentFlag.AlignTop))
        column.addLayout(row)
        for page in self.pages.values():
            column.addWidget(page, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        column.addWidget(buttons)
        self.resize(*WINDOW_SIZE)
