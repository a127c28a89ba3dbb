"""What stands above a comparison: the choice of its kind, the button that begins it, and what it is going to do."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QBoxLayout, QPushButton, QWidget

from app.state.run import Run
from app.views.compare.comparison_kinds import KINDS, RUNS, SWEEP, kind_description
from app.views.compare.comparison_state import ComparisonStore
from app.views.compare.comparison_wording import plan_text
from app.views.compare.setup import CompareSetup
from app.widgets.plain_text import PlainLabel, tooltip
from app.widgets.segmented import SegmentedControl
from resources.language import join_sentences, tr


class CompareHead(QObject):
    """`top` holds choice and button; `setup` and `comparing` say what the button is for."""

    def __init__(self, page: QWidget, comparing: ComparisonStore) -> None:
        super().__init__(page)
        self._comparing = comparing
        self._base: Run | None = None
        kinds = [(kind, tr(title)) for kind, title in KINDS]
        self.kind = SegmentedControl(kinds, tr("What to compare"), page, wraps=True)
        self.button = QPushButton(tr("Compare"), page)
        self.button.setObjectName("compareButton")
        self.button.setProperty("role", "primary")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.description = PlainLabel(page, wordWrap=True)
        self.description.setProperty("role", "muted")
        self.setup = CompareSetup(page)
        self.top = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self.top.addWidget(self.kind, 1)
        self.top.addWidget(self.button, 0, Qt.AlignmentFlag.AlignTop)
        self.setup.changed.connect(self._update_button)

    def set_wide(self, is_wide: bool) -> None:
        """The button below the choice where it gets narrow."""
        self.top.setDirection(QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom)

    def show_state(self, base: Run | None) -> None:
        """Say what is chosen, and what the button does now for a comparison of `base`."""
        self._base = base
        self.description.setText(kind_description(self.kind.value, base))
        self._update_button()

    @Slot()
    def _update_button(self) -> None:
        run, count, is_own = self._base, self.setup.count, self._comparing.active is not None
        ready = run is not None and run.outcome is not None and not self._comparing.is_measuring and count > 1
        self.button.setEnabled(is_own or ready)
        self.button.setText(
            tr("Stop") if is_own else tr("Compare {count}").format(count=count) if count > 1 else tr("Compare")
        )
        each = run.finished.metrics.seconds if run is not None and run.finished is not None else None
        to_run = 0 if self.kind.value == RUNS else count
        self.button.setToolTip(tooltip("" if is_own or not to_run else plan_text(to_run, each)))
        if self.kind.value == SWEEP or to_run:
            plan = _as_sentence(plan_text(to_run, each)) if to_run > 1 else ""
            self.description.setText(join_sentences(kind_description(self.kind.value, run), plan))


def _as_sentence(words: str) -> str:
    return tr("{sentence}.").format(sentence=f"{words[:1].upper()}{words[1:]}")
