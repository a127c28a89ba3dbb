"""The window “Why do they differ?”: two runs, near misses of a greedy text, and whether drafts are lossless."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QDialogButtonBox, QHBoxLayout, QVBoxLayout, QWidget

from decodescope.app.features.differences.view.model_check_pages import DraftPage, NearMissPage
from decodescope.app.features.differences.view.run_pair_page import RunPairPage
from decodescope.app.widgets.building import STRETCH, arrange
from decodescope.app.widgets.buttons import SegmentedControl
from decodescope.app.widgets.dialog import BaseDialog, page_scroll_area
from decodescope.resources.language import tr

SIZE = (900, 700)
"""Initial size in pixels, if the screen is large enough."""
RUNS, NEAR_MISSES, DRAFTS = "runs", "nearMisses", "drafts"


class DifferenceDialog(BaseDialog):
    """The window; not modal, deleted on close."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "differenceDialog", tr("Why do they differ?"))
        self.runs, self.near_misses, self.drafts = RunPairPage(self), NearMissPage(self), DraftPage(self)
        self._areas: dict[str, QWidget] = {
            RUNS: self.runs,
            NEAR_MISSES: page_scroll_area(self.near_misses, tr("Near misses"), self),
            DRAFTS: page_scroll_area(self.drafts, tr("Is it lossless?"), self),
        }
        choices = ((RUNS, tr("Two runs")), (NEAR_MISSES, tr("Near misses")), (DRAFTS, tr("Is it lossless?")))
        self.tabs = SegmentedControl(choices, tr("Page"), self, wraps=True)
        self.tabs.chosen.connect(self.show_page)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        pages = [(page, 1) for page in self._areas.values()]
        foot = arrange(QHBoxLayout(), (self.runs.foot, 1), STRETCH, buttons, spacing=8)
        arrange(QVBoxLayout(self), self.tabs, *pages, foot, margins=(20, 16, 20, 16), spacing=12)
        self.show_page(RUNS)

    @Slot(str)
    def show_page(self, name: str) -> None:
        """Show a page by name."""
        self.tabs.set_value(name)
        if not self.isVisible():
            self.tabs.focus_value()
        for each, page in self._areas.items():
            page.setVisible(each == name)
        self.runs.foot.setVisible(name == RUNS)
