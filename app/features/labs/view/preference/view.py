"""The preference lab: from rankings to a reward model, and to a model tuned with it."""

from __future__ import annotations

from collections.abc import Sequence, Set

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.labs.state import STAGES, Task
from decodescope.app.features.labs.view.preference.collect_page import CollectPage
from decodescope.app.features.labs.view.preference.lab_page import LabPage
from decodescope.app.features.labs.view.preference.training_pages import PpoPage, RewardPage, SftPage
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.dialog import page_scroll_area
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.resources.language import mark, tr

COLLECT: Task = "draw"
PAGES: tuple[tuple[Task, str], ...] = (STAGES[0], (COLLECT, mark("Rankings")), *STAGES[1:])
"""The rankings, from which the reward model is trained, come between fine-tuning and the reward model."""
_TERMS: dict[Task, str] = {COLLECT: "preference_pair", "reward": "reward_model", "ppo": "ppo"}


class TaskStrip(QWidget):
    """The lab's tasks in order, each with its state. `chosen(task)`: show the page of this task."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = arrange(QHBoxLayout(self), margins=0, spacing=6)
        self._group = QButtonGroup(self)
        self.buttons: dict[Task, QPushButton] = {}
        for number, (task, title) in enumerate(PAGES):
            if number:
                row.addWidget(self._arrow())
            button = set_up(QPushButton(tr(title), self), name=f"{task}Stage", role="chip")
            button.setCheckable(True)
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.clicked.connect(lambda _on=False, task=task: self.chosen.emit(task))
            if task in _TERMS:
                add_glossary_tooltip(button, _TERMS[task])
            self._group.addButton(button)
            self.buttons[task] = button
            row.addWidget(button)
        row.addStretch(1)

    def _arrow(self) -> QLabel:
        return set_up(PlainLabel("→", self), role="muted")

    def set_current(self, task: Task) -> None:
        """Mark that page as current."""
        self.buttons[task].setChecked(True)

    def show_progress(self, finished_tasks: Set[Task], busy: Task | None) -> None:
        """Mark the finished steps and the running one."""
        for number, (task, title) in enumerate(PAGES):
            name, button = tr(title), self.buttons[task]
            is_done = task in finished_tasks
            sign = "● " if is_done else "… " if task == busy else ""
            button.setText(f"{sign}{name}")
            state = tr("done") if is_done else tr("running") if task == busy else tr("not done yet")
            button.setAccessibleName(
                tr("Step {number}: {name}, {state}").format(number=number + 1, name=name, state=state)
            )
            button.setToolTip(tooltip(button.accessibleName()))


_REWARD_QUERIES: tuple[Task, ...] = ("tokens", "best_of")
"""Tasks whose result is shown on the reward model's page."""


class PreferenceView(QFrame):
    """The preference lab: a strip of tasks and one page per task. Emits `startWanted` and `stopWanted`."""

    startWanted = Signal(object)
    stopWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="preferenceView", accessible_name=tr("Preference lab"))
        self.strip, self.pages = TaskStrip(self), QStackedWidget(self)
        self.collect, self.sft, self.reward, self.ppo = CollectPage(), SftPage(), RewardPage(), PpoPage()
        self.page_of: dict[Task, LabPage] = {
            "sft": self.sft, "draw": self.collect, "reward": self.reward, "ppo": self.ppo
        }  # fmt: skip
        arrange(QVBoxLayout(self), self.strip, (self.pages, 1), margins=(20, 16, 20, 16), spacing=14)
        for task, title in PAGES:
            page = self.page_of[task]
            self.pages.addWidget(page_scroll_area(page, tr(title)))
            page.startWanted.connect(self.startWanted)
            page.stopWanted.connect(self.stopWanted)
        self.reward.queryWanted.connect(self.startWanted)
        self.strip.chosen.connect(self.show_page)
        self.show_page("sft")

    @Slot(str)
    def show_page(self, task: Task) -> None:
        """Show the page of a task."""
        self.strip.set_current(task)
        self.pages.setCurrentIndex([name for name, _ in PAGES].index(task))

    def show_state(self, finished_tasks: Set[Task], busy: Task | None) -> None:
        """Show which steps are finished, and which task is running."""
        names = {task: tr(title) for task, title in PAGES}
        other = names.get(busy, self.query_name(busy)) if busy is not None else ""
        self.strip.show_progress(finished_tasks, busy)
        for task, page in self.page_of.items():
            page.show_busy(task == busy, other)
        self.reward.set_trained("reward" in finished_tasks, busy is None)
        self.ppo.set_available(
            "sft" in finished_tasks, "reward" in finished_tasks or busy == "ppo", "ppo" in finished_tasks, busy is None
        )

    def query_name(self, busy: Task) -> str:
        """Return the name of a task without its own page."""
        return tr("scoring") if busy in _REWARD_QUERIES else ""

    def show_events(self, task: Task, events: Sequence[object]) -> None:
        """Show the events of a task so far."""
        if task in _REWARD_QUERIES:
            self.reward.show_answer(events)
        else:
            self.page_of[task].show_events(events)

    def show_error(self, task: Task, error: ErrorReport) -> None:
        """Show why a task failed."""
        self.page_of["reward" if task in _REWARD_QUERIES else task].show_error(error)
