"""One theme: colours, fonts and the application's style sheet, all scaled by the reader's font size."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication

import resources
from app.theme.contrast import ensure_readable
from app.theme.palettes import PALETTES, RAMPS, SCHEMES


class Theme(NamedTuple):
    """Colours as `#rrggbb`, and everything that depends on the font scale (1.0 = 100 %)."""

    name: str
    window: str
    panel: str
    field: str
    line: str
    text: str
    muted: str
    faint: str
    accent: str
    on_accent: str
    tint: str
    hover: str
    selection: str
    danger: str
    danger_tint: str
    warning: str
    kept: str
    pruned: str
    best: str
    finished: str
    refused: str
    scale: float = 1.0
    min_font_pixels: int = 0
    """Pixels that no letter is smaller than, whatever the scale: on a stage (`app.theme.stage`). 0: none."""

    @property
    def is_dark(self) -> bool:
        """Whether light text stands on a dark ground."""
        return self.name == "dark"

    def color(self, name: str, alpha: float = 1.0) -> QColor:
        """The colour of that field, `alpha` 0 (clear) to 1."""
        color = QColor(getattr(self, name))
        color.setAlphaF(alpha)
        return color

    def ink(self, name: str) -> QColor:
        """The colour of that field for small type: moved towards the text's where it would be hard to read."""
        return _readable_color(getattr(self, name), self.text, self.tint)

    def ramp(self, t: float) -> QColor:
        """Colour at `t` in [0, 1] on the scale dark orange – grey – deep blue; outside values are clipped.
        What is not told (NaN) is grey."""
        if t != t:
            return self.color("faint")
        return _ramp(self.name)[round(min(max(t, 0.0), 1.0) * _RAMP_STEPS)]

    def probability(self, p: float) -> QColor:
        """Colour of a probability: unlikely is orange, certain is blue."""
        return self.ramp(p)

    def px(self, size: float) -> int:
        """`size` pixels at 100 %, scaled."""
        return round(size * self.scale)

    def space(self, size: float) -> int:
        """`size` pixels of empty room at 100 %: grows with the type, but less, to leave large type its place."""
        return round(size * _spacing(self.scale))

    def font_pixels(self, size: float) -> int:
        """Pixels of letters that are `size` high at 100 %: scaled, and never smaller than the least."""
        return max(1, self.min_font_pixels, self.px(size))

    def font(self, px: float, weight: int = 400, tabular: bool = False) -> QFont:
        """The interface font at `px` (unscaled) pixels; `tabular` gives figures one width."""
        return QFont(_font(_family(), self.font_pixels(px), weight, tabular))

    def stylesheet(self) -> str:
        """Style sheet for the whole application."""
        values = {key: str(value) for key, value in self._asdict().items()}
        values |= {"family": _family(), "fixed": _fixed_family(), "icons": resources.path("icons").as_posix()}
        template = _with_min_font(_scaled(_template(), self.scale), self.min_font_pixels)
        return re.sub(r"\$(\w+)", lambda match: values[match[1]], template)


@cache
def _font(family: str, pixels: int, weight: int, tabular: bool) -> QFont:
    """To be copied: each widget that is painted asks for several."""
    font = QFont(family)
    font.setPixelSize(pixels)
    font.setWeight(QFont.Weight(weight))
    if tabular:
        font.setFeature(QFont.Tag("tnum"), 1)
        font.setKerning(False)  # Arial and its likes draw 11 closer together than 10
    return font


def theme_for(name: str = "system", scale: float = 1.0) -> Theme:
    """The theme `light`, `dark` or what the desktop has set (`system`), at `scale` (1.0 = 100 %)."""
    if name not in SCHEMES:
        raise ValueError(f"there is no theme {name!r}; choose one of {', '.join(SCHEMES)}")
    chosen = _system_scheme() if name == "system" else name
    return Theme(name=chosen, scale=scale, min_font_pixels=0, **PALETTES[chosen])


