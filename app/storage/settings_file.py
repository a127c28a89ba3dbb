"""The settings file: read value by value, written atomically, shared between windows.

No content can keep the program from starting: unusable values are reset to defaults, a copy of the original file is
kept, and a notice reports both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import field
from pathlib import Path
from typing import Any

from decodescope import core
from decodescope.app.state.setting_values import invalid_reason
from decodescope.app.storage.json_files import (
    UnreadableError,
    exclusive_writer,
    keep_copy,
    read_object,
    remove_stale_parts,
    set_aside,
    write_json,
)
from decodescope.app.storage.settings import (
    LANGUAGE_CHOICES,
    SECTIONS,
    AppearanceSection,
    MigrationError,
    Settings,
    SettingsSection,
    version_of,
)
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.common.program_name import user_folder
from decodescope.resources.language import join_names, tr

_ABSENT = object()


def merge_settings(
    base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any], unordered_keys: Collection[str] = ()
) -> dict[str, Any]:
    """Return `theirs` with every change made in `mine` since `base`; `mine` wins where both changed one value.

    Mappings are merged recursively; lists under a name in `unordered_keys` are merged entry by entry.
    """
    names = [*theirs, *(name for name in mine if name not in theirs)]
    found = {name: _merge_value(name, base, mine, theirs, unordered_keys) for name in names}
    return {name: value for name, value in found.items() if value is not _ABSENT}


def _merge_value(
    name: str, base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any], sets: Collection[str]
) -> Any:
    was, own, other = (side.get(name, _ABSENT) for side in (base, mine, theirs))
    if own == was:
        return other
    if isinstance(own, Mapping) and isinstance(other, Mapping):
        return merge_settings(was if isinstance(was, Mapping) else {}, own, other, sets)
    if name in sets and isinstance(own, list) and isinstance(other, list):
        return _merge_lists(was if isinstance(was, list) else [], own, other)
    return own


def _merge_lists(base: list[Any], mine: list[Any], theirs: list[Any]) -> list[Any]:
    merged = [entry for entry in theirs if entry in mine or entry not in base]
    return merged + [entry for entry in mine if entry not in merged and entry not in base]


FILE_NAME = "settings.json"


def default_folder() -> Path:
    """Return the folder of this user's settings."""
    return user_folder("config")


def default_data_folder() -> Path:
    """Return the folder of this user's data other than settings."""
    return user_folder("data")


@plain()
class SettingsFileContents:
    """The content of a settings file: usable values, unknown entries of other versions, and the names of the rest."""

    settings: Settings = field(default_factory=Settings)
    unknown: dict[str, Any] = field(default_factory=dict)
    reset_names: list[str] = field(default_factory=list)
    """Names of values reset to their defaults."""
    newer_sections: list[str] = field(default_factory=list)
    """Names of sections written by a newer version."""
    migrated_sections: list[str] = field(default_factory=list)
    """Names of sections migrated from an older version."""

    def to_plain_data(self) -> dict[str, Any]:
        """Return the content as stored in a file."""
        return {
            **self.unknown,
            **{name: {**self.unknown.get(name, {}), **own} for name, own in _plain_sections(self.settings)},
        }


