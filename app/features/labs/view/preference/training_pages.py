"""A text whose tokens are coloured by the change of the reward."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.labs.state import BUNDLED, USER_RANKINGS, LabRequest, RewardedTokens
from decodescope.app.features.labs.view.preference.lab_page import LabPage
from decodescope.app.features.labs.view.preference.training_plots import best_of_plot, ppo_plots, reward_plots, sft_plot
from decodescope.app.state.comparison.results import word_diff
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.file_dialogs import open_file_dialog
from decodescope.app.widgets.inputs import ComboBox, DoubleSpinBox
from decodescope.app.widgets.plain_text import PlainLabel, RichLabel, tooltip
from decodescope.app.widgets.plots import PlotSpec
from decodescope.core import labs
from decodescope.resources.language import tr


class RewardColoredText(Themed, RichLabel):
    """Blue where the reward rises, orange where it falls; the final reward follows the text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setObjectName("scoredText")
        self.setWordWrap(True)
        self._theme, self._tokens = theme_for("light"), tuple[tuple[str, float], ...]()

    def restyle(self, theme: Theme) -> None:
        self._update_text()

    def show_tokens(self, tokens: Sequence[tuple[str, float]]) -> None:
        """Show tokens, each with the reward after it."""
        self._tokens = tuple(tokens)
        self._update_text()

    def _update_text(self) -> None:
        if not self._tokens:
            self.clear()
            return
        before = [self._tokens[0][1], *(reward for _, reward in self._tokens[:-1])]
        largest = max(abs(reward - was) for was, (_, reward) in zip(before, self._tokens, strict=True)) or 1.0
        spans = [
            self._span(text, (reward - was) / largest) for was, (text, reward) in zip(before, self._tokens, strict=True)
        ]
        end = tr("reward {reward:+.2f}").format(reward=self._tokens[-1][1])
        self.setText(f"{''.join(spans)} &nbsp; <b>{html.escape(end)}</b>")
        self.setAccessibleName("".join(text for text, _ in self._tokens) + f" {end}")

    def _span(self, text: str, change: float) -> str:
        colour = self._theme.color("kept" if change > 0 else "refused", min(0.55, abs(change) * 0.55))
        ground = f"rgba({colour.red()},{colour.green()},{colour.blue()},{colour.alphaF():.2f})"
        return f'<span style="background-color: {ground}">{html.escape(text)}</span>'


class PpoPage(LabPage):
    """Page of PPO: its settings, curves, and texts before and after. `useWanted` selects the tuned model in the main
    window.
    """

    task = "ppo"
    useWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        about = tr(
            "The model writes, the reward model scores, and texts with high scores become likelier. β "
            "keeps the model close to its start: with β = 0 sentences may fall apart while the score "
            "stays high."
        )
        plots = (tr("Reward, standard deviations above the start"), tr("KL from the start, nats per text"),
                 tr("Entropy, nats per token"), tr("Value loss"))  # fmt: skip
        super().__init__(about, plots, parent)
        self.beta = set_up(DoubleSpinBox(self), accessible_name=tr("β: weight of the KL penalty"))
        self.beta.setRange(0.0, 5.0)
        self.beta.setSingleStep(0.05)
        self.beta.setValue(0.1)
        label = PlainLabel("β", self)
        label.setBuddy(self.beta)
        add_glossary_tooltip(self.beta, "kl_penalty")
        self.from_tuned = QCheckBox(tr("Start from the fine-tuned model"), self)
        self.use = set_up(QPushButton(tr("Use this model"), self), clicked=self.useWanted)
        arrange(self.controls, label, self.beta, self.from_tuned, self.use)
        self.texts = BeforeAfterTexts(self)
        self.column.addWidget(self.texts, 1)

    def lab_request(self) -> LabRequest:
        """Return a request with the chosen settings."""
        return LabRequest(
            "ppo", beta=self.beta.value(), tuned=self.from_tuned.isChecked() and self.from_tuned.isEnabled()
        )

    def figures(self, events: Sequence[object]) -> Sequence[PlotSpec]:
        """Return the four curves."""
        return ppo_plots(events)

    def show_events(self, events: Sequence[object]) -> None:
        """Show the curves, and at the end the texts of both models."""
        super().show_events(events)
        self.texts.show_texts(
            [one for one in events if isinstance(one, labs.preference.TextComparison)], _latest_text(events)
        )

    def set_available(self, sft: bool, reward: bool, ppo: bool, is_idle: bool) -> None:
        """Enable the controls by the models that exist."""
        self.from_tuned.setEnabled(sft and is_idle)
        self.use.setEnabled(ppo and is_idle)
        self.start.setEnabled(self.start.isEnabled() and reward)
        first = tr("Train a reward model first.")
        if not reward:
            self.start.setToolTip(tooltip(first))
        if not self.status.text() or self.status.text() == first:
            self.status.setText("" if reward else first)


def _latest_text(events: Sequence[object]) -> str:
    """Return the text generated in the latest round."""
    return next((one.text for one in reversed(events) if isinstance(one, labs.preference.PpoStep)), "")


