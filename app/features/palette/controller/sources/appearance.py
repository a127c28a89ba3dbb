"""Appearance: themes and text sizes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry, PaletteSource
from decodescope.app.theme.palettes import SCHEMES
from decodescope.resources.language import mark, tr

SIZES = (0.8, 1.0, 1.25, 1.5, 1.75, 2.0)
_THEMES = {
    "system": mark("System theme"),
    "light": mark("Light theme"),
    "dark": mark("Dark theme"),
}


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield every theme and the common text sizes."""
    for name in SCHEMES:
        reason = tr("This theme is already active.") if name == context.appearance.theme else ""
        yield PaletteEntry(
            f"theme.{name}", tr(_THEMES[name]), tr("Theme"), partial(context.appearance_control.set_theme, name),
            aliases=(_THEMES[name], f"{name} theme"), reason=reason,
        )  # fmt: skip
    for scale in SIZES:
        reason = tr("The text already has this size.") if scale == context.appearance.font_scale else ""
        yield PaletteEntry(
            f"size.{scale}",
            tr("Text size {percent} %").format(percent=round(100 * scale)),
            tr("Text size"),
            partial(context.appearance_control.set_font_scale, scale),
            aliases=(f"text size font zoom {round(100 * scale)}%",),
            reason=reason,
        )


SOURCE = PaletteSource(90, entries)
