"""A stage that nobody sees: a run is shown on it step by step, and each step is a frame of a film."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication, QEvent, QSize, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QLayout, QVBoxLayout, QWidget

from app.control.stage.choice_display import ChoiceDisplay
from app.control.stage.stage_words import caption_text, caption_title
from app.panels.stage.stage_caption import StageCaption
from app.state.run import Run
from app.state.token_caption import current_caption
from app.storage.film.frame import Frame
from app.theme.panel_rules import panel_stylesheet
from app.theme.stage import stage_theme
from app.theme.theme import Theme
from app.views import VIEWS
from app.widgets.animation.motion import DURATION, AnimatedWidget
from app.widgets.spotlight import SpotlightOverlay
from app.widgets.widget_pictures import render_widget

FIRST_MS, LAST_MS = 1500, 3000
"""How long the prompt stands before the first step, and the end behind the last one."""
FRAME_MS = 60
"""Milliseconds between two frames of a choice that is seen happening."""


class OffscreenStage(QWidget):
    """One view, the words below it, the light: as on the stage, of any size and theme."""

    def __init__(self, view: str, size: QSize, theme: Theme) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        staged = stage_theme(theme, size)
        self._view_name = view
        self._view = next(spec for spec in VIEWS if spec.name == view).factory()
        self._caption = StageCaption()
        self._choices = ChoiceDisplay(self._caption.middle, staged)
        self._spotlight = SpotlightOverlay(self._view, staged)
        self._spotlight.target_rect = self._view.spotlight_rect
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # frames are of one size, whatever is said
        column.addWidget(self._view, 1)
        column.addWidget(self._caption)
        self.setStyleSheet(staged.stylesheet() + panel_stylesheet(staged) + f"Scene {{ background: {staged.window}; }}")
        for part in (self._view, self._caption, self._choices, self._spotlight):
            part.set_theme(staged)
        self._background = staged.color("window")
        self.resize(size)
        self.show()
        self._view.set_presenting(True)

    def frames(self, run: Run, pace: float, animated: bool) -> Iterator[Frame]:
        """The run from its prompt to its end, `pace` tokens a second; what is seen happening takes its time from its
        step. `run` is this scene's own: its cursor is moved."""
        step = round(1000 / pace)
        moves = animated and step > DURATION
        self._spotlight.raise_()
        run.move_cursor(0)
        run.stop_following()
        self._view.show_run(run)
        yield self._frame(run, moves=False, milliseconds=FIRST_MS)
        for position in range(1, run.length + 1):
            run.move_cursor(position)
            run.stop_following()
            self._view.cursor_moved(run)
            self._show_step(run, moves)
            shown = 0
            for widget in self._choices.all:
                for _ in self._animation_times(widget):
                    yield self._render(FRAME_MS)
                    shown += FRAME_MS
            yield self._render(LAST_MS if position == run.length else step - shown)

    def _animation_times(self, widget: AnimatedWidget) -> Iterator[int]:
        """Move the clock of what is to be seen happening; it stands at its end afterwards."""
        if widget.animation.state() == AnimatedWidget.STOPPED:
            return
        widget.animation.pause()
        for passed in range(0, DURATION, FRAME_MS):
            widget.animation.setCurrentTime(passed)
            yield passed
        widget.animation.stop()

    def _frame(self, run: Run, moves: bool, milliseconds: int) -> Frame:
        self._show_step(run, moves)
        return self._render(milliseconds)

    def _show_step(self, run: Run, moves: bool) -> None:
        now = current_caption(run)
        position = f"{run.cursor:,} / {run.length:,}"
        self._caption.show_texts(caption_title(now), caption_text(run, self._view, now), position)
        self._choices.show(run, now.token if now is not None else None, self._view_name == "speculation", moves)
        self._apply_layout()
        self._caption.keep_height()
        self._apply_layout()

    def _apply_layout(self) -> None:
        """Let every layout have its turn: there is no event loop between two frames."""
        for part in (self, *self.findChildren(QWidget)):
            QCoreApplication.sendPostedEvents(part, QEvent.Type.LayoutRequest)

    def _render(self, milliseconds: int) -> Frame:
        image = render_widget(self, self._background).convertToFormat(QImage.Format.Format_RGBX8888)
        return Frame(image.width(), image.height(), bytes(image.constBits()), milliseconds)
