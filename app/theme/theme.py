"""One theme: colours, fonts and the application's style sheet, all scaled by the reader's font size."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication

import resources
from app.theme.contrast import readable
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
    least: int = 0
    """Pixels that no letter is smaller than, whatever the scale: on a stage (`app.theme.stage`). 0: none."""

    @property
    def dark(self) -> bool:
        """Whether light text stands on a dark ground."""
        return self.name == "dark"

    def color(self, name: str, alpha: float = 1.0) -> QColor:
        """The colour of that field, `alpha` 0 (clear) to 1."""
        color = QColor(getattr(self, name))
        color.setAlphaF(alpha)
        return color

    def ink(self, name: str) -> QColor:
        """The colour of that field for small type: moved towards the text's where it would be hard to read."""
        return _ink(getattr(self, name), self.text, self.tint)

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

    def letters(self, size: float) -> int:
        """Pixels of letters that are `size` high at 100 %: scaled, and never smaller than the least."""
        return max(1, self.least, self.px(size))

    def font(self, px: float, weight: int = 400, tabular: bool = False) -> QFont:
        """The interface font at `px` (unscaled) pixels; `tabular` gives figures one width."""
        return QFont(_font(_family(), self.letters(px), weight, tabular))

    def stylesheet(self) -> str:
        """Style sheet for the whole application."""
        values = {key: str(value) for key, value in self._asdict().items()}
        values |= {"family": _family(), "fixed": _fixed_family(), "icons": resources.path("icons").as_posix()}
        template = _no_smaller(_scaled(_template(), self.scale), self.least)
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
    return Theme(name=chosen, scale=scale, least=0, **PALETTES[chosen])


def _system_scheme() -> str:
    return "dark" if QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark else "light"


def _spacing(scale: float) -> float:
    """How empty room grows when type grows by `scale`: by a third as much; it shrinks along."""
    return min(scale, 1 + (scale - 1) / 3)


_EMPTY_ROOM = re.compile(r"\b(?:padding(?!-right)|margin|spacing|border-radius)[\w-]*:[^;]*;")


def _scaled(template: str, scale: float) -> str:
    """Every length but hairlines grows with the font, empty room less."""
    if scale == 1:  # as it is written, and as most starts have it
        return template
    gentle = _EMPTY_ROOM.sub(lambda found: _lengths_times(found[0], _spacing(scale) / scale), template)
    return _lengths_times(gentle, scale, whole=True)


def _no_smaller(rules: str, least: int) -> str:
    """`rules` with no type below `least` pixels."""
    return re.sub(r"font-size: (\d+)px", lambda found: f"font-size: {max(least, int(found[1]))}px", rules)


def _lengths_times(rules: str, factor: float, whole: bool = False) -> str:
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


def forget_family() -> None:
    """Look for the interface font anew: the application's own has changed."""
    _family.cache_clear()


@cache
def _ink(color: str, text: str, ground: str) -> QColor:
    return readable(QColor(color), QColor(text), QColor(ground))


_RAMP_STEPS = 100


@cache
def _ramp(name: str) -> tuple[QColor, ...]:
    stops = [QColor(stop) for stop in RAMPS[name]]
    return tuple(_between(stops, step / _RAMP_STEPS) for step in range(_RAMP_STEPS + 1))


def _between(stops: list[QColor], t: float) -> QColor:
    place = t * (len(stops) - 1)
    left = min(int(place), len(stops) - 2)
    share = place - left
    a, b = ((stop.red(), stop.green(), stop.blue()) for stop in stops[left : left + 2])
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return QColor(red, green, blue)


class Themed(Protocol):
    """Whatever takes colours and sizes."""

    def set_theme(self, theme: Theme) -> None:
        """Take those of `theme` at once."""
