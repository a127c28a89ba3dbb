"""Everything the program remembers: one typed, versioned section each, kept in one JSON file.

A broken file is set aside under a name that is told; a bad key is reset alone. Both leave a notice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

SCHEMES = ("system", "light", "dark")
SMALLEST_SCALE, LARGEST_SCALE = 0.8, 2.0
LARGEST_SEED = 2**31 - 1
LARGEST_REUSE = 1024**2
"""MiB."""
Migrator = Callable[[dict[str, Any]], dict[str, Any]]


def _is_scale(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and SMALLEST_SCALE <= value <= LARGEST_SCALE


def _is_scheme(value: Any) -> bool:
    return value in SCHEMES


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_values(value: Any) -> bool:
    """{name of a strategy or cache: {parameter: value}}."""
    return isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())


def _count(most: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _several_drafts(data: dict[str, Any]) -> dict[str, Any]:
    """There was one draft model at first."""
    one = data.pop("draft", "")
    return {**data, "drafts": [one]} if one and _is_text(one) else data


_TEXT, _TEXTS, _FLAG = {"check": _is_text}, {"check": _is_texts}, {"check": _is_flag}
_VALUES = {"check": _is_values}


@dataclass(slots=True)
class Section:
    """A group of settings; `migrators[n]` turns its data of version n into version n + 1."""

    version: ClassVar[int] = 1
    migrators: ClassVar[Mapping[int, Migrator]] = {}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> tuple[Self, list[str]]:
        """The section in `data` and the names of the keys that could not be used."""
        plain = dict(data)
        for version in range(int(plain.pop("version", 1)), cls.version):
            plain = cls.migrators[version](plain)
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


@dataclass(slots=True)
class Appearance(Section):
    """How the window looks."""

    theme: str = field(default="system", metadata={"check": _is_scheme})
    font_scale: float = field(default=1.0, metadata={"check": _is_scale})


@dataclass(slots=True)
class Choices(Section):
    """What was chosen last."""

    version: ClassVar[int] = 2
    migrators: ClassVar[Mapping[int, Migrator]] = {1: _several_drafts}

    model: str = field(default="", metadata=_TEXT)
    strategy: str = field(default="sampling", metadata=_TEXT)
    cache: str = field(default="dynamic", metadata=_TEXT)
    drafts: list[str] = field(default_factory=list, metadata=_TEXTS)
    """Draft models, the first one first."""
    prompt: str = field(default="Once upon a time, there was a little", metadata=_TEXT)
    chat: bool = field(default=False, metadata=_FLAG)
    seed: int = field(default=42, metadata={"check": _count(LARGEST_SEED)})
    seed_locked: bool = field(default=True, metadata=_FLAG)
    values: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=_VALUES)
    """Changed parameters of each strategy."""
    cache_values: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=_VALUES)


@dataclass(slots=True)
class Compute(Section):
    """Where and how models are run."""

    device: str = field(default="auto", metadata=_TEXT)
    dtype: str = field(default="auto", metadata=_TEXT)
    threads: int = field(default=0, metadata={"check": _count(1024)})
    top_n: int = field(default=10, metadata={"check": _count(100)})
    reuse: bool = field(default=True, metadata=_FLAG)
    """Begin from what earlier runs have read."""
    reuse_mib: int = field(default=256, metadata={"check": _count(LARGEST_REUSE)})
    memory_fallback: bool = field(default=True, metadata=_FLAG)

    @property
    def prefix_budget(self) -> int:
        """Bytes for what earlier runs have read; 0 when nothing is reused."""
        return self.reuse_mib * 2**20 if self.reuse else 0


@dataclass(slots=True)
class Models(Section):
    """Folders added by hand, and what single models have been allowed."""

    folders: list[str] = field(default_factory=list, metadata=_TEXTS)
    allow_pickle: list[str] = field(default_factory=list, metadata=_TEXTS)
    allow_remote_code: list[str] = field(default_factory=list, metadata=_TEXTS)


@dataclass(slots=True)
class Layout(Section):
    """Which parts of the window are open."""

    setup: bool = field(default=True, metadata=_FLAG)
    inspector: bool = field(default=True, metadata=_FLAG)
    timeline: bool = field(default=True, metadata=_FLAG)
    advanced: bool = field(default=False, metadata=_FLAG)
    view: str = field(default="tokens", metadata=_TEXT)


@dataclass(slots=True)
class Settings:
    """All sections."""

    appearance: Appearance = field(default_factory=Appearance)
    choices: Choices = field(default_factory=Choices)
    compute: Compute = field(default_factory=Compute)
    models: Models = field(default_factory=Models)
    layout: Layout = field(default_factory=Layout)


SECTIONS: dict[str, type[Section]] = {
    "appearance": Appearance,
    "choices": Choices,
    "compute": Compute,
    "models": Models,
    "layout": Layout,
}
