"""Generation configs as files: `<name>.json`, several to a folder, in the format of generation_config.json.

`GenerationConfig.from_pretrained(folder, "<name>.json")` reads them, and files of `save_pretrained` are read here. What
a GenerationConfig cannot express (a strategy without flags, options of its own) is stored under `decodescope`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from decodescope.app.state.setting_values import invalid_reason
from decodescope.app.storage.json_files import StorageError, UnreadableError, read_object, write_json
from decodescope.app.storage.settings import is_name
from decodescope.core import strategies
from decodescope.core.common.program_name import NAME
from decodescope.core.errors import DecodescopeError, ParameterError
from decodescope.core.strategies import Strategy
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import join_names, mark, tr

OWN_KEY = NAME
FORMER_NAMES = {
    "Careful": "Predictable", "Playful": "Surprising", "llama.cpp": "Balanced", "KoboldCpp": "Wide choice",
}  # fmt: skip
"""Earlier names of bundled presets, which scripts may use."""
_METADATA_KEYS = {"transformers_version", "_from_model_config"}


class PresetProblem(DecodescopeError):
    """A file cannot be used, or a name cannot be saved: `cause` and `remedy` say why and what to do."""

    title = mark("The preset cannot be used")


class Preset(NamedTuple):
    """A named set of settings. `extra` holds the file's keys without an editor: kept, reported and saved again."""

    name: str
    strategy: str
    values: Mapping[str, Any] = MappingProxyType({})
    extra: Mapping[str, Any] = MappingProxyType({})
    path: Path | None = None
    drafters: tuple[str, ...] = ()
    """Names of draft models, if the strategy uses any."""
    rejected: tuple[str, ...] = ()
    """Why some of its values were left out, one sentence each."""
    program: str = ""
    """Name of another program, if the file is in that program's format."""
    unsupported: tuple[str, ...] = ()
    """That program's settings without a counterpart here, one sentence each."""

    @property
    def notice(self) -> str:
        """Notes for the user on `extra` and `rejected`; empty if there are none."""
        names = [name for name in self.extra if name not in _METADATA_KEYS]
        extra_note = tr(
            "“{name}” also contains settings that are not shown here. They stay in the file: {names}."
        ).format(name=self.name, names=join_names(names))
        left_out = tr("“{name}” has unusable values, which are left at their defaults: {reasons}").format(
            name=self.name, reasons=" ".join(self.rejected)
        )
        read = tr("“{name}” was read as settings of {program}.").format(name=self.name, program=self.program)
        foreign = [read, *self.unsupported] if self.unsupported else []
        return " ".join([*foreign, *[extra_note] * bool(names), *[left_out] * bool(self.rejected)])


def folder_presets(folder: Path) -> list[tuple[str, Path]]:
    """Return (name, file) of every preset in a folder, by name; an absent or unreadable folder has none."""
    with suppress(OSError):
        return [(path.stem, path) for path in sorted(folder.glob("*.json")) if path.is_file()]
    return []


def load_preset(path: Path) -> Preset:
    """Load a preset or any generation_config.json. Raises PresetProblem."""
    from decodescope.app.storage import programs

    try:
        data = programs.read_text_settings(path) if programs.is_text_settings(path) else read_object(path)
    except FileNotFoundError:
        raise PresetProblem(
            tr("{name} no longer exists.").format(name=path.name), tr("Choose a generation_config.json file.")
        ) from None
    except (UnreadableError, programs.TextSettingsError, OSError) as error:
        raise PresetProblem(
            tr("{name} cannot be read: {error}.").format(name=path.name, error=system_error_reason(error)),
            tr("Choose a generation_config.json file."),
        ) from None
    if (program := programs.program_of(data)) is None:
        if not programs.has_settings(data):
            raise PresetProblem(
                tr("{name} contains no settings.").format(name=path.name),
                tr("Supported files: generation_config.json, and settings of {programs}.").format(
                    programs=join_names(programs.readable_programs())
                ),
            )
        return preset_from_config(path.stem, data, path)
    config, without = programs.import_settings(program, data)
    return preset_from_config(path.stem, config, path)._replace(program=program.name, unsupported=without)


