"""Themes: contrast, the scale of probabilities, the style sheet, the size of type; all of a window has the same."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QFontMetricsF
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.features.tours.state import find_tour
from decodescope.app.theme import theme as module
from decodescope.app.theme.fonts import SANS, TYPE_SCALE
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed, inherit_theme, surrounding_theme
from decodescope.app.widgets.widget_pictures import PictureOptions
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import open_window, run, whole

ROOT = Path(__file__).parents[2]
APP = ROOT / "app"

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
def test_text_has_required_contrast_on_backgrounds(qtbot: QtBot, name: str, ink: str, ground: str) -> None:
    theme = theme_for(name)
    assert contrast(getattr(theme, ink), getattr(theme, ground)) >= 4.5


@BOTH
def test_text_has_required_contrast_on_colored_backgrounds(qtbot: QtBot, name: str) -> None:
    theme = theme_for(name)
    pairs = [("on_accent", "accent"), ("text", "selection"), ("danger", "danger_tint"), ("text", "danger_tint")]
    pairs += [(state, "panel") for state in ("danger", "warning")]
    assert [pair for pair in pairs if contrast(getattr(theme, pair[0]), getattr(theme, pair[1])) < 4.5] == []


@BOTH
def test_marks_have_required_contrast(qtbot: QtBot, name: str) -> None:
    theme = theme_for(name)
    marks = [theme.ramp(step / 10) for step in range(11)]
    marks += [theme.color(state) for state in ("kept", "pruned", "best", "finished", "refused")]
    assert [mark.name() for mark in marks if contrast(mark, theme.window) < 3.0] == []


@BOTH
def test_probability_ramp_is_orange_gray_blue(qtbot: QtBot, name: str) -> None:
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
def test_stylesheet_has_no_placeholders_and_existing_images(qtbot: QtBot, name: str, scale: float) -> None:
    sheet = theme_for(name, scale).stylesheet()
    assert "$" not in sheet
    pictures = re.findall(r'url\("([^"]+)"\)', sheet)
    assert pictures
    assert [picture for picture in pictures if not Path(picture).is_file()] == []


def test_lengths_scale_with_font_but_hairlines_do_not(qtbot: QtBot) -> None:
    small, large = theme_for("light"), theme_for("light", 1.5)
    assert "font-size: 13px" in small.stylesheet()
    assert "font-size: 20px" in large.stylesheet()
    assert "border: 1px solid" in large.stylesheet()
    assert (small.px(18), large.px(18)) == (18, 27)
    assert large.font(18).pixelSize() == 27


def test_lengths_at_scale_one_are_unchanged() -> None:
    """Nothing is computed then, so the stored values must be complete."""
    template = module._template()
    assert module._multiply_lengths(template, 1.0, is_whole=True) == template


def test_tabular_digits_have_equal_width(qtbot: QtBot) -> None:
    metrics = QFontMetricsF(theme_for("light").font(13, tabular=True))
    widths = {round(metrics.horizontalAdvance(figure * 20), 1) for figure in "0123456789"}
    assert len(widths) == 1


def test_unknown_theme_name_is_rejected(qtbot: QtBot) -> None:
    with pytest.raises(ValueError, match=r"'sepia'.*system, light, dark"):
        theme_for("sepia")


def test_system_theme_is_light_or_dark(qtbot: QtBot) -> None:
    theme = theme_for("system")
    assert isinstance(theme, Theme)
    assert theme.name in {"light", "dark"}


NO_FONTS = "<fontconfig><dir>{folder}</dir><cachedir>{folder}/cache</cachedir></fontconfig>"
FAMILIES = """
from PySide6.QtGui import QFontInfo, QFontMetricsF, QGuiApplication
app = QGuiApplication([])
from decodescope.app.theme.fonts import make_font
for weight in (400, 500, 600, 700):
    font = make_font(13, weight)
    print(QFontInfo(font).family(), QFontMetricsF(font).horizontalAdvance("Top-k 50 词元"))
