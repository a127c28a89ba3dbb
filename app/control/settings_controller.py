"""Presets: open, save and delete them, and export the settings for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal, Slot

from decodescope import core, resources
from decodescope.app.control.borrowed_settings import DEMO, EXAMPLE, BorrowedSettings
from decodescope.app.control.messages import Messages
from decodescope.app.control.requests import ChosenSettings, PromptMedia
from decodescope.app.panels.preset_bar import PresetBar
from decodescope.app.panels.setup_panel import SetupPanel
from decodescope.app.state import conversation
from decodescope.app.state.setting_changes import STAGES
from decodescope.app.state.text_formats import parse_grammar
from decodescope.app.state.worker_messages import GRAMMAR, ModelInfo, RunRequest, is_token_ids, is_turns
from decodescope.app.storage import presets
from decodescope.app.storage.drop_offers import is_grammar_file
from decodescope.app.storage.examples import ExamplePrompt
from decodescope.app.storage.json_files import StorageError, write_json
from decodescope.app.storage.presets import Preset
from decodescope.app.storage.settings import LastChoices
from decodescope.app.widgets.file_dialogs import open_file_dialog, open_save_dialog
from decodescope.core import explain_call_facts, inexact_facts, missing_facts, unshown_settings
from decodescope.core.strategies import Strategy
from decodescope.resources.language import join_names, tr


def _problems_of_settings(strategy: Strategy, settings: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return sentences on settings without an editor: those that are unknown, and those that would change the text."""
    unknown, unshown = unshown_settings(strategy, settings, names)
    return [
        *([tr("Unknown setting: {names}.").format(names=join_names(unknown))] if unknown else []),
        *([tr("The window has no setting for: {names}.").format(names=join_names(unshown))] if unshown else []),
    ]


