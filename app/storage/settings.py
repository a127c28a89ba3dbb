"""Everything the program remembers: one typed, versioned section each, kept in one JSON file.

Each value has a check of its own, so that a bad one is reset alone: a decoder that takes a section whole or not at all
would be shorter, and lose the rest.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, fields
from typing import Any, ClassVar, Self

from app.state.setting_values import is_count, is_number
from app.theme.palettes import SCHEMES
from core.common.lightweight_dataclass import plain
from resources.depth import DEPTHS, USUAL
from resources.language import LANGUAGES, tr

ValueCheck = Callable[[Any], bool]
MAX_TEXT_LENGTH = 2**22
MAX_ENTRIES = 10_000


def is_flag(value: Any) -> bool:
    """True or false."""
    return isinstance(value, bool)


def is_name(value: Any) -> bool:
    """Text that names something on this machine, maybe in bytes that are no UTF-8; no NUL, which ends a path."""
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and "\0" not in value


def is_text(value: Any) -> bool:
    """Text that can be shown, and read by a tokenizer: no half of a character."""
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and is_valid_unicode(value)


def is_valid_unicode(text: str) -> bool:
    """Whether `text` has no lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_names(value: Any) -> bool:
    """A list of names."""
    return isinstance(value, list) and len(value) <= MAX_ENTRIES and all(map(is_name, value))


def is_bytes(value: Any) -> bool:
    """Bytes in base64, as text."""
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except (ValueError, binascii.Error):
        return False


def is_values(value: Any) -> bool:
    """{name of a strategy or cache: {parameter: value}}."""
    return isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())


def one_of(choices: Collection[Any]) -> ValueCheck:
    """One of `choices`, which are texts."""
    return lambda value: isinstance(value, str) and value in choices


def up_to(maximum: int) -> ValueCheck:
    """A whole number from 0 to `maximum`."""
    return lambda value: is_count(value) and value <= maximum


def between(minimum: float, maximum: float) -> ValueCheck:
    """A number in that range."""
    return lambda value: is_number(value) and minimum <= value <= maximum


def list_of_counts(length: int, maximum: int) -> ValueCheck:
    """So many whole numbers from 0 to `maximum`."""
    each = up_to(maximum)
    return lambda value: isinstance(value, list) and len(value) == length and all(map(each, value))


def each_up_to(maximum: int) -> ValueCheck:
    """{name: whole number from 0 to `maximum`}."""
    return lambda value: (
        isinstance(value, dict)
        and len(value) <= MAX_ENTRIES
        and all(is_name(name) and up_to(maximum)(count) for name, count in value.items())
    )


def each_one_of(choices: Collection[str]) -> ValueCheck:
    """{name: one of these}."""
    return lambda value: (
        isinstance(value, dict) and len(value) <= MAX_ENTRIES and all(choice in choices for choice in value.values())
    )


LANGUAGE_CHOICES = ("system", *LANGUAGES)
MIN_SCALE, MAX_SCALE = 0.8, 2.0
MAX_SEED = 2**31 - 1
MAX_REUSE_MIB = 1024**2
"""MiB."""
MAX_MEMORY_MIB = 1024**3
"""MiB."""
MAX_HISTORY_MIB = 1024**2
"""MiB."""
MAX_WIDTH = 2**15
"""Pixels."""
Migrator = Callable[[dict[str, Any]], dict[str, Any]]


def _migrate_draft(data: dict[str, Any]) -> dict[str, Any]:
    """There was one draft model at first."""
    one = data.pop("draft", "")
    return {**data, "drafts": [one]} if one and is_name(one) else data


def _is_panel_widths(value: Any) -> bool:
    return value == [] or list_of_counts(2, MAX_WIDTH)(value)


WEIGHT_FORMATS = ("auto", "float32", "bfloat16", "float16", "int8", "int4")
"""What weights can be kept as: the core's own names, which only the worker's thread may ask it for."""
_NAME, _NAMES, _FLAG, _VALUES = {"check": is_name}, {"check": is_names}, {"check": is_flag}, {"check": is_values}
_SET = {"check": is_names, "set": True}
"""Names without an order: what several windows add comes together."""