@plain()
class SettingsStore:
    """The settings of one folder; `notices` lists in words what had to be repaired on reading."""

    folder: Path = field(default_factory=default_folder)
    settings: Settings = field(default_factory=Settings)
    notices: list[str] = field(default_factory=list)
    is_read_only: bool = False
    """Whether nothing is written: a picture or a demo from the command line must not change settings."""
    _saved: dict[str, Any] = field(default_factory=dict)
    """The data last read or written by this window: values that differ from it were changed here."""

    @property
    def path(self) -> Path:
        """Path of the JSON file."""
        return self.folder / FILE_NAME

    @property
    def data_folder(self) -> Path:
        """Folder for data other than settings: the user's data folder, or the settings folder if that is not the
        default one.
        """
        return default_data_folder() if self.folder == default_folder() else self.folder

    @property
    def saved_language(self) -> str:
        """The language stored in the file, read before everything else, so that later notices are in that language."""
        with suppress(OSError, UnreadableError):
            section = read_object(self.path).get("appearance")
            if isinstance(section, dict) and (stored := section.get("language")) in LANGUAGE_CHOICES:
                return str(stored)
        return AppearanceSection().language

    @property
    def presets_folder(self) -> Path:
        """Folder of saved generation configs."""
        return self.folder / "presets"

    def load(self) -> Settings:
        """Read the file; unreadable values are replaced by defaults and reported in `notices`."""
        remove_stale_parts(self.folder)
        remove_stale_parts(self.presets_folder)
        found = self._read()
        self.settings = found.settings
        self._saved = deepcopy(dict(_plain_sections(self.settings)))
        return self.settings

    def save(self) -> None:
        """Merge the changes made here into the current file and write it. Raises StorageError."""
        if self.is_read_only:
            return
        with exclusive_writer(self.folder):
            theirs, mine = self._read(), dict(_plain_sections(self.settings))
            write_json(self.path, merge_settings(self._saved, mine, theirs.to_plain_data(), _UNORDERED_KEYS))
            self._saved = deepcopy(mine)

    def save_changes(self) -> None:
        """Save if something has changed since the last read or write. Raises StorageError."""
        if dict(_plain_sections(self.settings)) != self._saved:
            self.save()

    def drop_invalid_values(self) -> None:
        """Drop saved parameter values that no editor can show. Separate from `load`, because it imports every
        strategy.
        """
        choices = self.settings.choices
        bad = _drop_invalid(choices.values, core.strategies.registry, "values")
        bad += _drop_invalid(choices.cache_values, core.caches.registry, "cache_values")
        self._report_problems(SettingsFileContents(reset_names=bad))

    def _read(self) -> SettingsFileContents:
        try:
            found = _parse_contents(read_object(self.path))
        except FileNotFoundError:
            return SettingsFileContents()
        except UnreadableError as problem:
            backup_note = set_aside(self.path)
            self._add_notice(
                tr("The settings file could not be read ({problem}). Defaults are used. {kept}").format(
                    problem=problem, kept=backup_note
                )
            )
            return SettingsFileContents()
        self._report_problems(found)
        return found

    def _report_problems(self, contents: SettingsFileContents) -> None:
        """Keep a copy of the file if saving will change its content, and report why."""
        if contents.migrated_sections and not contents.reset_names:
            keep_copy(self.path, "old")
        if contents.newer_sections:
            names = join_names(f"“{name}”" for name in contents.newer_sections)
            backup_note = keep_copy(self.path, "newer")
            self._add_notice(
                tr(
                    "The settings under {names} were written by a newer version of Decodescope; this "
                    "version uses those it supports. {kept}"
                ).format(names=names, kept=backup_note)
            )
        if contents.reset_names:
            backup_note = keep_copy(self.path)
            self._add_notice(
                tr("Invalid values in the settings file were reset to defaults: {names}. {kept}").format(
                    names=join_names(contents.reset_names), kept=backup_note
                )
            )

    def _add_notice(self, words: str) -> None:
        if words not in self.notices:
            self.notices.append(words)


_UNORDERED_KEYS = frozenset().union(*(section.unordered_keys() for section in SECTIONS.values()))


def _plain_sections(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, getattr(settings, name).write()) for name in SECTIONS)


def _parse_contents(data: dict[str, Any]) -> SettingsFileContents:
    """Parse every readable section, value by value."""
    found = SettingsFileContents(unknown={name: value for name, value in data.items() if name not in SECTIONS})
    for name, section in SECTIONS.items():
        if name in data:
            _parse_section(found, name, section, data[name])
    return found


def _parse_section(contents: SettingsFileContents, name: str, section: type[SettingsSection], data: Any) -> None:
    if not isinstance(data, dict):
        contents.reset_names.append(name)
        return
    try:
        value, bad = section.read(data)
        version = version_of(data)
    except MigrationError as error:
        contents.reset_names.append(f"{name} ({error})")
        return
    setattr(contents.settings, name, value)
    contents.unknown[name] = section.unknown_entries(data) if version >= section.version else {}
    contents.reset_names += [f"{name}.{key}" for key in bad]
    if version != section.version:
        (contents.newer_sections if version > section.version else contents.migrated_sections).append(name)


def _drop_invalid(chosen: dict[str, dict[str, Any]], known: Mapping[str, Any], key: str) -> list[str]:
    """Remove unusable values from {strategy or cache: {parameter: value}} and return their names."""
    bad = []
    for name, values in chosen.items():
        for parameter in known[name].parameters if name in known else ():
            if parameter.name in values and invalid_reason(parameter, values[parameter.name]):
                del values[parameter.name]
                bad.append(f"choices.{key}.{name}.{parameter.name}")
    return bad
