"""The light and dark palettes: three greys, one accent, and Okabe–Ito colours for the fate of a token.

Text and marks meet WCAG AA contrast on every background they are used on: 4.5:1 and 3:1.
"""

from __future__ import annotations

SCHEMES = ("system", "light", "dark")
"""Available colour schemes; the first follows the desktop."""

LIGHT: dict[str, str] = {
    "window": "#f6f7f9",
    "panel": "#ffffff",
    "field": "#f3f4f7",
    "line": "#e1e4ea",
    "text": "#1a1f27",
    "muted": "#58606e",
    "faint": "#7b838f",
    "accent": "#3b5bdb",
    "on_accent": "#ffffff",
    "tint": "#e8edff",
    "hover": "#eceff4",
    "selection": "#dbe3ff",
    "danger": "#b42318",
    "danger_tint": "#fdecea",
    "warning": "#8f5200",
    "kept": "#0072b2",
    "pruned": "#737a86",
    "best": "#b07600",
    "finished": "#009069",
    "refused": "#d55e00",
    "thinking": "#7b3f98",
}

DARK: dict[str, str] = {
    "window": "#14171b",
    "panel": "#1b1f26",
    "field": "#14171b",
    "line": "#2c313a",
    "text": "#e9ecf1",
    "muted": "#a3aab7",
    "faint": "#757d8a",
    "accent": "#7c96ff",
    "on_accent": "#0b1020",
    "tint": "#242d4e",
    "hover": "#262b34",
    "selection": "#2d3c70",
    "danger": "#ff9182",
    "danger_tint": "#3a2124",
    "warning": "#f0b429",
    "kept": "#56b4e9",
    "pruned": "#7b828e",
    "best": "#f0ac1f",
    "finished": "#4fd6a8",
    "refused": "#ff8240",
    "thinking": "#cda4ee",
}

# Presentation: maximum contrast for projectors.
LIGHT_STAGE = LIGHT | {
    "window": "#ffffff",
    "panel": "#ffffff",
    "field": "#ffffff",
    "line": "#b9c0cb",
    "text": "#000000",
    "muted": "#343b46",
    "faint": "#666e7a",
    "accent": "#2343c4",
}
DARK_STAGE = DARK | {
    "window": "#000000",
    "panel": "#000000",
    "field": "#000000",
    "line": "#4a5160",
    "text": "#ffffff",
    "muted": "#d3d8e0",
    "faint": "#9aa2ae",
    "accent": "#9fb2ff",
}
STAGE_PALETTES = {"light": LIGHT_STAGE, "dark": DARK_STAGE}

PALETTES = {"light": LIGHT, "dark": DARK}

# From unlikely through grey to certain; both ends are dark (or bright), so that they stand out from the background.
RAMPS: dict[str, tuple[str, ...]] = {
    "light": ("#9a3412", "#bf680f", "#7a8290", "#3f7cc0", "#0b4f9e"),
    "dark": ("#ff7a3d", "#e8a04a", "#868e9a", "#4f97d6", "#7cc0ff"),
}

# Colours of drafters: distinct from the colours above, because a node's outline shows whether it was accepted.
DRAFTERS: dict[str, tuple[str, ...]] = {
    "light": ("#6d3fc4", "#b3246b", "#7a5a1e", "#35566f"),
    "dark": ("#bda4ff", "#ff94c6", "#dcb877", "#a4bdd4"),
}
