"""A theme: colours, fonts, contrast and the style sheets, scaled by the font size setting or for presenting."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QGuiApplication, QPainter

from decodescope import resources
from decodescope.app.theme.fonts import interface_families, make_font, monospaced_families
from decodescope.app.theme.palettes import PALETTES, RAMPS, SCHEMES, STAGE_PALETTES

MIN_TEXT_CONTRAST = 4.5
"""Minimum contrast of small text (success criterion 1.4.3)."""
MIN_MARK_CONTRAST = 3.0
"""Minimum contrast of large text and of meaningful marks (1.4.3, 1.4.11)."""
_STEP = 0.05


def luminance(color: QColor) -> float:
    """Return the relative luminance, 0 (black) to 1 (white)."""
    parts = (color.redF(), color.greenF(), color.blueF())
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: QColor, other: QColor) -> float:
    """Return the contrast ratio, 1 (identical) to 21 (black on white)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def blend(over: QColor, under: QColor, opacity: float) -> QColor:
    """Blend `over` onto `under` with the given opacity; the result is opaque."""
    pairs = ((over.red(), under.red()), (over.green(), under.green()), (over.blue(), under.blue()))
    return QColor(*(round(b + (a - b) * opacity) for a, b in pairs))


def ensure_readable(color: QColor, text: QColor, background: QColor) -> QColor:
    """Move `color` towards `text` until small text of that colour is readable on `background`."""
    share = 1.0
    while share > 0 and contrast(blend(color, text, share), background) < MIN_TEXT_CONTRAST:
        share -= _STEP
    return blend(color, text, max(0.0, share))


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
    thinking: str
    scale: float = 1.0
    min_font_pixels: int = 0
    """Minimum font size in pixels, whatever the scale; used when presenting (`stage_theme`). 0 means no minimum."""

    @property
    def is_dark(self) -> bool:
        """Whether the theme shows light text on a dark background."""
        return self.name == "dark"

    def color(self, name: str, alpha: float = 1.0) -> QColor:
        """Return the colour in the field `name`; `alpha` is 0 (transparent) to 1."""
        color = QColor(getattr(self, name))
        color.setAlphaF(alpha)
        return color

    def ink(self, name: str) -> QColor:
        """Return the colour of that field for small text, moved towards the text colour where it would be hard to
        read.
        """
        return _readable_color(getattr(self, name), self.text, self.tint)

    def ramp(self, t: float) -> QColor:
        """Return the colour at `t` in [0, 1] on the scale dark orange – grey – deep blue. Values outside are clipped;
        NaN is grey.
        """
        if t != t:
            return self.color("faint")
        return _ramp(self.name)[round(min(max(t, 0.0), 1.0) * _RAMP_STEPS)]

    def probability(self, p: float) -> QColor:
        """Return the colour of a probability: unlikely is orange, certain is blue."""
        return self.ramp(p)

    def px(self, size: float) -> int:
        """Scale a size given in pixels at 100 %."""
        return round(size * self.scale)

    def space(self, size: float) -> int:
        """Scale spacing given in pixels at 100 %; it grows less than text, which leaves more room for large text."""
        return round(size * _spacing(self.scale))

    def font_pixels(self, size: float) -> int:
        """Return the scaled font size of text that is `size` pixels high at 100 %, at least the minimum."""
        return max(1, self.min_font_pixels, self.px(size))

    def font(self, px: float, weight: int = 400, tabular: bool = False) -> QFont:
        """Return the interface font at `px` unscaled pixels; `tabular` gives all digits the same width."""
        return QFont(_font(self.font_pixels(px), weight, tabular))

    def stylesheet(self) -> str:
        """Return the style sheet of the whole application."""
        values = {key: str(value) for key, value in self._asdict().items()}
        values |= {"family": _quoted(interface_families()), "fixed": _quoted(monospaced_families())}
        values |= {"icons": resources.path("icons").as_posix()}
        template = _with_min_font(_scaled(_template(), self.scale), self.min_font_pixels)
        return re.sub(r"\$(\w+)", lambda match: values[match[1]], template)


_font = cache(make_font)
"""Fonts to copy from: each widget requests several while painting."""


