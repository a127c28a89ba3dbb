"""WCAG AA contrast and color vision deficiencies, computed from the palettes for all pairs that are drawn."""

from __future__ import annotations

from itertools import combinations

import pytest
from PySide6.QtGui import QColor

from decodescope.app.theme.palettes import DRAFTERS
from decodescope.app.theme.theme import MIN_MARK_CONTRAST, MIN_TEXT_CONTRAST, Theme, blend, contrast, theme_for
from decodescope.app.views.chat.bubbles import DROPPED_OPACITY
from decodescope.app.widgets.tree_canvas.tree_style import DIMMED_OPACITY, TreeStyle
from tests.ui.colour_vision import VISION_TYPES, color_distance, simulate_color

BOTH = pytest.mark.parametrize("theme", [theme_for("light"), theme_for("dark")], ids=lambda theme: theme.name)
GROUNDS = ("window", "panel", "field", "tint", "hover")
"""What words and marks stand on."""
STATES = ("kept", "pruned", "best", "finished", "refused")
WORDS = [
    *((ink, ground) for ink in ("text", "muted", "accent") for ground in GROUNDS),
    ("on_accent", "accent"),
    ("text", "selection"), ("muted", "selection"),
    *((ink, "danger_tint") for ink in ("text", "muted", "danger")),
    *((ink, ground) for ink in ("danger", "warning") for ground in ("window", "panel")),
]  # fmt: skip
MARKS = [
    *((mark, ground) for mark in ("accent", "faint", *STATES) for ground in GROUNDS),  # boxes, bars, lines, focus rings
    *((mark, "danger_tint") for mark in ("accent", "danger")),
    ("warning", "line"), ("accent", "line"),  # a meter on its track
]  # fmt: skip
# `faint` is small type only where a control is off and says nothing that has to be read: WCAG leaves those out.
# `line` parts what is told apart by its words or its place as well; no meaning hangs on it alone.


def low(theme: Theme, pairs: list[tuple[str, str]], least: float) -> list[str]:
    """The pairs that do not stand out as they must."""
    ratios = {pair: contrast(theme.color(pair[0]), theme.color(pair[1])) for pair in pairs}
    return [f"{ink} on {ground}: {ratio:.2f}" for (ink, ground), ratio in ratios.items() if ratio < least]


@BOTH
def test_text_and_marks_have_required_contrast(theme: Theme) -> None:
    assert low(theme, WORDS, MIN_TEXT_CONTRAST) == []
    assert low(theme, MARKS, MIN_MARK_CONTRAST) == []


@BOTH
def test_probability_underlines_have_required_contrast(theme: Theme) -> None:
    """Underlines stand on the page, on the newest token's tint, the hovered one's shade, and under selected text."""
    worst = min(
        (contrast(theme.ramp(step / 50), theme.color(ground)), ground, step)
        for step in range(51)
        for ground in ("window", "panel", "tint", "hover", "selection")
    )
    assert worst[0] >= MIN_MARK_CONTRAST, worst


@BOTH
def test_state_inks_have_required_contrast_and_keep_hue(theme: Theme) -> None:
    for name in (*STATES, "danger", "warning", "accent", "muted"):
        ink = theme.ink(name)
        assert min(contrast(ink, theme.color(ground)) for ground in GROUNDS) >= MIN_TEXT_CONTRAST, name
        assert abs(ink.hue() - theme.color(name).hue()) < 20 or ink.saturation() < 60, name


@BOTH
def test_dimmed_elements_have_required_contrast(theme: Theme) -> None:
    look, window, panel = TreeStyle(theme), theme.color("window"), theme.color("panel")
    assert contrast(look.state_colour("pruned"), window) >= MIN_MARK_CONTRAST
    assert contrast(look.label_colour("pruned"), window) >= MIN_TEXT_CONTRAST
    assert look.state_colour("pruned") != TreeStyle(theme, pruned="shown").state_colour("pruned")
    assert (
        contrast(blend(theme.color("text"), window, DROPPED_OPACITY), blend(panel, window, DROPPED_OPACITY))
        >= MIN_TEXT_CONTRAST
    )
    assert 0 < DIMMED_OPACITY < 1


@BOTH
def test_drafter_letters_have_required_contrast(theme: Theme) -> None:
    for colour in DRAFTERS[theme.name]:
        assert contrast(theme.color("on_accent"), QColor(colour)) >= MIN_TEXT_CONTRAST
        assert contrast(QColor(colour), theme.color("window")) >= MIN_MARK_CONTRAST


@BOTH
def test_funnels_and_bars_have_required_contrast(theme: Theme) -> None:
    panel = theme.color("panel")
    assert contrast(blend(theme.color("accent"), panel, 0.8), panel) >= MIN_MARK_CONTRAST
    assert contrast(blend(theme.color("accent"), panel, 0.85), panel) >= MIN_MARK_CONTRAST


def test_contrast_matches_wcag() -> None:
    black, white, grey = QColor("black"), QColor("white"), QColor("#767676")
    assert contrast(black, white) == pytest.approx(21)
    assert contrast(white, grey) == pytest.approx(4.54, abs=0.01)


# Color vision deficiencies


PAIRS = [
    *combinations(("kept", "finished", "refused"), 2), ("best", "kept"), ("best", "finished"), ("accent", "refused"),
    ("accent", "faint"), ("danger", "accent"), ("danger", "muted"), ("warning", "accent"),
]  # fmt: skip
"""Colours that mean different things beside each other and have no shape of their own in every place: cells of rounds
and of the cache, bars, plots."""
LEAST_APART = 12.0
"""CIE76 ΔE; 2.3 is a just noticeable difference, and marks are small."""


@BOTH
@pytest.mark.parametrize("eye", VISION_TYPES)
def test_semantic_colors_are_distinguishable(theme: Theme, eye: str) -> None:
    close = [
        f"{one} and {other}: {distance:.1f}"
        for one, other in PAIRS
        if (distance := color_distance(simulate_color(theme.color(one), eye), simulate_color(theme.color(other), eye)))
        < LEAST_APART
    ]
    assert close == []


@BOTH
@pytest.mark.parametrize("eye", VISION_TYPES)
def test_probability_colors_are_distinguishable(theme: Theme, eye: str) -> None:
    """The thickness of a line is its second cue; the colours alone still part the ends and the middle."""
    unlikely, even, certain = (simulate_color(theme.ramp(p), eye) for p in (0.0, 0.5, 1.0))
    assert min(color_distance(unlikely, certain), color_distance(unlikely, even), color_distance(even, certain)) >= 20


@BOTH
@pytest.mark.parametrize("eye", VISION_TYPES)
def test_drafter_colors_are_distinguishable(theme: Theme, eye: str) -> None:
    """Every mark has a letter, so only the first two colors must be distinguishable."""
    first, second, *_ = (simulate_color(QColor(colour), eye) for colour in DRAFTERS[theme.name])
    assert color_distance(first, second) >= LEAST_APART
