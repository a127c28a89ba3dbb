"""The command line, read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from app.start.cli.values import DEMO_SPEED


@dataclass(frozen=True, slots=True)
class CommandLineOptions:
    """The command line, read; empty strings and None leave things as the settings have them."""

    model: str = ""
    strategy: str = ""
    params: tuple[tuple[str, str], ...] = ()
    preset: str = ""
    prompt: str | None = None
    chat: bool = False
    media: tuple[Path, ...] = ()
    cache: str = ""
    weights: str = ""
    memory: int | None = None
    drafts: tuple[str, ...] = ()
    seed: int | None = None
    run: bool = False
    present: bool = False
    view: str = ""
    size: tuple[int, int] | None = None
    theme: str = ""
    language: str = ""
    font_scale: float | None = None
    scale: float | None = None
    screenshot: Path | None = None
    export: Path | None = None
    plain_csv: bool = False
    record_demo: Path | None = None
    demo_speed: float = DEMO_SPEED
    still: bool = False
    pictures: Path | None = None
    allow_outside: bool = False
    recorded: Path | None = None
    record: Path | None = None
    config_dir: Path | None = None
    tour: str = ""

    @property
    def sets_more_than_appearance(self) -> bool:
        """Whether more is said than how the window looks and where its settings are."""
        bare = replace(self, size=None, theme="", language="", font_scale=None, scale=None, config_dir=None)
        return bare != CommandLineOptions()

    @property
    def writes_files(self) -> bool:
        """Whether something is to be written, and nobody to be waited for."""
        return any(path is not None for path in (self.screenshot, self.export, self.record_demo))
