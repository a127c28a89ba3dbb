"""What stands around the text: the scores and the choice of texts above it, the key to its colours below."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QVBoxLayout

from app.state.filling import AS_SET
from app.theme.theme import Theme
from app.views.base import View
from app.views.shared.empty_page import offer_on
from app.views.tokens.area import TokenArea
from app.views.tokens.headings import EMPTY, SequenceChips, empty_words, is_waiting
from app.views.tokens.look_choice import LookChoice
from app.views.tokens.media_strip import MediaStrip
from app.views.tokens.score_strip import ScoreStrip
from app.widgets.legend import Legend
from resources.language import tr


class AroundText(QObject):
    """Comes and goes with what the area shows, and leaves it most of the room."""

    def __init__(self, view: View, area: TokenArea, legend: Legend, look_choice: LookChoice) -> None:
        super().__init__(view)
        self.chips, self.score, self.media = SequenceChips(view), ScoreStrip(view), MediaStrip(view)
        self.offer = offer_on(view, area, tr("Run this prompt"), AS_SET, lambda: empty_words(area.run))
        self._area, self._legend, self._look_choice = area, legend, look_choice
        self._is_presenting = False
        self._column = QVBoxLayout(view)
        self._column.setSpacing(0)
        self._column.setContentsMargins(0, 0, 0, 0)
        for part in (self.media, self.score, self.chips, area, legend):
            self._column.addWidget(part)
        self._column.setStretchFactor(area, 1)
        self.chips.chosen.connect(view.signals.sequenceActivated)
        self.score.chosen.connect(view.signals.tokenActivated)
        self.media.wanted.connect(view.signals.mediumWanted)
        area.arranged.connect(self.arrange)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        for part in (self._legend, self.chips, self.score, self.media, self.offer):
            part.set_theme(theme)
        side = theme.px(26)
        self.chips.setContentsMargins(side, theme.px(10), side, theme.px(2))
        self._legend.setFixedHeight(theme.px(36))
        self._legend.setContentsMargins(side, 0, side, 0)

    def set_presenting(self, on: bool) -> None:
        """The key to the colours is for who sits close by."""
        self._is_presenting = on

    @Slot()
    def arrange(self) -> None:
        """Show what the area has something of."""
        run, page = self._area.run, self._area.page
        before = self.chips.isHidden(), self._legend.isHidden()
        self.media.show_run(run)
        self.chips.show_run(run, hidden=page.side_by_side)
        waits = is_waiting(run)
        self.offer.offer(not (page.has_text or waits or self._is_presenting), about=tr(EMPTY))
        has_key = page.has_text or (waits and not self._legend.isHidden())  # nothing is laid out anew for a beginning
        self._legend.setVisible(has_key and not self._is_presenting)
        self._legend.set_hint(self._look_choice.hint())
        if before != (self.chips.isHidden(), self._legend.isHidden()):
            self._column.activate()  # at once: the page is never painted over a place that it does not have