def _system_scheme() -> str:
    return "dark" if QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark else "light"


def _spacing(scale: float) -> float:
    """How empty room grows when type grows by `scale`: by a third as much; it shrinks along."""
    return min(scale, 1 + (scale - 1) / 3)


_SPACING_RULE = re.compile(r"\b(?:padding(?!-right)|margin|spacing|border-radius)[\w-]*:[^;]*;")


def _scaled(template: str, scale: float) -> str:
    """Every length but hairlines grows with the font, empty room less."""
    if scale == 1:  # as it is written, and as most starts have it
        return template
    gentle = _SPACING_RULE.sub(lambda found: _multiply_lengths(found[0], _spacing(scale) / scale), template)
    return _multiply_lengths(gentle, scale, whole=True)


def _with_min_font(rules: str, min_font_pixels: int) -> str:
    """`rules` with no type below `min_font_pixels` pixels."""
    return re.sub(r"font-size: (\d+)px", lambda found: f"font-size: {max(min_font_pixels, int(found[1]))}px", rules)


def _multiply_lengths(rules: str, factor: float, whole: bool = False) -> str:
    """`rules` with every length in pixels above a hairline times `factor`; `whole` rounds it."""

    def grown(found: re.Match[str]) -> str:
        length = float(found[1])
        if length <= 1:
            return found[0]
        return f"{round(length * factor)}px" if whole else f"{length * factor:.4f}px"

    return re.sub(r"(-?\b\d+(?:\.\d+)?)px", grown, rules)


@cache
def _template() -> str:
    return Path(__file__).with_name("theme.qss").read_text(encoding="utf-8")


_GENERIC = ("", "sans", "sans serif", "sans-serif")
_SANS = ("DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial")
_FIXED = ("DejaVu Sans Mono", "Liberation Mono", "Noto Sans Mono", "Courier New")
"""Where fontconfig has no aliases, any font stands in for the generic names: a book's, or one of uneven widths."""


@cache
def _family() -> str:
    """Inter where it is installed, else the desktop's own interface font; where no desktop says what a sans serif is,
    a well-known one."""
    families = QFontDatabase.families()
    own = QGuiApplication.font().family()
    stands_in, with_serifs = (QFontInfo(QFont(name)).family() for name in (own, "serif"))
    is_any = own.lower() in _GENERIC and stands_in == with_serifs and "sans" not in stands_in.lower()
    wanted = ("Inter", "Inter Variable", *(_SANS if is_any else ()))
    return next((name for name in wanted if name in families), own)


@cache
def _fixed_family() -> str:
    """The desktop's letters of one width, for code."""
    own = QFontInfo(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)).family()
    families = () if QFontDatabase.isFixedPitch(own) else QFontDatabase.families()
    return next((name for name in _FIXED if name in families), own)


def reset_font_family() -> None:
    """Look for the interface font anew: the application's own has changed."""
    _family.cache_clear()


@cache
def _readable_color(color: str, text: str, ground: str) -> QColor:
    return ensure_readable(QColor(color), QColor(text), QColor(ground))


_RAMP_STEPS = 100


@cache
def _ramp(name: str) -> tuple[QColor, ...]:
    stops = [QColor(stop) for stop in RAMPS[name]]
    return tuple(_interpolate(stops, step / _RAMP_STEPS) for step in range(_RAMP_STEPS + 1))


def _interpolate(stops: list[QColor], t: float) -> QColor:
    position = t * (len(stops) - 1)
    left = min(int(position), len(stops) - 2)
    fraction = position - left
    a, b = ((stop.red(), stop.green(), stop.blue()) for stop in stops[left : left + 2])
    red, green, blue = (round(x + (y - x) * fraction) for x, y in zip(a, b, strict=True))
    return QColor(red, green, blue)


class Themeable(Protocol):
    """Whatever takes colours and sizes."""

    def set_theme(self, theme: Theme) -> None:
        """Take those of `theme` at once."""