def delete_preset(path: Path) -> None:
    """Delete a saved preset; ignore one that no longer exists. Raises StorageError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            tr("{path} cannot be deleted: {why}.").format(path=path, why=system_error_reason(error)),
            tr("Delete it yourself."),
        ) from error


def preset_from_config(name: str, data: Mapping[str, Any], path: Path | None = None) -> Preset:
    """Create a preset from the plain data of a GenerationConfig. Raises PresetProblem for an unknown strategy."""
    own = _own_section(data)
    invalid_notice = _invalid_entries_notice(data, own)
    data, mode, refused = _usable_mode(data)
    refused |= {OWN_KEY: invalid_notice} if invalid_notice else {}
    strategy = _find_strategy(own["strategy"] or mode, name)
    settings = {**data, **own["options"]}
    values = {p.name: settings[p.name] for p in strategy.parameters if settings.get(p.name) is not None}
    refused |= {
        p.name: why for p in strategy.parameters if p.name in values and (why := invalid_reason(p, values[p.name]))
    }
    covered = {OWN_KEY, *values, *(key for key, value in strategy.flags.items() if data.get(key) == value)}
    extra = {key: value for key, value in data.items() if key not in covered and value is not None}
    drafters = tuple(own["drafters"]) if strategy.takes_drafters else ()
    usable = {name: value for name, value in values.items() if name not in refused}
    return Preset(name, strategy.name, usable, extra, path, drafters, tuple(refused.values()))


def _own_section(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data under the program's own key, with empty values for what is missing or of the wrong type."""
    found = data.get(OWN_KEY)
    own = found if isinstance(found, dict) else {}
    strategy, options, drafters = own.get("strategy"), own.get("options"), own.get("drafters")
    return {
        "strategy": strategy if isinstance(strategy, str) else "",
        "options": options if isinstance(options, dict) else {},
        "drafters": [draft for draft in drafters if is_name(draft)] if isinstance(drafters, list) else [],
    }


def _invalid_entries_notice(data: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Return a sentence naming the entries of the wrong type under the program's own key; empty if there are none."""
    found = data.get(OWN_KEY) or {}
    if not isinstance(found, dict):
        return tr("“{key}” is not an object with names and values.").format(key=OWN_KEY)
    odd = [key for key in own if found.get(key) not in (None, own[key])]
    return tr("Invalid entries under “{key}”: {names}.").format(key=OWN_KEY, names=join_names(odd)) if odd else ""


def preset_to_config(
    strategy_name: str,
    values: Mapping[str, Any],
    extra: Mapping[str, Any] | None = None,
    drafters: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the settings as plain data of a GenerationConfig; flags that switch something off are omitted."""
    strategy = strategies.registry[strategy_name]
    options = {p.name: values[p.name] for p in strategy.parameters if p.option and p.name in values}
    flags = {key: value for key, value in strategy.flags.items() if value is not None}
    config = {key: value for key, value in values.items() if key not in options and value is not None}
    data = {**(extra or {}), **flags, **config}
    own: dict[str, Any] = {"options": options} if options else {}
    if drafters:
        own["drafters"] = list(drafters)
    if mode_of(data) not in {strategy.name, *strategy.aliases}:
        own["strategy"] = strategy.name
    return {**data, OWN_KEY: own} if own else data


def save_preset(folder: Path, preset: Preset) -> Path:
    """Write `<name>.json` into `folder`. Raises PresetProblem for an invalid file name or a write error."""
    name = preset.name.strip()
    if not name or re.search(r'[<>:"/\\|?*\x00-\x1f]', name) or name.startswith("."):
        raise PresetProblem(
            tr("“{name}” is not a valid file name.").format(name=preset.name),
            tr("Use letters, digits, spaces and dashes."),
        )
    path = folder / f"{name}.json"
    try:
        write_json(path, preset_to_config(preset.strategy, preset.values, preset.extra, preset.drafters))
    except StorageError as error:
        raise PresetProblem(error.cause, error.remedy) from error
    return path


def mode_of(data: Mapping[str, Any]) -> str:
    """Return the strategy that a configuration's flags select, by transformers' rule in `_get_generation_mode`. Raises
    ParameterError for a flag that is not a number.
    """
    return strategies.select(None, data).name


def _usable_mode(data: Mapping[str, Any]) -> tuple[dict[str, Any], str, dict[str, str]]:
    """Return the data usable for selecting a strategy, that strategy, and why the rest cannot be used."""
    left: dict[str, Any] = dict(data)
    refused: dict[str, str] = {}
    while True:
        try:
            return left, mode_of(left), refused
        except ParameterError as error:
            refused[error.parameter] = error.cause
            del left[error.parameter]


def _find_strategy(name: str, preset: str) -> Strategy:
    try:
        return strategies.registry[name]
    except KeyError:
        known = join_names(tr(strategy.title) for strategy in strategies.registry.values())
        words = name.replace("_", " ")
        raise PresetProblem(
            tr("“{preset}” uses {strategy}, which is not available here.").format(preset=preset, strategy=words),
            tr("Available: {known}.").format(known=known),
        ) from None
