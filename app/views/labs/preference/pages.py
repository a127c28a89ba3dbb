"""Fine-tuning and the reward model: what is learned from, and what the trained model says of a text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QWidget

from app.state.labs import BUNDLED, USER_RANKINGS, LabRequest, ScoredTokens
from app.theme.theme import Theme, theme_for
from app.views.labs.preference.figures import best_of_plot, reward_plots, sft_plot
from app.views.labs.preference.page import LabPage
from app.views.labs.preference.scored import RewardColoredText
from app.views.shared.glossary_link import add_glossary_tooltip
from app.widgets.ask_file import open_file_dialog
from app.widgets.inputs import ComboBox
from app.widgets.plain_text import PlainLabel
from app.widgets.plots import PlotSpec
from core import labs
from resources.language import tr

_FROM_FILE = "…file"
EXAMPLE_PROMPT = (
    "Once upon a time, there was a little fox named Fern. She lived on a hill. She had no one to play with.\n"
    'One day, Fern sat alone under a bush. Soon she met an owl named Max. "Do you want to play tag with me?" '
    "asked Max.\n"
)  # fmt: skip
EXAMPLE_ENDING = (
    "They played tag until the sun went down. Fern felt happy. After that, Fern and Max played together every day."
)


class TrainingDataChoice(ComboBox):
    """What a training learns from; its last line asks for a file."""

    def __init__(self, choices: Sequence[tuple[str, str]], parent: QWidget) -> None:
        super().__init__(parent)
        for value, title in choices:
            self.addItem(title, value)
        self.addItem(tr("A JSONL file…"), _FROM_FILE)
        self.setAccessibleName(tr("What it learns from"))
        self._last = 0
        self.activated.connect(self._on_activated)

    @property
    def value(self) -> str:
        """`BUNDLED`, `USER_RANKINGS`, or a path."""
        return str(self.currentData())

    @Slot(int)
    def _on_activated(self, place: int) -> None:
        if self.itemData(place) != _FROM_FILE:
            self._last = place
            return
        self.setCurrentIndex(self._last)
        open_file_dialog(self, tr("Learn from a JSONL file"), tr("JSON lines (*.jsonl)"), self.use_file)

    @Slot(str)
    def use_file(self, path: str) -> None:
        """Offer a file and choose it."""
        self._last = self.count() - 1
        self.insertItem(self._last, Path(path).name, path)
        self.setCurrentIndex(self._last)


class SftPage(LabPage):
    """Supervised fine-tuning."""

    task = "sft"

    def __init__(self, parent: QWidget | None = None) -> None:
        about = tr(
            "People write answers; the model learns to write the same. The bundled chats end every answer with a "
            "thank-you, which storyteller has never written: after a minute it thanks for most questions it has not "
            "seen."
        )
        super().__init__(about, (tr("Loss, nats a token (○ held out)"),), parent)
        self.data = TrainingDataChoice(((BUNDLED, tr("The bundled chats")),), self)
        self.controls.addWidget(self.data)

    def use_file(self, path: str) -> None:
        """Learn from that file."""
        self.data.use_file(path)

    def lab_request(self) -> LabRequest:
        """From what is chosen."""
        return LabRequest("sft", data=self.data.value)

    def figures(self, events: Sequence[object]) -> Sequence[PlotSpec]:
        """Loss."""
        return (sft_plot(events),)


class RewardPage(LabPage):
    """The reward model: trained, then asked about texts. `queryWanted(LabWish)`."""

    task = "reward"
    queryWanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        about = tr(
            "A copy of storyteller gets a new head that gives one number: larger for the ending that is preferred. It "
            "learns from pairs of a better and a worse one."
        )
        plots = (
            tr("Loss, nats a pair (○ held out)"), tr("Held-out pairs in the right order"), tr("Best of n: KL, nats")
        )  # fmt: skip
        super().__init__(about, plots, parent, column_count=3)
        self._theme = theme_for("light")
        self.data = TrainingDataChoice(
            ((BUNDLED, tr("The bundled rankings")), (USER_RANKINGS, tr("My rankings"))), self
        )
        self.controls.addWidget(self.data)
        self.text = QLineEdit(EXAMPLE_ENDING, self)
        self.text.setAccessibleName(tr("An ending to be scored"))
        self.score, self.best = QPushButton(tr("Score it"), self), QPushButton(tr("Best of n"), self)
        add_glossary_tooltip(self.best, "best_of_n")
        self.scored, self.mean_rewards = RewardColoredText(self), PlainLabel("", self)
        self.mean_rewards.setProperty("role", "muted")
        self.score.clicked.connect(self._on_score)
        self.best.clicked.connect(self._on_best)
        row = QHBoxLayout()
        for part in (self.text, self.score, self.best):
            row.addWidget(part, 1 if part is self.text else 0)
        above = self.column.indexOf(self.grid)
        self.column.insertLayout(above, row)
        for place, label in enumerate((self.scored, self.mean_rewards), above + 1):
            self.column.insertWidget(place, label)

    def use_file(self, path: str) -> None:
        """Learn from that file."""
        self.data.use_file(path)

    def lab_request(self) -> LabRequest:
        """From what is chosen."""
        return LabRequest("reward", data=self.data.value)

    def figures(self, events: Sequence[object]) -> Sequence[PlotSpec]:
        """Loss and accuracy."""
        return reward_plots(events)

    def set_theme(self, theme: Theme) -> None:
        """Colours of the scored text too."""
        super().set_theme(theme)
        self.scored.set_theme(theme)

    def set_trained(self, is_trained: bool, is_idle: bool) -> None:
        """Whether there is a model to be asked, and nothing under way."""
        for button in (self.score, self.best):
            button.setEnabled(is_trained and is_idle)
            button.setToolTip("" if is_trained else tr("Train a reward model first."))
        if is_trained == (self.mean_rewards.text() == tr("Train a reward model first.")):
            self.mean_rewards.setText("" if is_trained else tr("Train a reward model first."))

    def show_answer(self, events: Sequence[object]) -> None:
        """What came of a question."""
        for event in events:
            if isinstance(event, ScoredTokens):
                self.scored.show_tokens(event.tokens)
        best = [one for one in events if isinstance(one, labs.preference.BestOf)]
        if best:
            self.headings[2].show()
            self.plots[2].show_figure(best_of_plot(best))
            parts = (tr("best of {n}: {reward:+.2f}").format(n=one.n, reward=one.reward) for one in best)
            self.mean_rewards.setText(tr("Mean reward: {parts}").format(parts=" · ".join(parts)))

    @Slot()
    def _on_score(self) -> None:
        self.queryWanted.emit(LabRequest("tokens", prompt=EXAMPLE_PROMPT, text=self.text.text()))

    @Slot()
    def _on_best(self) -> None:
        self.queryWanted.emit(LabRequest("best_of", prompt=EXAMPLE_PROMPT))
