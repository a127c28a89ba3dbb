"""Example prompts that ship with the program, each made to show one effect."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import resources
from app.state.conversation import format_turns


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt with the settings that make its effect visible; empty `model` or `strategy` leave them as they are."""

    id: str
    title: str
    prompt: str = ""
    messages: tuple[Mapping[str, str], ...] = ()
    model: str = ""
    strategy: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    seed: int | None = None
    drafters: tuple[str, ...] = ()
    view: str = ""
    """Name of the view where its effect shows; empty for the usual one, as `shown_in` says."""

    @property
    def shown_in(self) -> str:
        """Name of the view to show with it."""
        return self.view or ("chat" if self.is_chat else "tokens")

    @property
    def is_chat(self) -> bool:
        """Whether it is a chat instead of plain text."""
        return bool(self.messages)

    @property
    def text(self) -> str:
        """What the prompt editor shows."""
        return format_turns(self.messages) if self.is_chat else self.prompt


def load(path: Path | None = None, known_strategies: Container[str] | None = None) -> list[Example]:
    """The examples of a file, by default the program's own; none when it is missing.

    What an entry `shows` is for the tests, which hold its caption against its run.
    With `known_strategies`, only those that can be decoded with one of them.
    """
    path = path or resources.path("examples.json")
    if not path.exists():
        return []
    known = Example.__dataclass_fields__.keys()
    entries = json.loads(path.read_text(encoding="utf-8"))
    found = [_example({key: value for key, value in entry.items() if key in known}) for entry in entries]
    return [example for example in found if known_strategies is None or example.strategy in known_strategies]


def _example(entry: dict[str, Any]) -> Example:
    lists = {key: tuple(entry.get(key, ())) for key in ("messages", "drafters")}
    return Example(**{**entry, **lists})
