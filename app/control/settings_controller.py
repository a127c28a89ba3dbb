"""Presets: opened from and saved to the disk by hand, and settings written as other programs have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal, Slot

import resources
from app.control.borrowed_settings import EXAMPLE, BorrowedSettings
from app.control.media import MediaController
from app.control.messages import Messages
from app.control.requests import ChosenSettings
from app.panels.preset_bar import PresetBar
from app.panels.setup_panel import SetupPanel
from app.state import conversation
from app.state.setting_changes import STAGES
from app.state.worker_messages import ModelInfo, RunRequest
from app.storage import presets
from app.storage.examples import ExamplePrompt
from app.storage.json_files import StorageError, write_json
from app.storage.presets import Preset
from app.storage.settings import LastChoices
from app.widgets.file_dialogs import open_file_dialog, open_save_dialog
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


class PresetLibrary(QObject):
    """Opens the dialogs and does what was chosen in them. `folder` is where presets are saved."""

    def __init__(self, bar: PresetBar, folder: Path, setup: SettingsController, messages: Messages) -> None:
        super().__init__(bar)
        self._bar, self._folder, self._setup, self._messages = bar, folder, setup, messages
        bar.chosen.connect(self.use_preset)
        bar.saveRequested.connect(self.save_preset)
        bar.openRequested.connect(self.open_preset)
        bar.deleteRequested.connect(self.delete_preset)
        bar.exportRequested.connect(self.choose_export_path)
        self.show_presets()

    @Slot()
    def open_preset(self) -> None:
        """Choose a file of settings: a generation config, or another program's."""
        kinds = tr("Settings (*.json *.yaml *.yml *.ini *.modelfile Modelfile*)")
        open_file_dialog(
            self._bar, tr("Open settings: a generation config, llama.cpp's, KoboldCpp's"), kinds, self.use_preset_file
        )

    @Slot(object)
    def use_preset(self, path: Path) -> None:
        """Take the settings of a preset's file."""
        try:
            self._setup.apply_preset(presets.load_preset(path))
        except presets.PresetProblem as problem:
            self._show_error(problem)

    @Slot()
    def save_preset(self) -> None:
        """Ask for a name and save the settings under it."""
        from PySide6.QtWidgets import QInputDialog

        dialog = QInputDialog(self._bar.window())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(tr("Save as a preset"))
        dialog.setLabelText(tr("Name of the preset"))
        dialog.textValueSelected.connect(self.save_preset_as)
        dialog.open()

    @Slot(str)
    def save_preset_as(self, name: str) -> None:
        """Save the settings under `name`."""
        try:
            presets.save_preset(self._folder, self._setup.as_preset(name))
        except presets.PresetProblem as problem:
            self._show_error(problem)
        self.show_presets()

    @Slot(object)
    def delete_preset(self, path: Path) -> None:
        """Delete a saved preset."""
        try:
            presets.delete_preset(path)
        except StorageError as problem:
            self._show_error(problem)
        self.show_presets()

    def show_presets(self) -> None:
        """Bring the chips up to date with the folders."""
        self._bar.show_presets(*self._bundled_and_saved())

    def preset_files(self) -> Mapping[str, Path]:
        """The file of every preset by its name; a saved one of the same name takes a shipped one's place."""
        shipped, saved = self._bundled_and_saved()
        return {**dict(shipped), **dict(saved)}

    def _bundled_and_saved(self) -> tuple[Sequence[tuple[str, Path]], Sequence[tuple[str, Path]]]:
        """Shipped and saved ones, each with its file."""
        return presets.folder_presets(resources.path("presets")), presets.folder_presets(self._folder)

    def _show_error(self, problem: presets.PresetProblem | StorageError) -> None:
        self._messages.show_setup_error(tr(problem.title), problem.cause, problem.remedy)

    @Slot(str)
    def use_preset_file(self, path: str) -> None:
        """Take the settings of a file: a generation config, or settings of another program."""
        self.use_preset(Path(path))

    @Slot(str)
    def choose_export_path(self, program: str) -> None:
        """Ask where to write the settings as another program's."""
        kinds = tr("Settings of {program} (*.json)").format(program=program)
        title = tr("Save the settings for {program}").format(program=program)
        open_save_dialog(self._bar, title, f"{program}.json", kinds, partial(self.write_for, program))

    def write_for(self, program: str, path: str) -> None:
        """Write them, and say which of them that program does not have."""
        preset = self._setup.as_preset(program)
        from app.storage import programs

        data, without = programs.export_settings(programs.WRITABLE_PROGRAMS[program], preset.strategy, preset.values)
        try:
            write_json(Path(path), data)
        except StorageError as problem:
            self._show_error(problem)
            return
        if without:
            text = tr("{program} takes these otherwise, or not at all: {names}. All else was written.")
            title = tr("Some settings are not the same there")
            text = text.format(program=program, names=", ".join(without))
            notes = programs.export_notes(programs.WRITABLE_PROGRAMS[program], preset.values)
            self._messages.show_notice(" ".join([text, *notes]), title)
