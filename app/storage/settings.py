"""The program's persistent settings: one typed, versioned section per subject, stored in one JSON file.

Each value has its own check, so that one invalid value is reset alone; a decoder that accepts or rejects a section as a
whole would lose the rest.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, fields
from typing import Any, ClassVar, Self

from decodescope.app.state.setting_values import is_count, is_number
from decodescope.app.theme.palettes import SCHEMES
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.resources.depth import DEPTHS, USUAL
from decodescope.resources.language import LANGUAGES, tr

ValueCheck = Callable[[Any], bool]
MAX_TEXT_LENGTH = 2**22
MAX_ENTRIES = 10_000


def is_flag(value: Any) -> bool:
    """Return whether the value is a boolean."""
    return isinstance(value, bool)


def is_name(value: Any) -> bool:
    """Return whether the value is a name or path, possibly not valid UTF-8, but without NUL."""
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and "\0" not in value


def is_text(value: Any) -> bool:
    """Return whether the value is text that can be shown and tokenized: no lone surrogates."""
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and is_valid_unicode(value)


def is_valid_unicode(text: str) -> bool:
    """Return whether `text` has no lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_names(value: Any) -> bool:
    """Return whether the value is a list of names."""
    return isinstance(value, list) and len(value) <= MAX_ENTRIES and all(map(is_name, value))


def is_bytes(value: Any) -> bool:
    """Return whether the value is base64 text."""
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except (ValueError, binascii.Error):
        return False


def is_values(value: Any) -> bool:
    """Return whether the value is {name of a strategy or cache: {parameter: value}}."""
    return isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())


def one_of(choices: Collection[Any]) -> ValueCheck:
    """Return a check for one of `choices`, which are strings."""
    return lambda value: isinstance(value, str) and value in choices


def up_to(maximum: int) -> ValueCheck:
    """Return a check for an integer from 0 to `maximum`."""
    return lambda value: is_count(value) and value <= maximum


def between(minimum: float, maximum: float) -> ValueCheck:
    """Return a check for a number in that range."""
    return lambda value: is_number(value) and minimum <= value <= maximum


def list_of_counts(length: int, maximum: int) -> ValueCheck:
    """Return a check for a list of `length` integers from 0 to `maximum`."""
    each = up_to(maximum)
    return lambda value: isinstance(value, list) and len(value) == length and all(map(each, value))


def each_up_to(maximum: int) -> ValueCheck:
    """Return a check for {name: integer from 0 to `maximum`}."""
    return lambda value: (
        isinstance(value, dict)
        and len(value) <= MAX_ENTRIES
        and all(is_name(name) and up_to(maximum)(count) for name, count in value.items())
    )


def is_flags(value: Any) -> bool:
    """Return whether the value is {name: boolean}."""
    return isinstance(value, dict) and len(value) <= MAX_ENTRIES and all(map(is_flag, value.values()))


def each_one_of(choices: Collection[str]) -> ValueCheck:
    """Return a check for {name: one of `choices`}."""
    return lambda value: (
        isinstance(value, dict) and len(value) <= MAX_ENTRIES and all(choice in choices for choice in value.values())
    )


def is_adapter_lists(value: Any) -> bool:
    """Return whether the value is {model: [[path, strength, whether it is on], …]}."""
    return (
        isinstance(value, dict)
        and len(value) <= MAX_ENTRIES
        and all(
            is_name(name) and isinstance(found, list) and all(map(_is_adapter, found)) for name, found in value.items()
        )
    )


def _is_adapter(value: Any) -> bool:
    from decodescope.core import adapters  # rarely needed

    return (
        isinstance(value, list) and len(value) == 3 and is_name(value[0])
        and between(-adapters.MAX_STRENGTH, adapters.MAX_STRENGTH)(value[1]) and isinstance(value[2], bool)
    )  # fmt: skip


LANGUAGE_CHOICES = ("system", *LANGUAGES)
MIN_SCALE, MAX_SCALE = 0.8, 2.0
MAX_SEED = 2**31 - 1
MAX_REUSE_MIB = 1024**2
"""In MiB."""
MAX_MEMORY_MIB = 1024**3
"""In MiB."""
MAX_HISTORY_MIB = 1024**2
"""In MiB."""
MAX_DAY = 10**6
MAX_WIDTH = 2**15
"""Maximum width in pixels."""
Migrator = Callable[[dict[str, Any]], dict[str, Any]]


def _migrate_draft(data: dict[str, Any]) -> dict[str, Any]:
    """Migrate version 1, which had one draft model."""
    one = data.pop("draft", "")
    return {**data, "drafts": [one]} if one and is_name(one) else data


def _is_panel_widths(value: Any) -> bool:
    return value == [] or list_of_counts(2, MAX_WIDTH)(value)