class BeforeAfterTexts(Themed, QScrollArea):
    """Held-out prompts continued by both models; changed words are highlighted in the second text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("beforeAfter")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Before and after"))
        self._shown: list[labs.preference.TextComparison] = []
        self._live = ""
        self._content = set_up(QFrame(self), role="panel")
        self._column = arrange(QVBoxLayout(self._content), margins=(0, 0, 8, 0))
        self.setWidget(self._content)

    def restyle(self, theme: Theme) -> None:
        self._rebuild()

    def show_texts(self, comparisons: list[labs.preference.TextComparison], live: str) -> None:
        """Show these texts, or the latest generated text until they exist."""
        if (comparisons, live) != (self._shown, self._live):
            self._shown, self._live = comparisons, live
            self._rebuild()

    def _rebuild(self) -> None:
        while (item := self._column.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()  # otherwise it stays visible until it is deleted
                widget.deleteLater()
        if not self._shown and self._live:
            self._column.addWidget(self._label(html.escape(self._live), tr("Generated in this round")))
        for one in self._shown:
            self._column.addWidget(self._row(one))
        self._column.addStretch(1)

    def _row(self, comparison: labs.preference.TextComparison) -> QWidget:
        frame = set_up(QFrame(self._content), role="card")
        row = arrange(QHBoxLayout(frame), spacing=self._theme.px(20))
        before, after = tr("Before · reward {reward:+.2f}"), tr("After · reward {reward:+.2f}")
        row.addWidget(self._label(html.escape(comparison.before), before.format(reward=comparison.reward_before)), 1)
        row.addWidget(self._label(self._diff_html(comparison), after.format(reward=comparison.reward_after)), 1)
        return frame

    def _diff_html(self, comparison: labs.preference.TextComparison) -> str:
        spans = [span for span in word_diff(comparison.before, comparison.after) if span.kind != "missing"]
        colour = self._theme.color("finished").name()
        return "".join(
            f'<b style="color: {colour}">{html.escape(span.text)}</b>' if span.kind == "own" else html.escape(span.text)
            for span in spans
        )

    def _label(self, text: str, heading: str) -> QLabel:
        muted = self._theme.color("muted").name()
        label = RichLabel(f'<span style="color: {muted}">{html.escape(heading)}</span><br>{text}', self._content)
        label.setWordWrap(True)
        label.setAlignment(Qt.AlignmentFlag.AlignTop)
        return label


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
    """Choice of the training data; the last entry opens a file dialog."""

    def __init__(self, choices: Sequence[tuple[str, str]], parent: QWidget) -> None:
        super().__init__(parent)
        for value, title in choices:
            self.addItem(title, value)
        self.addItem(tr("JSONL file…"), _FROM_FILE)
        self.setAccessibleName(tr("Training data"))
        self._last = 0
        self.activated.connect(self._on_activated)

    @property
    def value(self) -> str:
        """The chosen data: `BUNDLED`, `MINE`, or a path."""
        return str(self.currentData())

    @Slot(int)
    def _on_activated(self, position: int) -> None:
        if self.itemData(position) != _FROM_FILE:
            self._last = position
            return
        self.setCurrentIndex(self._last)
        open_file_dialog(self, tr("Choose a JSONL training file"), tr("JSON lines (*.jsonl)"), self.use_file)

    @Slot(str)
    def use_file(self, path: str) -> None:
        """Add a file to the choices and select it."""
        self._last = self.count() - 1
        self.insertItem(self._last, Path(path).name, path)
        self.setCurrentIndex(self._last)


class SftPage(LabPage):
    """The page for supervised fine-tuning."""

    task = "sft"

    def __init__(self, parent: QWidget | None = None) -> None:
        about = tr(
            "People write answers, and the model learns to write similar ones. The bundled chats end "
            "every answer with a thank-you, which storyteller has never written. After a minute of "
            "training it also thanks for most questions it has not seen."
        )
        super().__init__(about, (tr("Loss, nats per token (○ held-out)"),), parent)
        self.data = TrainingDataChoice(((BUNDLED, tr("Bundled chats")),), self)
        self.controls.addWidget(self.data)

    def use_file(self, path: str) -> None:
        """Use a data file instead of the bundled examples."""
        self.data.use_file(path)

    def lab_request(self) -> LabRequest:
        """Return a request with the chosen data."""
        return LabRequest("sft", data=self.data.value)

    def figures(self, events: Sequence[object]) -> Sequence[PlotSpec]:
        """Return the loss curve."""
        return (sft_plot(events),)


class RewardPage(LabPage):
    """The page of the reward model: train it, then score texts with it. Signal: `queryWanted(LabRequest)`."""

    task = "reward"
    queryWanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        about = tr(
            "A copy of storyteller gets a new output head that returns a single number: higher for the "
            "preferred ending. It is trained on pairs of a better and a worse ending."
        )
        plots = (
            tr("Loss, nats per pair (○ held-out)"), tr("Held-out pairs ranked correctly"), tr("Best of n: KL, nats")
        )  # fmt: skip
        super().__init__(about, plots, parent, column_count=3)
        self.data = TrainingDataChoice(((BUNDLED, tr("Bundled rankings")), (USER_RANKINGS, tr("My rankings"))), self)
        self.controls.addWidget(self.data)
        self.text = set_up(QLineEdit(EXAMPLE_ENDING, self), accessible_name=tr("Ending to score"))
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
        """Use a data file instead of the bundled examples."""
        self.data.use_file(path)

    def lab_request(self) -> LabRequest:
        """Return a request with the chosen data."""
        return LabRequest("reward", data=self.data.value)

    def figures(self, events: Sequence[object]) -> Sequence[PlotSpec]:
        """Return the curves of loss and accuracy, and of best-of-n."""
        return reward_plots(events)

    def set_trained(self, is_trained: bool, is_idle: bool) -> None:
        """Enable the scoring buttons if a trained model exists and no task is running."""
        for button in (self.score, self.best):
            button.setEnabled(is_trained and is_idle)
            button.setToolTip("" if is_trained else tr("Train a reward model first."))
        if is_trained == (self.mean_rewards.text() == tr("Train a reward model first.")):
            self.mean_rewards.setText("" if is_trained else tr("Train a reward model first."))

    def show_answer(self, events: Sequence[object]) -> None:
        """Show the result of scoring or of best-of-n."""
        for event in events:
            if isinstance(event, RewardedTokens):
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