@plain()
class SettingsSection:
    """A group of settings; `migrators[n]` turns its data of version n into version n + 1."""

    version: ClassVar[int] = 1
    migrators: ClassVar[Mapping[int, Migrator]] = {}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> tuple[Self, list[str]]:
        """The section in `data` and the names of the keys that could not be used. Raises MigrationError."""
        plain = migrate(data, cls.version, cls.migrators)
        section, bad = cls(), []
        for key in fields(cls):
            if key.name not in plain:
                continue
            if key.metadata["check"](plain[key.name]):
                setattr(section, key.name, plain[key.name])
            else:
                bad.append(key.name)
        return section, bad

    def write(self) -> dict[str, Any]:
        """Plain data that `read` takes back."""
        return {"version": self.version, **{key.name: getattr(self, key.name) for key in fields(self)}}

    @classmethod
    def unordered_keys(cls) -> set[str]:
        """Names of the keys whose entries have no order."""
        return {key.name for key in fields(cls) if key.metadata.get("set")}

    @classmethod
    def unknown_entries(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """What of `data` a program of another version has written."""
        known = {"version", *(key.name for key in fields(cls))}
        return {name: value for name, value in data.items() if name not in known}


class MigrationError(ValueError):
    """Old data could not be brought up to date."""


def migrate(data: Mapping[str, Any], target_version: int, migrators: Mapping[int, Migrator]) -> dict[str, Any]:
    """The data as version `target_version` would have written it; a later version's is left as it is. Raises MigrationError."""
    plain, version = dict(data), version_of(data)
    try:
        for step in range(version, target_version):
            plain = migrators[step](plain)
    except Exception as error:  # whatever a migrator stumbles over lies in the data
        raise MigrationError(
            tr("what version {version} wrote could not be understood").format(version=version)
        ) from error
    return plain


def version_of(data: Mapping[str, Any]) -> int:
    """The version that plain data says it has; 1 where it says none. Raises MigrationError for what is no version."""
    version = data.get("version", 1)
    if not is_count(version) or version < 1:
        raise MigrationError(tr("its version is no number"))
    return int(version)


@plain()
class AppearanceSection(SettingsSection):
    """How the window looks."""

    theme: str = field(default="system", metadata={"check": one_of(SCHEMES)})
    font_scale: float = field(default=1.0, metadata={"check": between(MIN_SCALE, MAX_SCALE)})
    language: str = field(default="system", metadata={"check": one_of(LANGUAGE_CHOICES)})
    animated: bool = field(default=True, metadata=_FLAG)
    """Choices are seen happening on a stage."""
    sounds: bool = field(default=False, metadata=_FLAG)
    """Accepted, refused and finished are heard."""
    depth: str = field(default=USUAL, metadata={"check": one_of(DEPTHS)})
    """How deep explanations go: `resources.depth`."""


@plain()
class LastChoices(SettingsSection):
    """What was chosen last."""

    version: ClassVar[int] = 2
    migrators: ClassVar[Mapping[int, Migrator]] = {1: _migrate_draft}

    model: str = field(default="", metadata=_NAME)
    strategy: str = field(default="sampling", metadata=_NAME)
    cache: str = field(default="dynamic", metadata=_NAME)
    drafts: list[str] = field(default_factory=list, metadata=_NAMES)
    """Draft models, the first one first."""
    prompt: str = field(default="Once upon a time, there was a little", metadata={"check": is_text})
    chat: bool = field(default=False, metadata=_FLAG)
    media: list[str] = field(default_factory=list, metadata=_NAMES)
    """Paths of the sounds and pictures that go with the prompt."""
    seed: int = field(default=42, metadata={"check": up_to(MAX_SEED)})
    seed_locked: bool = field(default=True, metadata=_FLAG)
    values: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=_VALUES)
    """Changed parameters of each strategy."""
    cache_values: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=_VALUES)


