"""Sources of palette entries, a file for each kind. Modules with a `SOURCE` are loaded automatically."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from decodescope.app.features.palette.controller.entry import PaletteSource


@cache
def sources() -> tuple[PaletteSource, ...]:
    """Return all sources in display order."""
    modules = (import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__))
    found: list[PaletteSource] = [module.SOURCE for module in modules]
    return tuple(sorted(found, key=lambda source: source.order))