class SettingsController(QObject):
    """Applies settings. `notice(text)`: what could not be set; `changed`: any setting changed; `panelRequested`: the
    panel must be open.
    """

    notice = Signal(str)
    changed = Signal()
    panelRequested = Signal()
    adaptersRequested = Signal(object)
    """The adapters of an applied run."""

    def __init__(
        self,
        chosen: ChosenSettings,
        panel: SetupPanel,
        media: PromptMedia,
        borrowed: BorrowedSettings,
        stored: LastChoices,
    ) -> None:
        super().__init__(panel)
        self._borrowed = borrowed
        self.example = ""
        """English title of the applied example; empty without one."""
        self._caption = ""
        """What the applied example shows, in English."""
        self._chosen, self._panel, self._media, self._stored = chosen, panel, media, stored
        self._preset_extra: Mapping[str, Any] = {}
        self._model_of_ids = ""
        self._restore()
        self._show_strategy()
        panel.prompt.exampleChosen.connect(self.apply_example)
        panel.example_bar.backRequested.connect(self.leave_example)
        borrowed.changed.connect(self._show_example_bar)
        chosen.strategy.chosen.connect(self._show_strategy)
        for part in (chosen.model, chosen.drafts, chosen.strategy, chosen.cache, chosen.seed, media):
            part.changed.connect(self.changed)
        panel.prompt.edited.connect(self.changed)
        chosen.model.changed.connect(self._on_model)

    def choose(self, model: str = "", strategy: str = "", cache: str = "", drafts: Sequence[str] = ()) -> list[str]:
        """Select by name; return a sentence for each unknown name."""
        chosen = self._chosen
        return [
            *(chosen.model.choose(model) if model else ()),
            *(chosen.strategy.choose(strategy, "strategy") if strategy else ()),
            *(chosen.cache.choose(cache, "cache") if cache else ()),
            *chosen.drafts.choose(drafts),
        ]

    def set_values(self, new: Mapping[str, Any]) -> list[str]:
        """Set parameters of the strategy, and the others to their defaults; return unknown names."""
        return self._panel.parameters.set_values(new)

    def update_values(self, new: Mapping[str, Any]) -> None:
        """Set parameters and keep the other changed ones."""
        self.set_values({**self._panel.parameters.changed_values(), **new})

    @Slot(object)
    def order_stages(self, names: Sequence[str] | None) -> None:
        """Set the order of the stages; None for the default order."""
        self.update_values({STAGES: names})

    @Slot(object)
    def apply_example(self, example: ExamplePrompt) -> None:
        """Apply an example. The previous settings are restored by `leave_example`.

        Settings that the example does not state get their defaults, so that earlier settings do not change its effect.
        """
        self._borrowed.borrow(EXAMPLE)
        problems = self.choose(example.model, example.strategy, example.cache, drafts=example.drafters)
        if example.strategy or example.params:
            self.set_values(example.params)
        self._chosen.cache.parameters.set_values({})
        if example.seed is not None:
            self._chosen.seed.spin.setValue(example.seed)
            self._chosen.seed.lock_button.setChecked(True)  # its description refers to the run with this seed
        self._panel.prompt.set_prompt(example.text, example.is_chat)
        self._media.set_paths(example.files)
        self._caption = example.about
        self._panel.set_summary(tr(example.about) or tr(self._chosen.strategy.strategy.summary))
        self.show_example_title(example.title)
        self._borrowed.mark_applied()
        if problems:
            self.notice.emit(" ".join(problems))

    def show_example_title(self, title: str) -> None:
        """Show the title of the applied example, given in English; nothing if empty."""
        self.example = title
        if title:
            self._panel.example_bar.show_example(tr(title))

    @Slot()
    def leave_example(self) -> None:
        """Restore the settings from before the example."""
        self._borrowed.give_back(EXAMPLE)

    @Slot()
    def _show_example_bar(self) -> None:
        """Show the example's title and caption while its settings are used; a tour has its own."""
        loans = list(self._borrowed.loans)
        is_used = loans[-1:] == [EXAMPLE] or (EXAMPLE in loans and loans[-1] == DEMO)
        self._panel.example_bar.setVisible(is_used)
        if EXAMPLE not in loans:
            self.example = self._caption = ""
        self._panel.set_summary((tr(self._caption) if is_used else "") or tr(self._chosen.strategy.strategy.summary))

    @Slot(object)
    def apply_request(self, request: RunRequest) -> None:
        """Apply all settings of a run and its prompt; emit `notice` for what is missing."""
        self.apply_settings(request)
        self._set_prompt(request)
        self._media.set_paths([str(path) for path in request.media])

    @Slot(object)
    def apply_saved_settings(self, settings: Mapping[str, Any]) -> None:
        """Apply settings that were saved with a chat, in the format of `app.state.request_json`. The seed stays: the
        next answer need not repeat an earlier one.
        """
        from decodescope.app.state.request_json import RequestFormatError, request_from_json

        try:
            self.apply_settings(request_from_json({**settings, "prompt": ""}), with_seed=False)
        except RequestFormatError as error:
            self.notice.emit(error.cause)

    def apply_settings(self, request: RunRequest, with_seed: bool = True) -> None:
        """Apply all settings of a run, but not its prompt; emit `notice` for what is missing."""
        problems = self.choose(request.model, request.strategy, request.cache, request.draft_names)
        strategy = self._chosen.strategy.strategy
        if self._chosen.strategy.name == request.strategy:
            unknown = self.set_values(request.settings)
            problems += _problems_of_settings(strategy, request.settings, unknown)
        if self._chosen.cache.name == request.cache:
            unknown = self._chosen.cache.parameters.set_values(request.cache_options)
            problems += _problems_of_settings(strategy, request.cache_options, unknown)
        facts = tuple(request.call_facts)
        if with_seed:
            self._chosen.seed.set_seed(request.seed, request.generator_state, is_known=not inexact_facts(facts))
        problems += explain_call_facts((*missing_facts(facts), *inexact_facts(facts)))
        self.adaptersRequested.emit(request.adapters)
        if problems:
            self.notice.emit(" ".join(problems))

    def _set_prompt(self, request: RunRequest) -> None:
        prompt = self._panel.prompt
        if is_token_ids(request.prompt):
            prompt.set_token_ids(tuple(request.prompt), request.prompt_text)
            self._model_of_ids = self._chosen.model.name
        elif is_turns(request.prompt):
            prompt.set_prompt(conversation.last_user_message(request.prompt), is_chat=True)
        else:
            prompt.set_prompt(str(request.prompt))

    @Slot()
    def _on_model(self) -> None:
        """Drop the token ids of another model's prompt."""
        if self._chosen.model.name != self._model_of_ids:
            self._panel.prompt.drop_token_ids()

    def apply_preset(self, preset: Preset) -> None:
        """Apply the strategy and values of a preset; values without an editor are kept for the next save."""
        problems = self.choose(strategy=preset.strategy, drafts=preset.drafters)
        self.set_values(preset.values)
        self._preset_extra = preset.extra
        if text := " ".join([*problems, *([preset.notice] if preset.notice else [])]):
            self.notice.emit(text)

    def as_preset(self, name: str) -> Preset:
        """Return the current settings as a preset."""
        chosen = self._chosen
        values = self._panel.parameters.all_values()
        return Preset(name, chosen.strategy.name, values, self._preset_extra, drafters=chosen.drafts.names)

    @Slot(object)
    def show_model(self, info: ModelInfo) -> None:
        """Show what the loaded model does not support, its defaults and its chat template."""
        self._chosen.strategy.show_unsupported(info.unsupported_strategies)
        self._chosen.cache.show_unsupported(info.unsupported_caches)
        self._panel.parameters.set_unsupported(info.unsupported_settings)
        self._panel.parameters.set_model_defaults(info.defaults)
        reason = "" if info.has_chat else tr("{title} has no chat template.").format(title=info.title or info.name)
        self._panel.prompt.set_chat_available(reason)

    @Slot()
    def focus_prompt(self) -> None:
        """Focus the prompt."""
        self.panelRequested.emit()
        self._panel.prompt.editor.setFocus()

    def use_grammar(self, grammar: Mapping[str, Any]) -> None:
        """Set the grammar, and show its editor."""
        if GRAMMAR not in self._panel.parameters.rows:
            strategy = tr(self._chosen.strategy.strategy.title)
            self.notice.emit(tr("{strategy} has no grammar. Choose another strategy.").format(strategy=strategy))
            return
        self.update_values({GRAMMAR: dict(grammar)})
        self.focus_setting(GRAMMAR)

    def focus_setting(self, name: str) -> None:
        """Focus a parameter of the strategy or the cache, expanding the panel if needed. Raises KeyError."""
        panel = self._panel.cache_parameters
        if name in self._panel.parameters.rows:
            panel = self._panel.parameters
        row = panel.rows[name]
        self.panelRequested.emit()
        panel.reveal(name)
        row.editor.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._panel.scroll_into_view(row)

    @Slot(str)
    def write_prompt(self, text: str) -> None:
        """Set the prompt to `text` and focus it."""
        self._panel.prompt.set_prompt(text)
        self.focus_prompt()

    def store_settings(self) -> None:
        """Write the user's own settings into the saved ones, not those of a tour or example."""
        self._borrowed.own_settings.write(self._stored)

    @contextmanager
    def updated_settings(self) -> Iterator[None]:
        """Update the saved settings from the controls while they are written.

        The stored values of each strategy and cache are restored afterwards: they are meant for the next start and
        would replace the current values when that strategy is selected again.
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
        self._panel.prompt.set_prompt(stored.prompt)
        self._panel.prompt.switch_mode(stored.chat)
        self._panel.prompt.editor.document().clearUndoRedoStacks()  # not an edit that can be undone

    @Slot()
    def _show_strategy(self) -> None:
        self._preset_extra = {}
        self._panel.set_summary(tr(self._chosen.strategy.strategy.summary))


class PresetLibrary(QObject):
    """Opens the dialogs and carries out the choice. `folder`: the folder of saved presets."""

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
        """Open a file dialog for settings: a generation config, or settings of another program."""
        kinds = tr("Settings (*.json *.yaml *.yml *.modelfile Modelfile* *.gbnf *.lark)")
        open_file_dialog(
            self._bar, tr("Open settings (generation config, llama.cpp, KoboldCpp)"), kinds, self.use_preset_file
        )

    @Slot(object)
    def use_preset(self, path: Path) -> None:
        """Apply the settings of a preset file."""
        try:
            self._setup.apply_preset(presets.load_preset(path))
        except presets.PresetProblem as problem:
            self._show_error(problem)

    @Slot()
    def save_preset(self) -> None:
        """Open a dialog for the name and save the settings under it."""
        from decodescope.app.widgets.confirmation import ask_text

        ask_text(self._bar, "presetName", tr("Save as preset"), tr("Preset name"), self.save_preset_as)

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
        """Update the preset buttons from the folders."""
        self._bar.show_presets(*self._bundled_and_saved())

    def preset_files(self) -> Mapping[str, Path]:
        """Return the file of every preset by name; a saved preset replaces a bundled one of the same name."""
        shipped, saved = self._bundled_and_saved()
        return {**dict(shipped), **dict(saved)}

    def _bundled_and_saved(self) -> tuple[Sequence[tuple[str, Path]], Sequence[tuple[str, Path]]]:
        """Return the bundled and the saved presets, each with its file."""
        return presets.folder_presets(resources.path("presets")), presets.folder_presets(self._folder)

    def _show_error(self, problem: presets.PresetProblem | StorageError) -> None:
        self._messages.show_setup_error(tr(problem.title), problem.cause, problem.remedy)

    @Slot(str)
    def use_preset_file(self, path: str) -> None:
        """Apply a settings file: a generation config, settings of another program, or a grammar."""
        if is_grammar_file(path):
            self.use_grammar_file(path)
        else:
            self.use_preset(Path(path))

    def use_grammar_file(self, path: str) -> None:
        """Set the grammar of the current strategy to that of a file."""
        name = Path(path).name
        try:
            grammar = parse_grammar(path)
            problem = core.grammar_problem(grammar)
        except ValueError as error:
            problem = str(error)
        if problem:
            self._messages.show_notice(problem, tr("{file} cannot be used as a grammar").format(file=name))
            return
        self._setup.use_grammar(grammar)

    @Slot(str)
    def choose_export_path(self, program: str) -> None:
        """Open a file dialog for the settings in the format of another program."""
        kinds = tr("Settings of {program} (*.json)").format(program=program)
        title = tr("Save settings for {program}").format(program=program)
        open_save_dialog(self._bar, title, f"{program}.json", kinds, partial(self.write_for, program))

    def write_for(self, program: str, path: str) -> None:
        """Write the settings and show those that the program does not support."""
        preset = self._setup.as_preset(program)
        from decodescope.app.storage import programs

        data, without = programs.export_settings(programs.WRITABLE_PROGRAMS[program], preset.strategy, preset.values)
        try:
            write_json(Path(path), data)
        except StorageError as problem:
            self._show_error(problem)
            return
        if without:
            text = tr("Not supported, or different, in {program}: {names}. All other settings were saved.")
            title = tr("Some settings differ")
            text = text.format(program=program, names=join_names(without))
            notes = programs.export_notes(programs.WRITABLE_PROGRAMS[program], preset.values)
            self._messages.show_notice(" ".join([text, *notes]), title)