@plain()
class ComputeSection(SettingsSection):
    """Where and how models are run."""

    device: str = field(default="auto", metadata=_NAME)
    dtype: str = field(default="auto", metadata=_NAME)
    threads: int = field(default=0, metadata={"check": up_to(1024)})
    top_n: int = field(default=10, metadata={"check": up_to(100)})
    reuse: bool = field(default=True, metadata=_FLAG)
    """Begin from what earlier runs have read."""
    reuse_mib: int = field(default=256, metadata={"check": up_to(MAX_REUSE_MIB)})
    memory_fallback: bool = field(default=True, metadata=_FLAG)
    quick_steps: bool = field(default=True, metadata=_FLAG)
    """Steps in machine code that this machine's compiler builds, in the background."""

    @property
    def prefix_budget(self) -> int:
        """Bytes for what earlier runs have read; 0 when nothing is reused."""
        return self.reuse_mib * 2**20 if self.reuse else 0


@plain()
class ModelsSection(SettingsSection):
    """Folders added by hand, and what single models have been allowed."""

    folders: list[str] = field(default_factory=list, metadata=_SET)
    allow_pickle: list[str] = field(default_factory=list, metadata=_SET)
    allow_remote_code: list[str] = field(default_factory=list, metadata=_SET)
    engines: list[str] = field(default_factory=list, metadata=_SET)
    """Addresses of models on other machines; never with a key."""
    allow_plain: list[str] = field(default_factory=list, metadata=_SET)
    """Those of them that may be spoken to over http."""
    weights: dict[str, str] = field(default_factory=dict, metadata={"check": each_one_of(WEIGHT_FORMATS)})
    """What single models' weights are kept as; a model that is not here has them as its file does."""
    memory: dict[str, int] = field(default_factory=dict, metadata={"check": each_up_to(MAX_MEMORY_MIB)})
    """MiB of memory that single models' weights may take, 0 for as much as fits; layers beyond are read from the disk.
    All of a model that is not here is in memory."""


@plain()
class HistorySection(SettingsSection):
    """What is kept of runs."""

    keep: bool = field(default=True, metadata=_FLAG)
    budget_mib: int = field(default=512, metadata={"check": up_to(MAX_HISTORY_MIB)})
    """What all recordings may take on the disk; the oldest go first."""

    @property
    def budget(self) -> int:
        """The same in bytes."""
        return self.budget_mib * 2**20


@plain()
class WindowLayout(SettingsSection):
    """Which parts of the window are open, and where it stands."""

    setup: bool = field(default=True, metadata=_FLAG)
    inspector: bool = field(default=True, metadata=_FLAG)
    timeline: bool = field(default=True, metadata=_FLAG)
    advanced: bool = field(default=False, metadata=_FLAG)
    view: str = field(default="tokens", metadata=_NAME)
    window: str = field(default="", metadata={"check": is_bytes})
    """Qt's own description of the window's place, in base64."""
    sides: list[int] = field(default_factory=list, metadata={"check": _is_panel_widths})
    """Widths of the side panels; empty for the usual ones."""


@plain()
class UsageSection(SettingsSection):
    """What the reader knows already, and does often."""

    welcomed: bool = field(default=False, metadata=_FLAG)
    """The first page has been shown."""
    recent: list[str] = field(default_factory=list, metadata=_NAMES)
    """Keys of what was chosen in the command palette, the latest first."""
    recent_files: list[str] = field(default_factory=list, metadata=_NAMES)
    """Paths of the recordings that were opened or saved, the latest first."""


@plain()
class Settings:
    """All sections."""

    appearance: AppearanceSection = field(default_factory=AppearanceSection)
    choices: LastChoices = field(default_factory=LastChoices)
    compute: ComputeSection = field(default_factory=ComputeSection)
    models: ModelsSection = field(default_factory=ModelsSection)
    history: HistorySection = field(default_factory=HistorySection)
    layout: WindowLayout = field(default_factory=WindowLayout)
    habits: UsageSection = field(default_factory=UsageSection)


SECTIONS: dict[str, type[SettingsSection]] = {
    "appearance": AppearanceSection,
    "choices": LastChoices,
    "compute": ComputeSection,
    "models": ModelsSection,
    "history": HistorySection,
    "layout": WindowLayout,
    "habits": UsageSection,
}
