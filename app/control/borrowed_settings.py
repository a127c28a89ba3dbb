"""Temporary changes of the settings: a tour, an example, the guessing game or a demo run borrows them and gives them
back.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from decodescope.app.control.registry_choice import RegistryChoiceSnapshot
    from decodescope.app.control.requests import ChosenSettings, PromptMedia
    from decodescope.app.panels.centre import Centre
    from decodescope.app.panels.setup_panel import SetupPanel
    from decodescope.app.storage.settings import LastChoices


class SettingsSources(NamedTuple):
    """The parts of the window that hold settings."""

    chosen: ChosenSettings
    panel: SetupPanel
    media: PromptMedia
    centre: Centre


class SettingsSnapshot(NamedTuple):
    """Immutable copy of the settings."""

    model: str
    drafts: tuple[str, ...]
    strategy: RegistryChoiceSnapshot
    cache: RegistryChoiceSnapshot
    prompt: str
    is_chat: bool
    text_prompt: str
    """The text prompt, which is kept while a message is written."""
    media: tuple[str, ...]
    seed: int
    is_seed_locked: bool
    view: str
    open_groups: Mapping[str, bool]
    """Which groups of parameters are open or closed."""

    def write(self, choices: LastChoices) -> None:
        """Write the settings except the view into the saved ones."""
        choices.model, choices.drafts = self.model, list(self.drafts)
        choices.values, choices.cache_values = _values(self.strategy), _values(self.cache)
        choices.strategy, choices.cache = self.strategy.name, self.cache.name
        choices.prompt, choices.chat = self.text_prompt, self.is_chat  # the message is saved with its chat
        if choices.media != list(self.media):  # otherwise keep the list object shared with the window
            choices.media = list(self.media)
        choices.seed, choices.seed_locked = self.seed, self.is_seed_locked


def _values(choice: RegistryChoiceSnapshot) -> dict[str, dict[str, Any]]:
    """Return changed values by strategy or cache name, as in the settings file."""
    return deepcopy({**choice.stored, choice.name: dict(choice.changed)})


def take_snapshot(sources: SettingsSources) -> SettingsSnapshot:
    """Copy the current settings."""
    chosen, panel, media, centre = sources
    return SettingsSnapshot(
        model=chosen.model.name,
        drafts=tuple(chosen.drafts.selected_names),
        strategy=chosen.strategy.snapshot(),
        cache=chosen.cache.snapshot(),
        prompt=panel.prompt.editor.toPlainText(),
        is_chat=panel.prompt.is_chat,
        text_prompt=panel.prompt.text_prompt,
        media=tuple(media.paths),
        seed=chosen.seed.spin.value(),
        is_seed_locked=chosen.seed.is_locked,
        view=centre.columns[0].current_name,
        open_groups=panel.parameters.open_groups,
    )


def restore_snapshot(snapshot: SettingsSnapshot, sources: SettingsSources) -> None:
    """Restore a snapshot; a model that no longer exists is skipped."""
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
    panel.parameters.restore_groups(snapshot.open_groups)
    centre.show_view(snapshot.view)


TOUR, EXAMPLE, GUESS, DEMO = "tour", "example", "guess", "demo"
"""Names of the borrowers."""


class BorrowedSettings(QObject):
    """Stores the user's own settings while something else uses the controls.

    `changed` is emitted when settings are borrowed or given back. Only the user's own settings (`own_settings`) are
    saved to the disk meanwhile, so that neither closing the window nor a crash makes borrowed ones permanent.
    """

    changed = Signal()

    def __init__(self, sources: SettingsSources) -> None:
        super().__init__(sources.centre)
        self._sources = sources
        self._loans: dict[str, SettingsSnapshot] = {}
        self._applied_example: SettingsSnapshot | None = None
        """The settings right after an example was applied; None without an example."""

    @property
    def loans(self) -> Mapping[str, SettingsSnapshot]:
        """The settings saved for each borrower, in borrowing order."""
        return self._loans

    @property
    def own_settings(self) -> SettingsSnapshot:
        """The user's own settings. An example that was changed by hand counts as the user's own."""
        loans = [loan for borrower, loan in self._loans.items() if borrower != EXAMPLE or not self.is_example_changed]
        return loans[0] if loans else take_snapshot(self._sources)

    @property
    def is_example_changed(self) -> bool:
        """Whether the settings were changed by hand after an example was applied."""
        if self._applied_example is None or EXAMPLE not in self._loans:
            return False
        later = list(self._loans)[list(self._loans).index(EXAMPLE) + 1 :]
        now = self._loans[later[0]] if later else take_snapshot(self._sources)
        return _without_view(now) != _without_view(self._applied_example)

    def borrow(self, borrower: str) -> None:
        """Save the current settings for `borrower`, unless they are saved already."""
        if borrower == EXAMPLE and self.is_example_changed:
            del self._loans[EXAMPLE]
        if borrower not in self._loans:
            self._loans[borrower] = take_snapshot(self._sources)
            self.changed.emit()

    def mark_applied(self) -> None:
        """Remember what an example set, so that a later change by hand is noticed."""
        self._applied_example = take_snapshot(self._sources)

    def give_back(self, borrower: str) -> None:
        """Restore the settings from before `borrower` took them; drop those of later borrowers."""
        snapshot = self._loans.get(borrower)
        if snapshot is None:
            return
        for later in list(self._loans)[list(self._loans).index(borrower) :]:
            del self._loans[later]
        restore_snapshot(snapshot, self._sources)
        self.changed.emit()

    def give_back_view(self, borrower: str) -> None:
        """Restore only the view, for a borrower that changes nothing else."""
        snapshot = self._loans.pop(borrower, None)
        if snapshot is not None:
            self._sources.centre.show_view(snapshot.view)
            self.changed.emit()

    def state(self) -> BorrowedState:
        """Return what `resume` needs in a rebuilt window (another language)."""
        return BorrowedState(take_snapshot(self._sources), dict(self._loans), self._applied_example)

    def resume(self, state: BorrowedState) -> None:
        """Restore the state of another window. Does nothing if nothing was borrowed there."""
        if state.loans:
            restore_snapshot(state.current, self._sources)
            self._loans, self._applied_example = dict(state.loans), state.as_applied
            self.changed.emit()


class BorrowedState:
    """State of the borrowed settings, independent of widgets."""

    def __init__(
        self,
        current: SettingsSnapshot,
        loans: Mapping[str, SettingsSnapshot],
        as_applied: SettingsSnapshot | None,
    ) -> None:
        self.current, self.loans, self.as_applied = current, loans, as_applied


def _without_view(snapshot: SettingsSnapshot) -> tuple[object, ...]:
    """Return the settings that count as a change: not the view, and the seed only if it is locked."""
    seed = snapshot.seed if snapshot.is_seed_locked else None
    return (
        snapshot.model, snapshot.drafts, snapshot.strategy.name, snapshot.strategy.changed, snapshot.cache.name,
        snapshot.cache.changed, snapshot.prompt, snapshot.is_chat, snapshot.media, snapshot.is_seed_locked, seed,
    )  # fmt: skip
