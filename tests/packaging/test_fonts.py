"""Which fonts the tests of the window find."""

import pytest

from tests import fonts

CONFIG = "<?xml version='1.0'?><!DOCTYPE fontconfig SYSTEM 'fonts.dtd'><fontconfig><dir>{folder}</dir></fontconfig>"


@pytest.fixture
def emoji(tmp_path, monkeypatch):
    """A machine with one font, in the usual folder."""
    usual = tmp_path / "usual" / "truetype"
    usual.mkdir(parents=True)
    (usual / "NotoColorEmoji.ttf").touch()
    monkeypatch.setattr(fonts, "PLACES", (str(usual.parent),))
    monkeypatch.delenv("FONTCONFIG_FILE", raising=False)
    return fonts.SCRIPTS["emoji"]


def test_fonts_are_found_in_the_usual_folders(emoji):
    assert [file.name for file in emoji.found()] == ["NotoColorEmoji.ttf"]


def test_fonts_that_fontconfig_hides_are_not_found(emoji, tmp_path, monkeypatch):
    """A configuration that names one folder is how a machine with fewer fonts is simulated."""
    (tmp_path / "other").mkdir()
    (tmp_path / "fonts.conf").write_text(CONFIG.format(folder=tmp_path / "other"))
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    assert emoji.found() == []
    (tmp_path / "fonts.conf").write_text(CONFIG.format(folder=tmp_path / "usual"))
    assert emoji.found() != []


@pytest.mark.parametrize("text", ["", "<fontconfig>", "<fontconfig><include>more.conf</include></fontconfig>"])
def test_configuration_without_folders_hides_nothing(emoji, tmp_path, monkeypatch, text):
    (tmp_path / "fonts.conf").write_text(text)
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    assert emoji.found() != []
