"""The three steps of the paper in one strip, each lit when something came of it."""

from __future__ import annotations

from collections.abc import Set

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLabel, QPushButton, QWidget

from app.state.labs import STAGES, Task
from app.views.shared.glossary_link import add_glossary_tooltip
from app.widgets.plain_text import PlainLabel, tooltip
from resources.language import mark, tr

COLLECT: Task = "draw"
PAGES: tuple[tuple[Task, str], ...] = (STAGES[0], (COLLECT, mark("Rankings")), *STAGES[1:])
"""Between fine-tuning and the reward model stands what that one learns from."""
_TERMS: dict[Task, str] = {COLLECT: "preference_pair", "reward": "reward_model", "ppo": "ppo"}


class TaskStrip(QWidget):
    """`chosen(task)`: that page is to be seen."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        self._group = QButtonGroup(self)
        self.buttons: dict[Task, QPushButton] = {}
        for number, (task, title) in enumerate(PAGES):
            if number:
                row.addWidget(self._arrow())
            button = QPushButton(tr(title), self)
            button.setObjectName(f"{task}Stage")
            button.setCheckable(True)
            button.setProperty("role", "chip")
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.clicked.connect(lambda _on=False, task=task: self.chosen.emit(task))
            if task in _TERMS:
                add_glossary_tooltip(button, _TERMS[task])
            self._group.addButton(button)
            self.buttons[task] = button
            row.addWidget(button)
        row.addStretch(1)

    def _arrow(self) -> QLabel:
        label = PlainLabel("→", self)
        label.setProperty("role", "muted")
        return label

    def set_current(self, task: Task) -> None:
        """That page is seen."""
        self.buttons[task].setChecked(True)

    def show_progress(self, done: Set[Task], busy: Task | None) -> None:
        """Which steps something came of, and which is under way."""
        for number, (task, title) in enumerate(PAGES):
            name, button = tr(title), self.buttons[task]
            is_done = task in done
            sign = "● " if is_done else "… " if task == busy else ""
            button.setText(f"{sign}{name}")
            state = tr("done") if is_done else tr("under way") if task == busy else tr("not done yet")
            button.setAccessibleName(
                tr("Step {number}: {name}, {state}").format(number=number + 1, name=name, state=state)
            )
            button.setToolTip(tooltip(button.accessibleName()))
