"""Examples and presets: everything is set as they have it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from app.control.palette.entry import PaletteContext, PaletteEntry, PaletteSource
from resources.language import tr

BEHIND = 120.0
"""Examples have long titles with many words: a command that a typed word is a synonym of comes first."""


def entries(reach: PaletteContext) -> Iterator[PaletteEntry]:
    """The example prompts, then the presets, shipped and saved."""
    for example in reach.panel.prompt.examples:
        yield PaletteEntry(
            f"example.{example.id}",
            tr(example.title),
            tr("Example"),
            partial(reach.panel.prompt.exampleChosen.emit, example),
            also=(example.title,),
            about=tr(example.about),
            behind=BEHIND,
        )
    for name, path in reach.library.preset_files().items():
        yield PaletteEntry(f"preset.{name}", name, tr("Preset"), partial(reach.library.use_preset, path))


SOURCE = PaletteSource(60, entries)
