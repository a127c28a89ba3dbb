"""What a tour sets and runs, by the controllers that a person's hands would go through."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.control.borrowed_settings import TOUR, BorrowedSettings
from app.control.requests import ChosenSettings
from app.control.run_control import RunController
from app.control.settings_setup import SettingsController
from app.panels.prompt import PromptPanel
from app.state.tours import TourSetting


class TourSettings(QObject):
    """Sets everything that a run begins from, and begins it. The user's own settings are borrowed for that."""

    def __init__(
        self,
        controller: SettingsController,
        chosen: ChosenSettings,
        prompt: PromptPanel,
        runs: RunController,
        borrowed: BorrowedSettings,
    ) -> None:
        super().__init__(prompt)
        self._borrowed = borrowed
        self._controller, self._chosen, self._prompt, self._runs = controller, chosen, prompt, runs

    def set(self, setting: TourSetting) -> None:
        """Everything that the run begins from, as far as it is here."""
        self._controller.choose(setting.model, setting.strategy, setting.cache, setting.drafts)
        self._controller.set_values(setting.parameters)
        self._chosen.cache.parameters.set_values(setting.cache_parameters)
        self._chosen.seed.spin.setValue(setting.seed)
        self._chosen.seed.lock_button.setChecked(True)
        self._prompt.set_prompt(setting.prompt)

    def borrow(self) -> None:
        """Keep the settings as they are now for `give_back`, unless a tour has them already."""
        self._borrowed.borrow(TOUR)

    def give_back(self) -> None:
        """Restore all settings from before the tour."""
        self._borrowed.give_back(TOUR)

    def run(self) -> bool:
        """Begin the run that is set; False where it cannot be: the window then says why."""
        return self._runs.run()
