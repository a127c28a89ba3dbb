"""A copy of everything a run begins from, and of the view, so that a tour or an example can put it back."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from app.control.media import MediaController
    from app.control.registry_choice import RegistryChoiceSnapshot
    from app.control.requests import ChosenSettings
    from app.panels.centre import Centre
    from app.panels.setup import SetupPanel
    from app.storage.settings import LastChoices


class SettingsSources(NamedTuple):
    """The parts of the window that hold the settings."""

    chosen: ChosenSettings
    panel: SetupPanel
    media: MediaController
    centre: Centre


class SettingsSnapshot(NamedTuple):
    """Plain values; nothing in it changes when the window does."""

    model: str
    drafts: tuple[str, ...]
    strategy: RegistryChoiceSnapshot
    cache: RegistryChoiceSnapshot
    prompt: str
    is_chat: bool
    media: tuple[str, ...]
    seed: int
    is_seed_locked: bool
    view: str
    is_advanced: bool
    """Whether the advanced parameters are unfolded."""

    def write(self, choices: LastChoices) -> None:
        """Write the settings, except for the view, into those that are saved."""
        choices.model, choices.drafts = self.model, list(self.drafts)
        choices.values, choices.cache_values = _values(self.strategy), _values(self.cache)
        choices.strategy, choices.cache = self.strategy.name, self.cache.name
        choices.prompt, choices.chat = self.prompt, self.is_chat
        if choices.media != list(self.media):  # else it stays the list that the window shows
            choices.media = list(self.media)
        choices.seed, choices.seed_locked = self.seed, self.is_seed_locked


def _values(choice: RegistryChoiceSnapshot) -> dict[str, dict[str, Any]]:
    """Changed values by the name of the strategy or cache, as the settings file has them."""
    return deepcopy({**choice.stored, choice.name: dict(choice.changed)})


def take_snapshot(sources: SettingsSources) -> SettingsSnapshot:
    """Copy the settings as they are now."""
    chosen, panel, media, centre = sources
    return SettingsSnapshot(
        model=chosen.model.name,
        drafts=tuple(chosen.drafts.selected_names),
        strategy=chosen.strategy.snapshot(),
        cache=chosen.cache.snapshot(),
        prompt=panel.prompt.editor.toPlainText(),
        is_chat=panel.prompt.is_chat,
        media=tuple(media.paths),
        seed=chosen.seed.spin.value(),
        is_seed_locked=chosen.seed.is_locked,
        view=centre.columns[0].current_name,
        is_advanced=panel.parameters.is_advanced,
    )


def restore_snapshot(snapshot: SettingsSnapshot, sources: SettingsSources) -> None:
    """Set everything as it was when the snapshot was taken. A model that has gone since is left out."""
    chosen, panel, media, centre = sources
    if snapshot.model and snapshot.model != chosen.model.name:
        chosen.model.choose(snapshot.model)
    chosen.strategy.restore(snapshot.strategy)
    chosen.cache.restore(snapshot.cache)
    chosen.drafts.restore(snapshot.drafts)
    panel.prompt.set_prompt(snapshot.prompt, snapshot.is_chat)
    media.set_paths(snapshot.media)
    chosen.seed.spin.setValue(snapshot.seed)
    chosen.seed.lock_button.setChecked(snapshot.is_seed_locked)
    panel.parameters.set_advanced(snapshot.is_advanced)
    centre.show_view(snapshot.view)