def _quoted(families: list[str]) -> str:
    return ", ".join(f'"{family}"' for family in families)


def theme_for(name: str = "system", scale: float = 1.0) -> Theme:
    """Return the theme `light`, `dark` or the desktop's (`system`), at `scale` (1.0 = 100 %)."""
    if name not in SCHEMES:
        raise ValueError(f"there is no theme {name!r}; choose one of {', '.join(SCHEMES)}")
    chosen = _system_scheme() if name == "system" else name
    return Theme(name=chosen, scale=scale, min_font_pixels=0, **PALETTES[chosen])


def _system_scheme() -> str:
    return "dark" if QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark else "light"


def _spacing(scale: float) -> float:
    """Return the scale of spacing for a font scale: a third of the growth, but all of the shrinkage."""
    return min(scale, 1 + (scale - 1) / 3)


_SPACING_RULE = re.compile(r"\b(?:padding(?!-right)|margin|spacing|border-radius)[\w-]*:[^;]*;")


def _scaled(template: str, scale: float) -> str:
    """Scale every length except hairlines with the font, and spacing less."""
    if scale == 1:  # unscaled, the usual case at start
        return template
    gentle = _SPACING_RULE.sub(lambda found: _multiply_lengths(found[0], _spacing(scale) / scale), template)
    return _multiply_lengths(gentle, scale, is_whole=True)


def _with_min_font(rules: str, min_font_pixels: int) -> str:
    """Return `rules` with no font below `min_font_pixels`."""
    return re.sub(r"font-size: (\d+)px", lambda found: f"font-size: {max(min_font_pixels, int(found[1]))}px", rules)


def _multiply_lengths(rules: str, factor: float, is_whole: bool = False) -> str:
    """Multiply every length in pixels above a hairline by `factor`; `is_whole` rounds the result."""

    def grown(found: re.Match[str]) -> str:
        length = float(found[1])
        if length <= 1:
            return found[0]
        return f"{round(length * factor)}px" if is_whole else f"{length * factor:.4f}px"

    return re.sub(r"(-?\b\d+(?:\.\d+)?)px", grown, rules)


@cache
def _template() -> str:
    return Path(__file__).with_name("theme.qss").read_text(encoding="utf-8")


@cache
def _readable_color(color: str, text: str, background: str) -> QColor:
    return ensure_readable(QColor(color), QColor(text), QColor(background))


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


REFERENCE_SIZE = QSize(1280, 720)
"""Window size that the values below refer to; they scale with the window."""
MIN_FONT_PIXELS = 28
"""Size of the smallest text, in pixels."""
SCALE = 2.15
"""Scale of everything else: 13-pixel text at 100 % becomes as large as the smallest text."""


def stage_theme(theme: Theme, window_size: QSize) -> Theme:
    """Return `theme` adapted for presenting in a window of the given size."""
    share = min(window_size.width() / REFERENCE_SIZE.width(), window_size.height() / REFERENCE_SIZE.height())
    return theme._replace(
        scale=SCALE * share, min_font_pixels=round(MIN_FONT_PIXELS * share), **STAGE_PALETTES[theme.name]
    )


TAB_COLUMNS = 4
"""Tab width, in spaces."""


def tab_distance(font: QFont) -> float:
    """Return the distance between two tab stops, in pixels."""
    return TAB_COLUMNS * QFontMetricsF(font).horizontalAdvance(" ")


def fill_rect(painter: QPainter, rect: QRect | QRectF, color: QColor) -> None:
    """Fill a rectangle like `fillRect`, without the 2 ms that PySide6 spends once on the names of 169 gradients."""
    painter.save()
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    painter.drawRect(rect)
    painter.restore()


def panel_stylesheet(theme: Theme) -> str:
    """Return one style sheet for all panels, which is much faster than one for each widget."""
    return _settings(theme) + _buttons(theme) + _lists(theme)


