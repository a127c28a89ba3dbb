"""Adapts prompt, strategy and examples when another kind of model is selected, with a notice and a way back."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QObject, QTimer, Slot

from decodescope.app.control.messages import Messages
from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.control.model_list import ENGINE
from decodescope.app.control.registry_choice import StrategyChoice
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.core import ModelEntry, strategies
from decodescope.core.strategies import Flags
from decodescope.resources.language import join_sentences, tr

UNDO = "undo_task"
"""Name of the notice's button."""


class ModelTask(NamedTuple):
    """The task of a model, as far as prompts, strategies and examples depend on it."""

    hears: bool = False
    sees: bool = False
    rewrites: bool = False
    """Whether it turns one text into another: it translates or summarises."""

    @property
    def reads_media(self) -> bool:
        """Whether its input is audio or an image rather than the beginning of a text."""
        return self.hears or self.sees


def task_of(entry: ModelEntry | None) -> ModelTask:
    """Return the task of a model; that of a language model if it is not known."""
    if entry is None or entry.source == ENGINE:
        return ModelTask()
    takes = entry.modalities
    return ModelTask(takes.sound, takes.picture, entry.encoder_decoder and not takes.sound and not takes.picture)


class ModelTaskController(QObject):
    """Puts a text prompt aside for a model that reads audio or images, and replaces random choice by the likeliest text
    for all models that do not continue a text. Both come back with a model that does, unless they were changed.
    """

    def __init__(self, model: ModelChoice, strategy: StrategyChoice, prompt: PromptPanel, messages: Messages) -> None:
        super().__init__(model)
        self._model, self._strategy, self._prompt, self._messages = model, strategy, prompt, messages
        self._task = task_of(model.entry)
        self._text = ""
        """The prompt that was put aside."""
        self._sampling = ""
        """The strategy that was replaced."""
        self._is_reported = True
        self._is_adapting = False
        prompt.edited.connect(self._on_edited)
        model.changed.connect(self._on_model)
        messages.noticeAction.connect(self._on_action)
        self._show_examples()

    @Slot()
    def _on_model(self) -> None:
        task, before = task_of(self._model.entry), self._task
        if task == before:
            return
        self._task = task
        self._is_reported = True
        if task == ModelTask():
            self._bring_back()
        else:
            self._is_adapting = True
            self._adapt(task)
            self._is_adapting = False
        self._show_examples()
        if not self._is_reported:
            QTimer.singleShot(0, self, self._report)  # a caller may set a prompt and a strategy with the model

    def _adapt(self, task: ModelTask) -> None:
        text = self._prompt.editor.toPlainText()
        if task.reads_media and text.strip() and not self._prompt.is_chat:
            self._text, self._is_reported = text, False
            self._prompt.set_prompt("")
        elif not task.reads_media:
            self._bring_back_text()
        if self._strategy.strategy.flags.get("do_sample") and not self._sampling:
            self._sampling, self._is_reported = self._strategy.name, False
            self._strategy.choose(_likeliest(), "strategy")

    def _bring_back(self) -> None:
        self._bring_back_text()
        if self._sampling and self._strategy.name == _likeliest():
            self._strategy.choose(self._sampling, "strategy")
        self._sampling = ""

    def _bring_back_text(self) -> None:
        if self._text and not self._prompt.editor.toPlainText().strip():
            self._prompt.set_prompt(self._text)
        self._text = ""

    @Slot()
    def _on_edited(self) -> None:
        """Report nothing if a caller that selected the model sets its own prompt, as an example does."""
        if not self._is_reported and not self._is_adapting:
            self._is_reported = True
            self._text = self._sampling = ""

    @Slot()
    def _report(self) -> None:
        """Say what was changed, as far as it is still so."""
        entry = self._model.entry
        if self._is_reported or entry is None:
            return
        self._is_reported = True
        put_aside = replaced = ""
        if self._text and not self._prompt.editor.toPlainText():
            put_aside = tr(
                "The text prompt was put aside, because {model} does not continue texts. It comes back with a model "
                "that does."
            ).format(model=entry.title)
        if self._sampling and self._strategy.name == _likeliest():
            replaced = tr("{strategy} was selected: the likeliest text is wanted here, not a random one.").format(
                strategy=tr(self._strategy.strategy.title)
            )
        if text := join_sentences(put_aside, replaced):
            self._messages.show_notice(text, tr("Adapted to {model}").format(model=entry.title), [(UNDO, tr("Undo"))])

    @Slot(str)
    def _on_action(self, action: str) -> None:
        if action == UNDO:
            self._bring_back()

    def _show_examples(self) -> None:
        """Show the examples of the selected model's task first."""
        names = {entry.name for entry in self._model.entries if task_of(entry) == self._task}
        self._prompt.show_examples_first(names)


def _likeliest() -> str:
    """Return the strategy that takes the likeliest token."""
    return strategies.selected_by(Flags()).name
