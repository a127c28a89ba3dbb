"""What stands around the text: the scores and the choice of texts above it, the key to its colours below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.state.empty_view import AS_SET
from app.state.run import Run
from app.theme.theme import Theme
from app.views.base import View
from app.views.shared.empty_page import add_fill_button
from app.views.tokens.area import TokenArea
from app.views.tokens.look_choice import ColouringController
from app.views.tokens.token_headings import EMPTY_HINT, SequenceChips, empty_title_and_hint, is_waiting
from app.widgets.legend import ColourLegend
from resources.language import tr

if TYPE_CHECKING:
    from app.state.media import Medium
    from app.views.tokens.media_strip import MediaStrip
    from app.views.tokens.score_strip import ScoreStrip


class TokenViewLayout(QObject):
    """Comes and goes with what the area shows, and leaves it most of the room."""

    def __init__(self, view: View, area: TokenArea, legend: ColourLegend, look_choice: ColouringController) -> None:
        super().__init__(view)
        self.chips = SequenceChips(view)
        self._score_strip: ScoreStrip | None = None
        self._media_strip: MediaStrip | None = None
        self.offer = add_fill_button(view, area, tr("Run this prompt"), AS_SET, lambda: empty_title_and_hint(area.run))
        self._view, self._area, self._legend, self._look_choice = view, area, legend, look_choice
        self._is_presenting = False
        self._theme: Theme | None = None
        self._column = QVBoxLayout(view)
        self._column.setSpacing(0)
        self._column.setContentsMargins(0, 0, 0, 0)
        for part in (self.chips, area, legend):
            self._column.addWidget(part)
        self._column.setStretchFactor(area, 1)
        self.chips.sequenceChosen.connect(view.signals.sequenceActivated)
        area.arranged.connect(self.arrange)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        for part in (self._legend, self.chips, self.offer, *self._strips):
            part.set_theme(theme)
        side = theme.px(26)
        self.chips.setContentsMargins(side, theme.px(10), side, theme.px(2))
        self._legend.setFixedHeight(theme.px(36))
        self._legend.setContentsMargins(side, 0, side, 0)

    def set_presenting(self, on: bool) -> None:
        """The key to the colours is for who sits close by."""
        self._is_presenting = on

    @property
    def _strips(self) -> tuple[MediaStrip | ScoreStrip, ...]:
        """What stands at the top of the column, of a run that has it: most have neither."""
        return tuple(strip for strip in (self._media_strip, self._score_strip) if strip is not None)

    def show_scores(self, run: Run | None) -> None:
        """Tell of a scored run."""
        if self._score_strip is None and run is not None and run.is_scored:
            from app.views.tokens.score_strip import ScoreStrip

            self._score_strip = ScoreStrip(self._view)
            self._score_strip.tokenChosen.connect(self._view.signals.tokenActivated)
            self._add_strip(self._score_strip, below=self._media_strip)
        if self._score_strip is not None:
            self._score_strip.show_run(run)

    def _show_media(self, run: Run | None) -> None:
        """Tell of what the run has heard or seen."""
        if self._media_strip is None and run is not None and run.started is not None and run.started.media:
            from app.views.tokens.media_strip import MediaStrip

            self._media_strip = MediaStrip(self._view)
            self._media_strip.mediumRequested.connect(self._view.signals.mediumRequested)
            self._add_strip(self._media_strip)
        if self._media_strip is not None:
            self._media_strip.show_run(run)

    def _add_strip(self, strip: MediaStrip | ScoreStrip, below: QWidget | None = None) -> None:
        self._column.insertWidget(0 if below is None else 1, strip)
        if self._theme is not None:
            strip.set_theme(self._theme)
        strip.set_view_height(self._view.height())

    def show_medium(self, medium: Medium) -> None:
        """A file of the run's has been read."""
        if self._media_strip is not None:
            self._media_strip.show_medium(medium)

    def set_view_height(self, height: int) -> None:
        """What stands above the text leaves it most of that height."""
        for strip in self._strips:
            strip.set_view_height(height)

    @Slot()
    def arrange(self) -> None:
        """Show what the area has something of."""
        run, page = self._area.run, self._area.page
        before = self.chips.isHidden(), self._legend.isHidden()
        self._show_media(run)
        self.chips.show_run(run, hidden=page.is_side_by_side)
        waits = is_waiting(run)
        self.offer.update_state(not (page.has_text or waits or self._is_presenting), description=tr(EMPTY_HINT))
        has_key = page.has_text or (waits and not self._legend.isHidden())  # nothing is laid out anew for a beginning
        self._legend.setVisible(has_key and not self._is_presenting)
        self._legend.set_hint(self._look_choice.legend_hint())
        if before != (self.chips.isHidden(), self._legend.isHidden()):
            self._column.activate()  # at once: the page is never painted over a place that it does not have
