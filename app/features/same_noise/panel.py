"""The window of the pages, separate from the main window."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QDialogButtonBox, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from decodescope.app.features.same_noise.state import PAGES, PageName
from decodescope.app.features.same_noise.view.atlas_page import AtlasPage
from decodescope.app.features.same_noise.view.effects_page import EffectsPage
from decodescope.app.features.same_noise.view.page import NoisePage
from decodescope.app.features.same_noise.view.twin_page import TwinPage
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.buttons import SegmentedControl
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.resources.language import tr

SIZE = (1080, 760)
"""Initial size in pixels, if the screen is large enough."""


class SameNoiseWindow(BaseDialog):
    """Three pages; not modal, deleted on close. `pageChanged(name)`: another page is shown."""

    pageChanged = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "sameNoiseWindow", tr("Other settings, same noise"))
        self.atlas, self.effects, self.twin = AtlasPage(self), EffectsPage(self), TwinPage(self)
        self.pages: dict[PageName, NoisePage] = dict(zip(PAGES, (self.atlas, self.effects, self.twin), strict=True))
        titles = (tr("Atlas"), tr("What each setting did"), tr("Twin"))
        self.choice = SegmentedControl(tuple(zip(PAGES, titles, strict=True)), tr("Page"), self, wraps=True)
        self.choice.chosen.connect(self.show_page)
        self._stack = QStackedWidget(self)
        for page in self.pages.values():
            self._stack.addWidget(page)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        top = arrange(QHBoxLayout(), (self.choice, 1), margins=(20, 16, 20, 0))
        buttons.setContentsMargins(20, 8, 20, 16)
        arrange(QVBoxLayout(self), top, (self._stack, 1), buttons, margins=0, spacing=0)
        self.resize(*SIZE)

    @property
    def page_name(self) -> PageName:
        """The name of the shown page."""
        return next(name for name in PAGES if name == self.choice.value)

    @Slot(str)
    def show_page(self, name: PageName) -> None:
        """Show a page."""
        self.choice.set_value(name)
        if not self.isVisible():
            self.choice.focus_value()
        self._stack.setCurrentWidget(self.pages[name])
        self.pageChanged.emit(name)

    @Slot()
    def wording_changed(self) -> None:
        """Update the texts after a change of the level of detail."""
        for page in self.pages.values():
            page.wording_changed()