WEIGHT_FORMATS = ("auto", "float32", "bfloat16", "float16", "int8", "int4", "fp8")
"""Allowed weight formats. They are the core's own names, repeated here because only the worker thread may import them
from there.
"""
_NAME, _NAMES, _FLAG, _VALUES = {"check": is_name}, {"check": is_names}, {"check": is_flag}, {"check": is_values}
_SET = {"check": is_names, "set": True}
"""Unordered names: additions by several windows are merged."""


@plain()
class SettingsSection:
    """A group of settings; `migrators[n]` converts its data from version n to version n + 1."""

    version: ClassVar[int] = 1
    migrators: ClassVar[Mapping[int, Migrator]] = {}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> tuple[Self, list[str]]:
        """Return the section read from `data` and the names of unusable keys. Raises MigrationError."""
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
        """Return plain data that `read` accepts."""
        return {"version": self.version, **{key.name: getattr(self, key.name) for key in fields(self)}}

    @classmethod
    def unordered_keys(cls) -> set[str]:
        """Return the keys whose entries are unordered."""
        return {key.name for key in fields(cls) if key.metadata.get("set")}

    @classmethod
    def unknown_entries(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of `data` that this version does not define."""
        known = {"version", *(key.name for key in fields(cls))}
        return {name: value for name, value in data.items() if name not in known}


class MigrationError(ValueError):
    """Old data could not be migrated."""


def migrate(data: Mapping[str, Any], target_version: int, migrators: Mapping[int, Migrator]) -> dict[str, Any]:
    """Return the data migrated to `target_version`; data of a later version is left unchanged. Raises
    MigrationError.
    """
    plain, version = dict(data), version_of(data)
    try:
        for step in range(version, target_version):
            plain = migrators[step](plain)
    except Exception as error:  # any failure here comes from the data
        raise MigrationError(tr("data of version {version} could not be read").format(version=version)) from error
    return plain


def version_of(data: Mapping[str, Any]) -> int:
    """Return the version stated in plain data; 1 if none is. Raises MigrationError for an invalid version."""
    version = data.get("version", 1)
    if not is_count(version) or version < 1:
        raise MigrationError(tr("its version is not a number"))
    return int(version)


@plain()
class AppearanceSection(SettingsSection):
    """Appearance of the window."""

    theme: str = field(default="system", metadata={"check": one_of(SCHEMES)})
    font_scale: float = field(default=1.0, metadata={"check": between(MIN_SCALE, MAX_SCALE)})
    language: str = field(default="system", metadata={"check": one_of(LANGUAGE_CHOICES)})
    animated: bool = field(default=True, metadata=_FLAG)
    """Animate choices on a stage."""
    sounds: bool = field(default=False, metadata=_FLAG)
    """Play sounds for accepted, rejected and finished."""
    depth: str = field(default=USUAL, metadata={"check": one_of(DEPTHS)})
    """Level of detail of explanations: `resources.depth`."""


@plain()
class LastChoices(SettingsSection):
    """The user's latest choices."""

    version: ClassVar[int] = 2
    migrators: ClassVar[Mapping[int, Migrator]] = {1: _migrate_draft}

    model: str = field(default="", metadata=_NAME)
    strategy: str = field(default="sampling", metadata=_NAME)
    cache: str = field(default="dynamic", metadata=_NAME)
    drafts: list[str] = field(default_factory=list, metadata=_NAMES)
    """Draft models in order."""
    prompt: str = field(default="Once upon a time, there was a little", metadata={"check": is_text})
    chat: bool = field(default=False, metadata=_FLAG)
    media: list[str] = field(default_factory=list, metadata=_NAMES)
    """Paths of the prompt's sound and picture files."""
    seed: int = field(default=42, metadata={"check": up_to(MAX_SEED)})
    seed_locked: bool = field(default=True, metadata=_FLAG)
    values: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=_VALUES)
    """Changed parameters of each strategy."""
    cache_values: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=_VALUES)


@plain()
class ComputeSection(SettingsSection):
    """Device, precision and other compute settings."""

    device: str = field(default="auto", metadata=_NAME)
    dtype: str = field(default="auto", metadata=_NAME)
    threads: int = field(default=0, metadata={"check": up_to(1024)})
    top_n: int = field(default=10, metadata={"check": up_to(100)})
    reuse: bool = field(default=True, metadata=_FLAG)
    """Reuse the cached prefixes of earlier runs."""
    reuse_mib: int = field(default=256, metadata={"check": up_to(MAX_REUSE_MIB)})
    memory_fallback: bool = field(default=True, metadata=_FLAG)
    quick_steps: bool = field(default=True, metadata=_FLAG)
    """Use native decode steps, compiled in the background by this machine's compiler."""

    @property
    def prefix_budget(self) -> int:
        """Bytes for cached prefixes of earlier runs; 0 if reuse is off."""
        return self.reuse_mib * 2**20 if self.reuse else 0