def _settings(theme: Theme) -> str:
    """Return the rules of setting editors and their surroundings."""
    px = theme.px
    return f"""
QAbstractSpinBox[plain="true"]::up-button, QAbstractSpinBox[plain="true"]::down-button {{ width: 0; border: 0; }}
QAbstractSpinBox[plain="true"]::up-arrow, QAbstractSpinBox[plain="true"]::down-arrow {{
    image: none; width: 0; height: 0;
}}
QAbstractSpinBox[plain="true"] {{ padding: 2px 4px; }}
ValueSlider {{ min-height: {px(14)}px; max-height: {px(14)}px; }}
#usedSettings[changed="true"] {{ color: {theme.accent}; }}
#seedBox {{ border: 1px solid {theme.line}; border-radius: {px(8)}px; background: transparent; }}
#seedBox QLabel {{ color: {theme.muted}; }}
#seedSpin {{ border: 1px solid transparent; background: transparent; padding: 1px; }}
#seedSpin:focus {{ border: 1px solid {theme.accent}; border-radius: {px(5)}px; }}
#usedSettings {{ color: {theme.muted}; font-size: {theme.font_pixels(12)}px; padding: 1px {px(6)}px; }}
#resetButton, #openPreset, #moreButton {{ font-size: {theme.font_pixels(12)}px; padding: 1px {px(6)}px; }}
"""


def _buttons(theme: Theme) -> str:
    """Return the rules of buttons, tabs and segmented controls."""
    px = theme.px
    return f"""
QPushButton[role="chip"] {{ border-radius: {theme.space(12)}px; }}
#exportButton, #toursButton {{ border: 1px solid {theme.line}; border-radius: {px(8)}px; }}
#exportButton:hover, #toursButton:hover {{ background: {theme.hover}; }}
#exportButton:focus, #toursButton:focus {{ border: 1px solid {theme.accent}; }}
#scoreButton {{
    border: 1px solid {theme.line}; border-radius: {theme.space(12)}px;
    padding: {px(2)}px {px(22)}px {px(2)}px {px(8)}px; color: {theme.accent};
    font-size: {theme.font_pixels(12)}px; min-height: {px(17)}px;
}}
#scoreButton:hover {{ background: {theme.hover}; }}
#scoreButton:focus {{ border: 1px solid {theme.accent}; }}
#scoreButton::menu-button {{ border: 0; width: {px(20)}px; }}
#moreButton, #openPreset {{ color: {theme.muted}; }}
#toursButton {{ padding: 0 {px(10)}px; }}
#colourButton, #whitespaceButton {{ padding: {px(4)}px 1px; }}
#moreViews {{ padding: 2px {px(6)}px; }}
#toolStack {{ background: transparent; }}
IconButton {{ padding: {px(4)}px; }}
#statusLine IconButton {{ padding: 1px {px(5)}px; }}
IconButton:checked:!hover {{ background: transparent; }}
IconButton:hover {{ background: {theme.hover}; }}
Segmented QPushButton[role="quiet"] {{
    color: {theme.muted}; font-size: {theme.font_pixels(12)}px; padding: 2px {px(6)}px;
}}
Segmented QPushButton[role="quiet"]:checked {{ color: {theme.text}; background: transparent; font-weight: 600; }}
Segmented QPushButton[role="quiet"]:disabled {{ color: {theme.faint}; }}
"""


def _lists(theme: Theme) -> str:
    """Return the rules of cards, lists and headings."""
    px = theme.px
    return f"""
QPushButton[role="tour"] {{
    text-align: left; background: {theme.panel}; border: 1px solid {theme.line}; border-radius: {theme.space(8)}px;
}}
QPushButton[role="tour"]:hover {{ background: {theme.hover}; }}
QPushButton[role="tour"]:focus {{ border: 2px solid {theme.accent}; }}
QLabel[role="tourTitle"] {{ font-weight: 600; }}
QLabel[role="spoken"] {{ font-size: {px(18)}px; }}
QLabel[role="bannerTitle"] {{ font-weight: 600; }}
#historyList, #chatItems {{ border: 0; padding: 0; }}
#historyView QStackedWidget {{ background: transparent; }}
TableDialog QScrollArea {{ border: 1px solid transparent; border-radius: {px(5)}px; }}
TableDialog QScrollArea:focus {{ border: 1px solid {theme.accent}; }}
"""
