"""Generation configs as files: `<name>.json`, several to a folder, in the shape of generation_config.json.

`GenerationConfig.from_pretrained(folder, "<name>.json")` reads them, and files of `save_pretrained` are read here.
What a GenerationConfig cannot say (a strategy without flags, options of its own) stands under `tokenscope`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.storage.settings_file import write_json
from core import strategies
from core.errors import ParameterError
from core.strategies import Strategy

OWN_KEY = "tokenscope"
_HOUSEKEEPING = {"transformers_version", "_from_model_config"}


class PresetProblem(Exception):
    """A file that cannot be used, or a name that cannot be saved: `cause` and `remedy` say why and what to do."""

    title = "The preset cannot be used"

    def __init__(self, cause: str, remedy: str = "") -> None:
        self.cause, self.remedy = cause, remedy
        super().__init__(f"{cause} {remedy}".strip())


@dataclass(frozen=True, slots=True)
class Preset:
    """A named set of settings. `extra` are the file's keys that no editor shows: kept, told, and saved again."""

    name: str
    strategy: str
    values: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    drafters: tuple[str, ...] = ()
    """Names of draft models, where the strategy takes some."""

    @property
    def notice(self) -> str:
        """What the reader should know of `extra`; empty when there is nothing to tell."""
        names = [name for name in self.extra if name not in _HOUSEKEEPING]
        if not names:
            return ""
        return f"“{self.name}” also sets what no editor here shows, kept in the file as it is: {', '.join(names)}."


def folder_presets(folder: Path) -> list[tuple[str, Path]]:
    """(name, file) of every preset in a folder, by name; an absent folder has none."""
    return [(path.stem, path) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []


def load(path: Path) -> Preset:
    """Read a preset or any generation_config.json. Raises PresetProblem."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PresetProblem(f"{path.name} cannot be read: {error}.", "Choose a generation_config.json file.") from None
    if not isinstance(data, dict):
        raise PresetProblem(f"{path.name} holds no settings.", "Choose a generation_config.json file.")
    return from_config(path.stem, data, path)


def from_config(name: str, data: Mapping[str, Any], path: Path | None = None) -> Preset:
    """The preset that a GenerationConfig's plain data means. Raises PresetProblem for a strategy that is not here."""
    own = data.get(OWN_KEY) or {}
    try:
        strategy = _strategy(own.get("strategy") or mode_of(data), name)
    except ParameterError as error:
        raise PresetProblem(f"“{name}”: {error.cause}", error.remedy) from None
    told = {**data, **own.get("options", {})}
    values = {p.name: told[p.name] for p in strategy.parameters if told.get(p.name) is not None}
    covered = {OWN_KEY, *values, *(key for key, value in strategy.flags.items() if data.get(key) == value)}
    extra = {key: value for key, value in data.items() if key not in covered and value is not None}
    drafters = tuple(str(draft) for draft in own.get("drafters") or () if strategy.takes_drafters)
    return Preset(name, strategy.name, values, extra, path, drafters)


def to_config(
    strategy_name: str,
    values: Mapping[str, Any],
    extra: Mapping[str, Any] | None = None,
    drafters: Sequence[str] = (),
) -> dict[str, Any]:
    """Plain data of a GenerationConfig with these settings; flags that switch something off are left out."""
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


def save(folder: Path, preset: Preset) -> Path:
    """Write `<name>.json` into `folder`. Raises PresetProblem for a name that is no file name, or a full disk."""
    name = preset.name.strip()
    if not name or re.search(r'[<>:"/\\|?*\x00-\x1f]', name) or name.startswith("."):
        raise PresetProblem(f"“{preset.name}” cannot be a file's name.", "Use letters, digits, spaces and dashes.")
    path = folder / f"{name}.json"
    try:
        write_json(path, to_config(preset.strategy, preset.values, preset.extra, preset.drafters))
    except OSError as error:
        raise PresetProblem(f"{path} cannot be written: {error.strerror}.", "Free space or choose another.") from error
    return path


def mode_of(data: Mapping[str, Any]) -> str:
    """transformers' rule, as in `_get_generation_mode`: the strategy that a configuration's flags mean. Raises
    ParameterError for a flag that is no number."""
    return strategies.selected_by(strategies.flags_of(data)).name


def _strategy(name: str, preset: str) -> Strategy:
    try:
        return strategies.registry[name]
    except KeyError:
        known = ", ".join(strategy.title for strategy in strategies.registry.values())
        words = name.replace("_", " ")
        raise PresetProblem(
            f"“{preset}” asks for {words}, which is not among the strategies here.", f"There are: {known}."
        ) from None
