"""Sets several things at once: by their names, from an example, from a preset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.control.borrowed_settings import EXAMPLE, BorrowedSettings
from app.control.media import MediaController
from app.control.requests import ChosenSettings
from app.panels.setup import SetupPanel
from app.state import conversation
from app.state.what_if import STAGES
from app.state.worker_messages import ModelInfo, RunRequest
from app.storage.examples import ExamplePrompt
from app.storage.presets import Preset
from app.storage.settings import LastChoices
from resources.language import tr


class SettingsController(QObject):
    """`notice(text)` tells what could not be set; `changed` that something was, by whomever; `panelRequested` asks for
    the panel to be open."""

    notice = Signal(str)
    changed = Signal()
    panelRequested = Signal()

    def __init__(
        self,
        chosen: ChosenSettings,
        panel: SetupPanel,
        media: MediaController,
        borrowed: BorrowedSettings,
        stored: LastChoices,
    ) -> None:
        super().__init__(panel)
        self._borrowed = borrowed
        self.example = ""
        """English title of the example that is set; empty for none."""
        self._chosen, self._panel, self._media, self._stored = chosen, panel, media, stored
        self._preset_extra: Mapping[str, Any] = {}
        self._restore()
        self._show_strategy()
        panel.prompt.exampleChosen.connect(self.apply_example)
        panel.example_bar.backRequested.connect(self.leave_example)
        borrowed.changed.connect(self._show_example_bar)
        chosen.strategy.chosen.connect(self._show_strategy)
        for part in (chosen.model, chosen.drafts, chosen.strategy, chosen.cache, chosen.seed, media):
            part.changed.connect(self.changed)
        panel.prompt.edited.connect(self.changed)

    def choose(self, model: str = "", strategy: str = "", cache: str = "", drafts: Sequence[str] = ()) -> list[str]:
        """Choose by name; gives back a sentence for each name that is unknown."""
        chosen = self._chosen
        return [
            *(chosen.model.choose(model) if model else ()),
            *(chosen.strategy.choose(strategy, "strategy") if strategy else ()),
            *(chosen.cache.choose(cache, "cache") if cache else ()),
            *chosen.drafts.choose(drafts),
        ]

    def set_values(self, new: Mapping[str, Any]) -> list[str]:
        """Settings of the strategy, the others at their defaults; gives back the names it has not."""
        return self._panel.parameters.set_values(new)

    def update_values(self, new: Mapping[str, Any]) -> None:
        """Settings on top of those that are changed already."""
        self.set_values({**self._panel.parameters.changed_values(), **new})

    @Slot(object)
    def order_stages(self, names: Sequence[str] | None) -> None:
        """The stages act in this order from now on; None: in the default one."""
        self.update_values({STAGES: names})

    @Slot(object)
    def apply_example(self, example: ExamplePrompt) -> None:
        """Set everything an example begins from. The settings before it are kept for `leave_example`.

        What the example does not state is at its default, so that no earlier setting changes its effect.
        """
        self._borrowed.borrow(EXAMPLE)
        problems = self.choose(example.model, example.strategy, example.cache, drafts=example.drafters)
        if example.strategy or example.params:
            self.set_values(example.params)
        self._chosen.cache.parameters.set_values({})
        if example.seed is not None:
            self._chosen.seed.spin.setValue(example.seed)
            self._chosen.seed.lock_button.setChecked(True)  # its caption speaks of the run with this seed
        self._panel.prompt.set_prompt(example.text, example.is_chat)
        self._media.set_paths(example.files)
        self._panel.set_summary(tr(example.about) or tr(self._chosen.strategy.strategy.summary))
        self.show_example_title(example.title)
        self._borrowed.mark_applied()
        if problems:
            self.notice.emit(" ".join(problems))

    def show_example_title(self, title: str) -> None:
        """Show which example is set, by its English title; nothing for an empty one."""
        self.example = title
        if title:
            self._panel.example_bar.show_example(tr(title))

    @Slot()
    def leave_example(self) -> None:
        """Restore the settings from before the example."""
        self._borrowed.give_back(EXAMPLE)

    @Slot()
    def _show_example_bar(self) -> None:
        is_set = self._borrowed.is_lent_to(EXAMPLE)
        self._panel.example_bar.setVisible(is_set)
        if not is_set:
            self.example = ""

    @Slot(object)
    def apply_request(self, request: RunRequest) -> None:
        """Everything that a run was set to, its prompt too; what is not here (any more) is told."""
        problems = self.choose(request.model, request.strategy, request.cache, request.draft_names)
        unknown: list[str] = []
        if self._chosen.strategy.name == request.strategy:
            unknown += self.set_values(request.settings)
        if self._chosen.cache.name == request.cache:
            unknown += self._chosen.cache.parameters.set_values(request.cache_options)
        self._chosen.seed.spin.setValue(request.seed)
        self._chosen.seed.lock_button.setChecked(True)  # so that it can be run as it was
        text = request.prompt if isinstance(request.prompt, str) else conversation.last_user_message(request.prompt)
        self._panel.prompt.set_prompt(text, is_chat=not isinstance(request.prompt, str))
        self._media.set_paths([str(path) for path in request.media])
        if unknown:
            problems.append(tr("There is no setting {names} here.").format(names=", ".join(unknown)))
        if problems:
            self.notice.emit(" ".join(problems))

    def apply_preset(self, preset: Preset) -> None:
        """Strategy and settings of a preset; what has no editor is kept for the next save."""
        problems = self.choose(strategy=preset.strategy, drafts=preset.drafters)
        self.set_values(preset.values)
        self._preset_extra = preset.extra
        if text := " ".join([*problems, *([preset.notice] if preset.notice else [])]):
            self.notice.emit(text)

    def as_preset(self, name: str) -> Preset:
        """The settings as they are now, under a name."""
        chosen = self._chosen
        values = self._panel.parameters.values()
        return Preset(name, chosen.strategy.name, values, self._preset_extra, drafters=chosen.drafts.names)

    @Slot(object)
    def show_model(self, info: ModelInfo) -> None:
        """The chosen model is loaded: its refusals, its own defaults, its chat template."""
        self._chosen.strategy.show_unsupported(info.unsupported_strategies)
        self._chosen.cache.show_unsupported(info.unsupported_caches)
        self._panel.parameters.set_unsupported(info.unsupported_settings)
        self._panel.parameters.set_model_defaults(info.defaults)
        reason = "" if info.has_chat else tr("{title} has no chat template.").format(title=info.title or info.name)
        self._panel.prompt.set_chat_available(reason)

    @Slot()
    def focus_prompt(self) -> None:
        """Put the cursor into the prompt."""
        self.panelRequested.emit()
        self._panel.prompt.editor.setFocus()

    def focus_setting(self, name: str) -> None:
        """Put the cursor into a setting of the strategy or the cache, whatever hides it. Raises KeyError."""
        panel = self._panel.cache_parameters
        if name in self._panel.parameters.rows:
            panel = self._panel.parameters
        row = panel.rows[name]
        self.panelRequested.emit()
        if row.parameter.advanced:
            panel.set_advanced(True)
        row.editor.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._panel.scroll_into_view(row)

    @Slot(str)
    def write_prompt(self, text: str) -> None:
        """Put `text` and the cursor into the prompt."""
        self._panel.prompt.set_prompt(text)
        self.focus_prompt()

    def store_settings(self) -> None:
        """Write the user's own settings into those that are saved, whatever a tour or an example has set meanwhile."""
        self._borrowed.own_settings.write(self._stored)

    @contextmanager
    def updated_settings(self) -> Iterator[None]:
        """Let the settings hold everything that is set while they are written.

        What is remembered of each strategy and cache is taken back afterwards: it is meant for the next start, and
        would take the place of what is set when the reader comes back to that strategy.
        """
        stored = self._stored.values, self._stored.cache_values
        before = [dict(values) for values in stored]
        self.store_settings()
        try:
            yield
        finally:
            for values, previous in zip(stored, before, strict=True):
                values.clear()
                values.update(previous)

    def _restore(self) -> None:
        stored, seed = self._stored, self._chosen.seed
        self._chosen.drafts.restore(stored.drafts)
        seed.spin.setValue(stored.seed)
        seed.lock_button.setChecked(stored.seed_locked)
        self._panel.prompt.set_prompt(stored.prompt, stored.chat)
        self._panel.prompt.editor.document().clearUndoRedoStacks()  # nobody has typed that just now

    @Slot()
    def _show_strategy(self) -> None:
        self._preset_extra = {}
        self._panel.set_summary(tr(self._chosen.strategy.strategy.summary))
