"""The preference lab: from rankings to a reward model to a model that was tuned by it."""

from __future__ import annotations

from collections.abc import Sequence, Set

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFrame, QStackedWidget, QVBoxLayout, QWidget

from app.state.labs import Task
from app.state.worker_messages import ErrorReport
from app.theme.theme import Theme
from app.views.labs.preference.collect import CollectPage
from app.views.labs.preference.page import LabPage
from app.views.labs.preference.pages import RewardPage, SftPage
from app.views.labs.preference.ppo_page import PpoPage
from app.views.labs.preference.strip import PAGES, TaskStrip
from resources.language import tr

_REWARD_QUERIES: tuple[Task, ...] = ("tokens", "best_of")
"""Work whose answer stands on the reward model's page."""


class PreferenceView(QFrame):
    """`startWanted(LabWish)` and `stopWanted`; what else is asked for, the pages say."""

    startWanted = Signal(object)
    stopWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("preferenceView")
        self.setAccessibleName(tr("Preference lab"))
        self.strip, self.pages = TaskStrip(self), QStackedWidget(self)
        self.collect, self.sft, self.reward, self.ppo = CollectPage(), SftPage(), RewardPage(), PpoPage()
        self.page_of: dict[Task, LabPage] = {
            "sft": self.sft, "draw": self.collect, "reward": self.reward, "ppo": self.ppo
        }  # fmt: skip
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(14)
        column.addWidget(self.strip)
        column.addWidget(self.pages, 1)
        for task, _ in PAGES:
            page = self.page_of[task]
            self.pages.addWidget(page)
            page.startWanted.connect(self.startWanted)
            page.stopWanted.connect(self.stopWanted)
        self.reward.queryWanted.connect(self.startWanted)
        self.strip.chosen.connect(self.show_page)
        self.show_page("sft")

    @Slot(str)
    def show_page(self, task: Task) -> None:
        """Bring that step's page to the front."""
        self.strip.set_current(task)
        self.pages.setCurrentWidget(self.page_of[task])

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        for page in self.page_of.values():
            page.set_theme(theme)

    def show_state(self, done: Set[Task], busy: Task | None) -> None:
        """Which steps something came of, and what is under way."""
        names = {task: tr(title) for task, title in PAGES}
        other = names.get(busy, self.query_name(busy)) if busy is not None else ""
        self.strip.show_progress(done, busy)
        for task, page in self.page_of.items():
            page.show_busy(task == busy, other)
        self.reward.set_trained("reward" in done, busy is None)
        self.ppo.set_available("sft" in done, "reward" in done or busy == "ppo", "ppo" in done, busy is None)

    def query_name(self, busy: Task) -> str:
        """What the work without a page of its own is called."""
        return tr("the scoring") if busy in _REWARD_QUERIES else ""

    def show_events(self, task: Task, events: Sequence[object]) -> None:
        """What that work has told so far."""
        if task in _REWARD_QUERIES:
            self.reward.show_answer(events)
        else:
            self.page_of[task].show_events(events)

    def show_error(self, task: Task, error: ErrorReport) -> None:
        """Why it ended."""
        self.page_of["reward" if task in _REWARD_QUERIES else task].show_error(error)
