"""Examples and presets, which set everything."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry, PaletteSource
from decodescope.resources.language import tr

PENALTY = 120.0
"""Penalty: examples have long titles, so a command with a matching synonym comes first."""


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield the examples, then the presets, bundled and saved."""
    for example in context.panel.prompt.examples:
        yield PaletteEntry(
            f"example.{example.id}",
            tr(example.title),
            tr("Example"),
            partial(context.panel.prompt.exampleChosen.emit, example),
            aliases=(example.title,),
            about=tr(example.about),
            penalty=PENALTY,
        )
    for name, path in context.presets.preset_files().items():
        yield PaletteEntry(f"preset.{name}", name, tr("Preset"), partial(context.presets.use_preset, path))


SOURCE = PaletteSource(60, entries)
