"""The program's fonts: they have the characters that the program shows, and are small and licensed."""

from __future__ import annotations

import importlib.util
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from PySide6.QtGui import QRawFont
from pytestqt.qtbot import QtBot

from decodescope.app.state import licences
from decodescope.app.state.bundled_libraries import bundled_fonts
from tests import fonts

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "resources" / "fonts"
CONFIG = "<?xml version='1.0'?><!DOCTYPE fontconfig SYSTEM 'fonts.dtd'><fontconfig><dir>{folder}</dir></fontconfig>"
specification = importlib.util.spec_from_file_location("font_cuts", ROOT / "packaging" / "fonts.py")
assert specification is not None
assert specification.loader is not None
font_cuts = importlib.util.module_from_spec(specification)
sys.modules["font_cuts"] = font_cuts
specification.loader.exec_module(font_cuts)


def missing(characters: set[str], names: str) -> str:
    """Return the characters that none of the font files has."""
    files = [QRawFont(str(path), 13.0) for path in sorted(FOLDER.glob(names))]
    assert files
    return "".join(sorted(c for c in characters if not any(font.supportsCharacter(ord(c)) for font in files)))


def test_chinese_fonts_have_the_characters_of_the_catalogues(qtbot: QtBot) -> None:
    lacking = missing({chr(code) for code in font_cuts.used_characters()}, "DecodescopeSansSC*")
    assert lacking == "", "Run `python packaging/fonts.py`, which makes the fonts again."


def test_chinese_fonts_have_the_common_characters_of_model_texts(qtbot: QtBot) -> None:
    assert len(font_cuts.common_characters()) == 3755
    assert missing({chr(code) for code in font_cuts.common_characters()}, "DecodescopeSansSC*") == ""


def test_interface_fonts_have_the_signs_of_the_catalogues(qtbot: QtBot) -> None:
    """Letters of further scripts come from the system."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "resources" / "translations").rglob("*.po"))
    signs = {c for c in text if c > "~" and (unicodedata.category(c)[0] in "PSN" or "LATIN" in unicodedata.name(c, ""))}
    assert missing(signs, "*") == "", "Add the signs to SIGNS in packaging/fonts.py and run it."


def test_font_files_are_those_of_the_script_and_within_its_limit() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {cut.file for cut in font_cuts.cuts()}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= font_cuts.MAX_BYTES


def test_every_font_file_has_a_licence_in_the_overview() -> None:
    assert {name for font in bundled_fonts() for name in font.files} == {path.name for path in FOLDER.iterdir()}
    text = licences.third_party_text({})
    assert re.search(r"Inter .*: OFL-1.1\n    in DecodescopeSans-Bold.ttf", text)
    assert "SIL OPEN FONT LICENSE Version 1.1" in text


@pytest.fixture
def emoji(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fonts.TestFont:
    """A machine with one font, in the usual folder."""
    usual = tmp_path / "usual" / "truetype"
    usual.mkdir(parents=True)
    (usual / "NotoColorEmoji.ttf").touch()
    monkeypatch.setattr(fonts, "PLACES", (str(usual.parent),))
    monkeypatch.delenv("FONTCONFIG_FILE", raising=False)
    return fonts.SCRIPTS["emoji"]


def test_fonts_are_found_in_the_usual_folders(emoji: fonts.TestFont) -> None:
    assert [file.name for file in emoji.found()] == ["NotoColorEmoji.ttf"]


def test_fonts_that_fontconfig_hides_are_not_found(
    emoji: fonts.TestFont, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration that names one folder is how a machine with fewer fonts is simulated."""
    (tmp_path / "other").mkdir()
    (tmp_path / "fonts.conf").write_text(CONFIG.format(folder=tmp_path / "other"))
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    assert emoji.found() == []
    (tmp_path / "fonts.conf").write_text(CONFIG.format(folder=tmp_path / "usual"))
    assert emoji.found() != []


@pytest.mark.parametrize("text", ["", "<fontconfig>", "<fontconfig><include>more.conf</include></fontconfig>"])
def test_configuration_without_folders_hides_nothing(
    emoji: fonts.TestFont, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "fonts.conf").write_text(text)
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    assert emoji.found() != []
