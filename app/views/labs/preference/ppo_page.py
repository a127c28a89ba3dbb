"""PPO: reward, KL, entropy and loss while it learns; the same prompts before and after."""

from __future__ import annotations

import html
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.state.comparison.text_diff import word_diff
from app.state.labs import LabRequest
from app.theme.theme import Theme, theme_for
from app.views.labs.preference.figures import ppo_plots
from app.views.labs.preference.page import LabPage
from app.views.shared.glossary_link import add_glossary_tooltip
from app.widgets.inputs import DoubleSpinBox
from app.widgets.plain_text import PlainLabel, RichLabel, tooltip
from app.widgets.plots import PlotSpec
from core import labs
from resources.language import tr


class PpoPage(LabPage):
    """`useWanted`: the tuned model is to be chosen in the window."""

    task = "ppo"
    useWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        about = tr(
            "The model writes, the reward model scores, and what scored well becomes likelier. β holds it near what it "
            "was: with β = 0 nothing does, and sentences may fall apart while the score stays high."
        )
        plots = (tr("Reward, standard deviations above the start"), tr("KL from the start, nats a text"),
                 tr("Entropy, nats a token"), tr("Loss of the values"))  # fmt: skip
        super().__init__(about, plots, parent)
        self.beta = DoubleSpinBox(self)
        self.beta.setRange(0.0, 5.0)
        self.beta.setSingleStep(0.05)
        self.beta.setValue(0.1)
        self.beta.setAccessibleName(tr("β: weight of the KL penalty"))
        label = PlainLabel("β", self)
        label.setBuddy(self.beta)
        add_glossary_tooltip(self.beta, "kl_penalty")
        self.from_tuned = QCheckBox(tr("Begin from the fine-tuned model"), self)
        self.use = QPushButton(tr("Write with it"), self)
        self.use.clicked.connect(self.useWanted)
        for part in (label, self.beta, self.from_tuned, self.use):
            self.controls.addWidget(part)
        self.texts = BeforeAfterTexts(self)
        self.column.addWidget(self.texts, 1)

    def lab_request(self) -> LabRequest:
        """With what is set."""
        return LabRequest(
            "ppo", beta=self.beta.value(), tuned=self.from_tuned.isChecked() and self.from_tuned.isEnabled()
        )

    def figures(self, events: Sequence[object]) -> Sequence[PlotSpec]:
        """Four curves."""
        return ppo_plots(events)

    def set_theme(self, theme: Theme) -> None:
        """Colours of the texts too."""
        super().set_theme(theme)
        self.texts.set_theme(theme)

    def show_events(self, events: Sequence[object]) -> None:
        """Curves, and the texts of both in the end."""
        super().show_events(events)
        self.texts.show_texts(
            [one for one in events if isinstance(one, labs.preference.Compared)], _latest_text(events)
        )

    def set_available(self, sft: bool, reward: bool, ppo: bool, is_idle: bool) -> None:
        """What there is to begin from, and whether there is a tuned model."""
        self.from_tuned.setEnabled(sft and is_idle)
        self.use.setEnabled(ppo and is_idle)
        self.start.setEnabled(self.start.isEnabled() and reward)
        first = tr("Train a reward model first.")
        if not reward:
            self.start.setToolTip(tooltip(first))
        if not self.status.text() or self.status.text() == first:
            self.status.setText("" if reward else first)


def _latest_text(events: Sequence[object]) -> str:
    """The text that was written in the last round."""
    return next((one.text for one in reversed(events) if isinstance(one, labs.preference.PpoStep)), "")


class BeforeAfterTexts(QScrollArea):
    """Prompts that were not learned from, told by both models; words that changed stand out in the second."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("beforeAfter")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Before and after"))
        self._theme = theme_for("light")
        self._shown: list[labs.preference.Compared] = []
        self._live = ""
        self._content = QFrame(self)
        self._content.setProperty("role", "panel")
        self._column = QVBoxLayout(self._content)
        self._column.setContentsMargins(0, 0, 8, 0)
        self.setWidget(self._content)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self._rebuild()

    def show_texts(self, compared: list[labs.preference.Compared], live: str) -> None:
        """These; until they are there, what was written last."""
        if (compared, live) != (self._shown, self._live):
            self._shown, self._live = compared, live
            self._rebuild()

    def _rebuild(self) -> None:
        while (item := self._column.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()  # else it is seen below the next one until it is gone
                widget.deleteLater()
        if not self._shown and self._live:
            self._column.addWidget(self._label(html.escape(self._live), tr("Written in this round")))
        for one in self._shown:
            self._column.addWidget(self._row(one))
        self._column.addStretch(1)

    def _row(self, one: labs.preference.Compared) -> QWidget:
        frame = QFrame(self._content)
        frame.setProperty("role", "card")
        row = QHBoxLayout(frame)
        row.setSpacing(self._theme.px(20))
        before, after = tr("Before · reward {reward:+.2f}"), tr("After · reward {reward:+.2f}")
        row.addWidget(self._label(html.escape(one.before), before.format(reward=one.reward_before)), 1)
        row.addWidget(self._label(self._diff_html(one), after.format(reward=one.reward_after)), 1)
        return frame

    def _diff_html(self, one: labs.preference.Compared) -> str:
        spans = [span for span in word_diff(one.before, one.after) if span.kind != "missing"]
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