"""


def test_text_has_the_same_width_without_fonts_of_the_machine(tmp_path: Path) -> None:
    config = tmp_path / "fonts.conf"
    config.write_text(NO_FONTS.format(folder=tmp_path))
    reported = [
        subprocess.run(
            [sys.executable, "-c", FAMILIES], env={**os.environ, "QT_QPA_PLATFORM": "offscreen", **variables},
            capture_output=True, text=True, encoding="utf-8", cwd=ROOT,
        ).stdout.splitlines()
        for variables in ({}, {"FONTCONFIG_FILE": str(config)})
    ]  # fmt: skip
    assert reported[0] == reported[1]
    assert [line.rpartition(" ")[0] for line in reported[0]] == [SANS] * 4
    assert len(set(reported[0])) == 3
    assert reported[0][2] == reported[0][3], "600 and 700 are one weight"


def test_sizes_of_text_in_the_source_are_of_the_type_scale() -> None:
    """`font(13)`, `font_pixels(13)` and `font-size: 13px` or `font-size: {theme.px(13)}px`."""
    size = re.compile(r"\b(?:theme\.font|font_pixels)\((\d+(?:\.\d+)?)|font-size: \{?(?:theme\.)?(?:px\()?(\d+)")
    found = {
        f"{path.relative_to(APP)}: {match[0]}"
        for path in (*APP.rglob("*.py"), *APP.rglob("*.qss"))
        for match in size.finditer(path.read_text(encoding="utf-8"))
        if float(match[1] or match[2]) not in TYPE_SCALE
    }
    assert found == set()


def themes(window: MainWindow) -> dict[Theme, set[str]]:
    """The classes of the widgets that have each theme, in the window and its dialogs."""
    found: dict[Theme, set[str]] = {}
    for part in (window, *window.findChildren(QWidget)):
        if isinstance(part, Themed):
            found.setdefault(part.current_theme, set()).add(type(part).__name__)
    return found


def open_everything(window: MainWindow) -> None:
    """Parts that are created on first use: views, panels, pages and dialogs."""
    parts = whole(window).parts
    parts.centre.set_split(True)
    parts.history_panel.show()
    parts.palette.open()
    parts.welcome.show()
    parts.media_bar.ensure_bar()
    parts.media.add(["a picture that is not there.png"])
    parts.tours.player.ui.open(find_tour("likeliest"))
    parts.guess.toggle()
    parts.messages.show_notice("A notice.")
    parts.export.open_dialog()
    parts.labs.open_scale()
    parts.labs.open_speed()
    parts.labs.open_preference()
    parts.model_download.open()
    parts.model_download.connect_engine()


def test_widgets_created_after_theme_change_have_new_theme(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    assert run(qtbot, window).kind == "completed"
    appearance = window.parts.appearance
    appearance.set_theme("dark")
    few = themes(window)
    assert list(few) == [appearance.theme]
    open_everything(window)
    made = themes(window)
    assert list(made) == [appearance.theme], {theme.name: names for theme, names in made.items()}
    late = {"CommandPalette", "ExportDialog", "GuessPanel", "MediaCard", "ScaleView", "TourPanel", "WelcomeButton"}
    assert late <= made[appearance.theme] - few[appearance.theme]


@pytest.mark.slow
def test_open_widgets_follow_theme_changes(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    open_everything(window)
    for name, scale in (("dark", 1.0), ("light", 1.5)):
        window.parts.appearance.set_theme(name)
        window.parts.appearance.set_font_scale(scale)
        assert list(themes(window)) == [theme_for(name, scale)]


def test_each_window_has_its_own_theme(qtbot: QtBot, tmp_path: Path) -> None:
    first, second = (open_window(qtbot, tmp_path / name) for name in ("one", "two"))
    first.parts.appearance.set_theme("dark")
    assert list(themes(first)) == [theme_for("dark")]
    assert list(themes(second)) == [theme_for("light")]


def test_picture_in_other_theme_keeps_window_theme(qtbot: QtBot, config_dir: Path) -> None:
    window = whole(open_window(qtbot, config_dir))
    before = themes(window)
    exports = window.parts.export.exports
    pictures = [exports.image("tokens", PictureOptions(QSize(400, 300), theme=name)) for name in ("light", "dark")]
    assert pictures[0] != pictures[1]
    assert themes(window) == before


class RestyleRecorder(Themed, QWidget):
    """Counts how often it was styled, and notes the theme of what it contains."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.styled: list[tuple[Theme, list[Theme]]] = []

    def restyle(self, theme: Theme) -> None:
        super().restyle(theme)
        self.styled.append((theme, [inner.current_theme for inner in self.findChildren(RestyleRecorder)]))


def test_theme_change_styles_inner_widgets_first_and_once(qtbot: QtBot) -> None:
    outer = RestyleRecorder()
    qtbot.addWidget(outer)
    between = QWidget(outer)
    inner = RestyleRecorder(between)
    assert not outer.is_themed
    assert surrounding_theme(inner) is None
    inherit_theme(inner)
    assert not inner.styled
    dark = theme_for("dark")
    outer.set_theme(dark)
    assert (outer.styled, inner.styled) == ([(dark, [dark])], [(dark, [])])
    late = RestyleRecorder()
    QVBoxLayout(between).addWidget(late)
    inherit_theme(late)
    assert late.current_theme == dark
    assert len(outer.styled) == 1
