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
Migrator = Callable[[dict[str, Any]], dict[str, Any]]


def _is_scale(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and SMALLEST_SCALE <= value <= LARGEST_SCALE


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


def _key(check: Callable[[Any], bool], default: Any = None, factory: Callable[[], Any] | None = None) -> Any:
    if factory is not None:
        return field(default_factory=factory, metadata={"check": check})
    return field(default=default, metadata={"check": check})


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

    theme: str = _key(lambda value: value in SCHEMES, "system")
    font_scale: float = _key(_is_scale, 1.0)


@dataclass(slots=True)
class Choices(Section):
    """What was chosen last."""

    model: str = _key(_is_text, "")
    strategy: str = _key(_is_text, "sampling")
    cache: str = _key(_is_text, "dynamic")
    prompt: str = _key(_is_text, "Once upon a time, there was a little")
    chat: bool = _key(_is_flag, False)
    seed: int = _key(_count(LARGEST_SEED), 42)
    seed_locked: bool = _key(_is_flag, True)
    values: dict[str, dict[str, Any]] = _key(_is_values, factory=dict)
    """Changed parameters of each strategy."""
    cache_values: dict[str, dict[str, Any]] = _key(_is_values, factory=dict)


@dataclass(slots=True)
class Compute(Section):
    """Where and how models are run."""

    device: str = _key(_is_text, "auto")
    dtype: str = _key(_is_text, "auto")
    threads: int = _key(_count(1024), 0)
    top_n: int = _key(_count(100), 10)


@dataclass(slots=True)
class Models(Section):
    """Folders added by hand, and what single models have been allowed."""

    folders: list[str] = _key(_is_texts, factory=list)
    allow_pickle: list[str] = _key(_is_texts, factory=list)
    allow_remote_code: list[str] = _key(_is_texts, factory=list)


@dataclass(slots=True)
class Layout(Section):
    """Which parts of the window are open."""

    setup: bool = _key(_is_flag, True)
    inspector: bool = _key(_is_flag, True)
    timeline: bool = _key(_is_flag, True)
    advanced: bool = _key(_is_flag, False)
    view: str = _key(_is_text, "tokens")


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
