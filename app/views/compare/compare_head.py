"""What stands above a comparison: the choice of its kind, the button that begins it, and what it is going to do."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QBoxLayout, QPushButton, QWidget

from app.state.run import Run
from app.views.compare.comparison_kinds import KINDS, RUNS, SWEEP, words
from app.views.compare.comparison_state import ComparisonState
from app.views.compare.comparison_wording import plan_words
from app.views.compare.setup import CompareSetup
from app.widgets.plain_text import PlainLabel, tooltip
from app.widgets.segmented import Segmented
from resources.language import sentences, tr


class CompareHead(QObject):
    """`top` holds choice and button; `setup` and `comparing` say what the button is for."""

    def __init__(self, page: QWidget, comparing: ComparisonState) -> None:
        super().__init__(page)
        self._comparing = comparing
        self._base: Run | None = None
        kinds = [(kind, tr(title)) for kind, title in KINDS]
        self.kind = Segmented(kinds, tr("What to compare"), page, breaks=True)
        self.button = QPushButton(tr("Compare"), page)
        self.button.setObjectName("compareButton")
        self.button.setProperty("role", "primary")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.words = PlainLabel(page, wordWrap=True)
        self.words.setProperty("role", "muted")
        self.setup = CompareSetup(page)
        self.top = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self.top.addWidget(self.kind, 1)
        self.top.addWidget(self.button, 0, Qt.AlignmentFlag.AlignTop)
        self.setup.changed.connect(self._enable)

    def turn(self, is_wide: bool) -> None:
        """The button below the choice where it gets narrow."""
        self.top.setDirection(QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom)

    def show_state(self, base: Run | None) -> None:
        """Say what is chosen, and what the button does now for a comparison of `base`."""
        self._base = base
        self.words.setText(words(self.kind.value, base))
        self._enable()

    @Slot()
    def _enable(self) -> None:
        run, count, is_own = self._base, self.setup.count, self._comparing.active is not None
        ready = run is not None and run.outcome is not None and not self._comparing.is_measuring and count > 1
        self.button.setEnabled(is_own or ready)
        self.button.setText(
            tr("Stop") if is_own else tr("Compare {count}").format(count=count) if count > 1 else tr("Compare")
        )
        each = run.finished.metrics.seconds if run is not None and run.finished is not None else None
        to_run = 0 if self.kind.value == RUNS else count
        self.button.setToolTip(tooltip("" if is_own or not to_run else plan_words(to_run, each)))
        if self.kind.value == SWEEP or to_run:
            plan = _sentence(plan_words(to_run, each)) if to_run > 1 else ""
            self.words.setText(sentences(words(self.kind.value, run), plan))


def _sentence(words: str) -> str:
    return tr("{sentence}.").format(sentence=f"{words[:1].upper()}{words[1:]}")
