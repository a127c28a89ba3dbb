"""The draft models of a speculative strategy: those that fit the chosen model, and which of them are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Slot

from app.control.model_choice import ModelChoice
from app.control.model_list import ModelList
from app.control.registry_choice import StrategyChoice
from app.panels.draft_picker import DraftPicker
from app.state.suggestions import truncate_name
from resources.language import tr


class DraftChoice(QObject):
    """Shown only where the strategy has a use for a draft."""

    def __init__(self, picker: DraftPicker, models: ModelList, model: ModelChoice, strategy: StrategyChoice) -> None:
        super().__init__(picker)
        self._picker, self._models, self._model, self._strategy = picker, models, model, strategy
        self.changed = picker.chosenChanged
        model.changed.connect(self.offer)
        model.listed.connect(self.offer)
        strategy.chosen.connect(self._show)
        self.offer()
        self._show()

    @property
    def names(self) -> tuple[str, ...]:
        """The draft models of a strategy that has some; empty for any other."""
        return self._picker.chosen if self._strategy.strategy.takes_drafters else ()

    @property
    def selected_names(self) -> list[str]:
        """What is chosen, whether the strategy has a use for it or not."""
        return list(self._picker.chosen)

    @property
    def problems(self) -> list[str]:
        """Why no run can start with this choice, a sentence each."""
        if self.names or not self._strategy.strategy.takes_drafters:
            return []
        return [tr("No draft model is chosen: this strategy needs one that is smaller than the model.")]

    def restore(self, names: Sequence[str]) -> None:
        """Choose those that are still there."""
        self._picker.choose_all(names)

    def choose(self, names: Sequence[str]) -> list[str]:
        """Choose by name or folder; gives back a sentence for each that cannot draft."""
        new = [
            name for name in names if self._picker.unsupported_reason(name) is None and self._models.add_folder(name)
        ]
        if new:
            self.offer()
        refused = self._picker.choose_all(names) if names else []
        return [self._rejection_text(name) for name in refused]

    def _rejection_text(self, name: str) -> str:
        reason = self._picker.unsupported_reason(name)
        if reason is None:
            return tr("There is no draft model “{name}” here.").format(name=truncate_name(name))
        return tr("“{draft}” cannot draft for {model}. {reason}").format(
            draft=name, model=self._model.name, reason=reason or tr("There are enough drafts already.")
        )

    @Slot()
    def offer(self) -> None:
        """List the drafts that fit the chosen model; what was chosen stays as far as it can."""
        self._picker.offer(self._models.drafts_for(self._model.name))

    @Slot()
    def _show(self) -> None:
        self._picker.setVisible(self._strategy.strategy.takes_drafters)
