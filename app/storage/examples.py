"""Example prompts that ship with the program, each made to show one effect."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import resources
from app.state.conversation import format_turns
from app.state.media import BundledMedium, kind_by_name


class ExamplePrompt(NamedTuple):
    """A prompt with the settings that make its effect visible; an empty `model` or `strategy` is left as it is."""

    id: str
    title: str
    prompt: str = ""
    messages: tuple[Mapping[str, str], ...] = ()
    model: str = ""
    strategy: str = ""
    params: Mapping[str, Any] = MappingProxyType({})
    about: str = ""
    seed: int | None = None
    drafters: tuple[str, ...] = ()
    media: tuple[str, ...] = ()
    """Files of sound or pictures, by their paths within `resources`."""
    cache: str = "dynamic"
    view: str = ""
    """Name of the view where its effect shows; empty for the usual one, as `shown_in` says."""

    @property
    def shown_in(self) -> str:
        """Name of the view to show with it."""
        return self.view or ("chat" if self.is_chat else "tokens")

    @property
    def files(self) -> tuple[str, ...]:
        """Where those files lie."""
        return tuple(str(resources.path(*name.split("/"))) for name in self.media)

    @property
    def is_chat(self) -> bool:
        """Whether it is a chat instead of plain text."""
        return bool(self.messages)

    @property
    def text(self) -> str:
        """What the prompt editor shows."""
        return format_turns(self.messages) if self.is_chat else self.prompt


def load_examples(path: Path | None = None, known_strategies: Container[str] | None = None) -> list[ExamplePrompt]:
    """The examples of a file, by default the program's own; none when it is missing.

    What an entry `shows` is for the tests, which hold its caption against its run.
    With `known_strategies`, only those that can be decoded with one of them.
    """
    path = path or resources.path("examples.json")
    if not path.exists():
        return []
    known = ExamplePrompt._fields
    entries = json.loads(path.read_text(encoding="utf-8"))
    found = [_example_from_dict({key: value for key, value in entry.items() if key in known}) for entry in entries]
    return [example for example in found if known_strategies is None or example.strategy in known_strategies]


def bundled_media(kind: str) -> list[BundledMedium]:
    """The sounds or pictures that ship with the program: those of the examples, and what lies beside them."""
    folders = dict.fromkeys(Path(file).parent for example in load_examples() for file in example.files)
    found = (path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir()))
    return [BundledMedium(path.stem.replace("-", " "), str(path)) for path in found if kind_by_name(path.name) == kind]


def _example_from_dict(entry: dict[str, Any]) -> ExamplePrompt:
    lists = {key: tuple(entry.get(key, ())) for key in ("messages", "drafters", "media")}
    return ExamplePrompt(**{**entry, **lists})
