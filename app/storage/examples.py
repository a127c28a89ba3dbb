"""Bundled example prompts, each designed to show one effect."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from decodescope import resources
from decodescope.app.state.conversation import format_turns
from decodescope.app.state.media import BundledMedium, kind_by_name


class ExamplePrompt(NamedTuple):
    """A prompt with the settings that show its effect; an empty `model` or `strategy` leaves the current one
    unchanged.
    """

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
    """Paths of sound or picture files, relative to `resources`."""
    cache: str = "dynamic"
    view: str = ""
    """Name of the view that shows the effect; empty for the default (`shown_in`)."""

    @property
    def shown_in(self) -> str:
        """Name of the view to open with this example."""
        return self.view or ("chat" if self.is_chat else "tokens")

    @property
    def files(self) -> tuple[str, ...]:
        """Absolute paths of `media`."""
        return tuple(str(resources.path(*name.split("/"))) for name in self.media)

    @property
    def is_chat(self) -> bool:
        """Whether the prompt is a chat instead of plain text."""
        return bool(self.messages)

    @property
    def text(self) -> str:
        """Text shown in the prompt editor."""
        return format_turns(self.messages) if self.is_chat else self.prompt


STORY_MODELS = {"zh_CN": "storyteller-chinese"}
"""Language code → bundled model that writes stories in it; English is the default."""


def first_example(language: str) -> ExamplePrompt | None:
    """Return the example of a text for the bundled story model of a language; None if there is no such model."""
    model = STORY_MODELS.get(language)
    if model is None or not Path(str(resources.path("models", model))).exists():
        return None
    return next((one for one in load_examples() if one.model == model and not one.is_chat), None)


def load_examples(path: Path | None = None, known_strategies: Container[str] | None = None) -> list[ExamplePrompt]:
    """Load the examples of a file, by default the bundled one; an empty list if it is missing.

    An entry's `shows` is used only by tests, which check its caption against its run. With `known_strategies`, return
    only examples whose strategy is among them.
    """
    path = path or resources.path("examples.json")
    if not path.exists():
        return []
    known = ExamplePrompt._fields
    entries = json.loads(path.read_text(encoding="utf-8"))
    found = [_example_from_dict({key: value for key, value in entry.items() if key in known}) for entry in entries]
    return [example for example in found if known_strategies is None or example.strategy in known_strategies]


def bundled_media(kind: str) -> list[BundledMedium]:
    """Return the bundled sounds or pictures: those of the examples and the other files in the same folders."""
    folders = dict.fromkeys(Path(file).parent for example in load_examples() for file in example.files)
    found = (path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir()))
    return [BundledMedium(path.stem.replace("-", " "), str(path)) for path in found if kind_by_name(path.name) == kind]


def _example_from_dict(entry: dict[str, Any]) -> ExamplePrompt:
    lists = {key: tuple(entry.get(key, ())) for key in ("messages", "drafters", "media")}
    return ExamplePrompt(**{**entry, **lists})
