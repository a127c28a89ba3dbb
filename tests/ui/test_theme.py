"""Themes: contrast, the scale of probabilities, the style sheet, the size of type."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QFontMetricsF
from pytestqt.qtbot import QtBot

from app.theme import theme as module
from app.theme.theme import Theme, theme_for
from tests.fonts import FONTS

ROOT = Path(__file__).parents[2]

BOTH = pytest.mark.parametrize("name", ["light", "dark"])


def luminance(color: QColor) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = (color.redF(), color.greenF(), color.blueF())
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: QColor | str, b: QColor | str) -> float:
    low, high = sorted((luminance(QColor(a)), luminance(QColor(b))))
    return (high + 0.05) / (low + 0.05)


@BOTH
@pytest.mark.parametrize("ground", ["window", "panel", "field", "tint", "hover"])
@pytest.mark.parametrize("ink", ["text", "muted", "accent"])
def test_text_can_be_read_on_every_ground(qtbot: QtBot, name: str, ink: str, ground: str) -> None:
    theme = theme_for(name)
    assert contrast(getattr(theme, ink), getattr(theme, ground)) >= 4.5


@BOTH
def test_text_can_be_read_on_coloured_grounds(qtbot: QtBot, name: str) -> None:
    theme = theme_for(name)
    pairs = [("on_accent", "accent"), ("text", "selection"), ("danger", "danger_tint"), ("text", "danger_tint")]
    pairs += [(state, "panel") for state in ("danger", "warning")]
    assert [pair for pair in pairs if contrast(getattr(theme, pair[0]), getattr(theme, pair[1])) < 4.5] == []


@BOTH
def test_marks_stand_out_from_the_page(qtbot: QtBot, name: str) -> None:
    theme = theme_for(name)
    marks = [theme.ramp(step / 10) for step in range(11)]
    marks += [theme.color(state) for state in ("kept", "pruned", "best", "finished", "refused")]
    assert [mark.name() for mark in marks if contrast(mark, theme.window) < 3.0] == []


@BOTH
def test_probability_goes_from_orange_over_grey_to_blue(qtbot: QtBot, name: str) -> None:
    theme = theme_for(name)
    unlikely, middle, certain = (theme.probability(p) for p in (0.0, 0.5, 1.0))
    assert unlikely.red() > unlikely.blue() + 80
    assert certain.blue() > certain.red() + 80
    assert abs(middle.red() - middle.blue()) < 40
    warmth = [theme.ramp(step / 20).red() - theme.ramp(step / 20).blue() for step in range(21)]
    assert sum(later > earlier + 12 for earlier, later in pairwise(warmth)) <= 2
    assert theme.ramp(-3).name() == unlikely.name()
    assert theme.ramp(7).name() == certain.name()


@BOTH
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_stylesheet_is_whole(qtbot: QtBot, name: str, scale: float) -> None:
    sheet = theme_for(name, scale).stylesheet()
    assert "$" not in sheet
    pictures = re.findall(r'url\("([^"]+)"\)', sheet)
    assert pictures
    assert [picture for picture in pictures if not Path(picture).is_file()] == []


def test_lengths_grow_with_the_type_but_hairlines_do_not(qtbot: QtBot) -> None:
    small, large = theme_for("light"), theme_for("light", 1.5)
    assert "font-size: 13px" in small.stylesheet()
    assert "font-size: 20px" in large.stylesheet()
    assert "border: 1px solid" in large.stylesheet()
    assert (small.px(18), large.px(18)) == (18, 27)
    assert large.font(18).pixelSize() == 27


def test_at_a_hundred_per_cent_every_length_is_as_written() -> None:
    """Nothing is reckoned then, so what is written must be whole."""
    template = module._template()
    assert module._multiply_lengths(template, 1.0, is_whole=True) == template


def test_tabular_figures_have_one_width(qtbot: QtBot) -> None:
    metrics = QFontMetricsF(theme_for("light").font(13, tabular=True))
    widths = {round(metrics.horizontalAdvance(figure * 20), 1) for figure in "0123456789"}
    assert len(widths) == 1


def test_a_theme_without_that_name_is_refused(qtbot: QtBot) -> None:
    with pytest.raises(ValueError, match=r"'sepia'.*system, light, dark"):
        theme_for("sepia")


def test_system_theme_is_one_of_the_two(qtbot: QtBot) -> None:
    theme = theme_for("system")
    assert isinstance(theme, Theme)
    assert theme.name in {"light", "dark"}


NO_ALIASES = "<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>"
FAMILIES = """
from PySide6.QtGui import QFontInfo, QGuiApplication
app = QGuiApplication([])
from app.theme.theme import _fixed_family, theme_for
print(QFontInfo(theme_for("light").font(13)).family(), _fixed_family(), sep=", ")
"""


def test_words_have_no_serifs_where_nobody_says_what_a_sans_serif_is(tmp_path: Path) -> None:
    """Fonts in a folder, and a fontconfig that knows no generic names: a serif stands in for them."""
    fonts = FONTS["wide"].found()[0].parent
    if not list(fonts.glob("DejaVuSerif*.ttf")):
        pytest.skip("there is no font with serifs beside the one without")
    config = tmp_path / "fonts.conf"
    config.write_text(NO_ALIASES.format(fonts=fonts, cache=tmp_path / "cache"))
    variables = {**os.environ, "FONTCONFIG_FILE": str(config), "QT_QPA_PLATFORM": "offscreen"}
    reported = subprocess.run([sys.executable, "-c", FAMILIES], env=variables, capture_output=True, text=True, cwd=ROOT)
    assert reported.stdout.strip() == "DejaVu Sans, DejaVu Sans Mono", reported.stderr