@plain()
class ModelsSection(SettingsSection):
    """Folders added by the user, and permissions and memory settings of single models."""

    folders: list[str] = field(default_factory=list, metadata=_SET)
    allow_pickle: list[str] = field(default_factory=list, metadata=_SET)
    allow_remote_code: list[str] = field(default_factory=list, metadata=_SET)
    engines: list[str] = field(default_factory=list, metadata=_SET)
    """Addresses of remote engines; never with a key."""
    allow_plain: list[str] = field(default_factory=list, metadata=_SET)
    """Engine addresses that may be used over unencrypted http."""
    weights: dict[str, str] = field(default_factory=dict, metadata={"check": each_one_of(WEIGHT_FORMATS)})
    """Weight format of single models; a model not listed uses the format of its files."""
    memory: dict[str, int] = field(default_factory=dict, metadata={"check": each_up_to(MAX_MEMORY_MIB)})
    """MiB of memory for single models' weights, 0 for as much as fits; further layers are offloaded to disk. A model
    not listed is kept in memory completely.
    """
    recent: list[str] = field(default_factory=list, metadata=_NAMES)
    """Names of the models used last, latest first."""
    adapters: dict[str, list[list[Any]]] = field(default_factory=dict, metadata={"check": is_adapter_lists})
    """Adapters of single models, each as path, strength and whether it is switched on."""


@plain()
class ChatSection(SettingsSection):
    """Settings of the chat."""

    enter_sends: bool = field(default=True, metadata=_FLAG)
    """Enter sends the message and Shift+Enter starts a new line; the other way round if False."""
    list_shown: bool = field(default=True, metadata=_FLAG)
    """Whether the list of chats is open."""


@plain()
class HistorySection(SettingsSection):
    """Settings of the run history."""

    keep: bool = field(default=True, metadata=_FLAG)
    budget_mib: int = field(default=512, metadata={"check": up_to(MAX_HISTORY_MIB)})
    """Maximum disk space of all recordings; the oldest are deleted first."""

    @property
    def budget(self) -> int:
        """The same in bytes."""
        return self.budget_mib * 2**20


@plain()
class UpdatesSection(SettingsSection):
    """Settings of the check for new versions."""

    check: bool = field(default=False, metadata=_FLAG)
    agreed: bool = field(default=False, metadata=_FLAG)
    """Whether the user has read what a check sends, and agreed."""
    last_day: int = field(default=0, metadata={"check": up_to(MAX_DAY)})
    """Day of the last check, counted since 1970."""


@plain()
class WindowLayout(SettingsSection):
    """The open parts of the window, and its position."""

    setup: bool = field(default=True, metadata=_FLAG)
    inspector: bool = field(default=True, metadata=_FLAG)
    timeline: bool = field(default=True, metadata=_FLAG)
    groups: dict[str, bool] = field(default_factory=dict, metadata={"check": is_flags})
    """Which groups of settings were opened or closed."""
    view: str = field(default="tokens", metadata=_NAME)
    window: str = field(default="", metadata={"check": is_bytes})
    """Qt's serialized window geometry, in base64."""
    sides: list[int] = field(default_factory=list, metadata={"check": _is_panel_widths})
    """Widths of the side panels; empty for the defaults."""


@plain()
class UsageSection(SettingsSection):
    """Hints that the user has already seen, and recently used entries."""

    welcomed: bool = field(default=False, metadata=_FLAG)
    """Whether the welcome page has been shown."""
    recent: list[str] = field(default_factory=list, metadata=_NAMES)
    """Keys of entries chosen in the command palette, latest first."""
    recent_files: list[str] = field(default_factory=list, metadata=_NAMES)
    """Paths of recordings opened or saved, latest first."""


@plain()
class Settings:
    """All sections of the settings."""

    appearance: AppearanceSection = field(default_factory=AppearanceSection)
    choices: LastChoices = field(default_factory=LastChoices)
    compute: ComputeSection = field(default_factory=ComputeSection)
    models: ModelsSection = field(default_factory=ModelsSection)
    chat: ChatSection = field(default_factory=ChatSection)
    history: HistorySection = field(default_factory=HistorySection)
    updates: UpdatesSection = field(default_factory=UpdatesSection)
    layout: WindowLayout = field(default_factory=WindowLayout)
    habits: UsageSection = field(default_factory=UsageSection)


SECTIONS: dict[str, type[SettingsSection]] = {
    "appearance": AppearanceSection,
    "choices": LastChoices,
    "compute": ComputeSection,
    "models": ModelsSection,
    "chat": ChatSection,
    "history": HistorySection,
    "updates": UpdatesSection,
    "layout": WindowLayout,
    "habits": UsageSection,
}
