"""Presets: opened from and saved to the disk by hand, and settings written as other programs have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Slot

import resources
from app.control.messages import Messages
from app.control.settings_setup import SettingsController
from app.panels.preset_bar import PresetBar
from app.storage import presets
from app.storage.json_files import StorageError, write_json
from app.widgets.ask_file import open_file_dialog, open_save_dialog
from resources.language import tr


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
