"""Environment variables of Qt: invalid ones are removed before Qt reads them, and reported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from decodescope.app.start.cli.values import parse_size
from decodescope.app.start.qt_variables import remove_invalid_variables


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("QT_SCALE_FACTOR", value)
            for value in ("nan", "inf", "-inf", "1000", "0", "-1", "1e309", "two", "1_0", "2,5")
        ),
        *(
            ("QT_SCREEN_SCALE_FACTORS", value)
            for value in ("nan", "1;nan", "HDMI-1=1000", "1;2;1e9", "x=y=z", "eDP-1=")
        ),
        *(("QT_FONT_DPI", value) for value in ("99999", "0", "-96", "nan", "96.5", "x", "9" * 5000)),
        ("QT_ENABLE_HIGHDPI_SCALING", "99999999999999999999"),
        ("QT_USE_PHYSICAL_DPI", "x"),
        ("QT_SCALE_FACTOR_ROUNDING_POLICY", "Sideways"),
        ("QT_DPI_ADJUSTMENT_POLICY", "Sideways"),
    ],
)
def test_variable_out_of_range_is_removed_and_reported(name: str, value: str) -> None:
    variables = {name: value, "HOME": "/x"}
    (notice,) = remove_invalid_variables(variables)
    assert variables == {"HOME": "/x"}
    assert name in notice
    assert len(notice) < 250


@pytest.mark.parametrize(
    ("name", "value"),
    [("QT_SCALE_FACTOR", "1.5"), ("QT_SCALE_FACTOR", "8"), ("QT_SCALE_FACTOR", ""), ("QT_SCREEN_SCALE_FACTORS", "1;2"),
     ("QT_SCREEN_SCALE_FACTORS", "HDMI-1=1.5;eDP-1=2;"), ("QT_FONT_DPI", "144"), ("QT_USE_PHYSICAL_DPI", "1"),
     ("QT_SCALE_FACTOR_ROUNDING_POLICY", "PassThrough"), ("QT_QPA_PLATFORM", "offscreen")],
)  # fmt: skip
def test_variable_in_range_is_kept(name: str, value: str) -> None:
    variables = {name: value}
    assert remove_invalid_variables(variables) == []
    assert variables == {name: value}


def test_screen_factors_with_too_large_product_are_removed() -> None:
    variables = {"QT_SCALE_FACTOR": "6", "QT_SCREEN_SCALE_FACTORS": "1;6"}
    (notice,) = remove_invalid_variables(variables)
    assert variables == {"QT_SCALE_FACTOR": "6"}
    assert "QT_SCREEN_SCALE_FACTORS" in notice


@pytest.mark.parametrize("text", ["0x0", "0x900", "1440x0"])
def test_window_size_without_pixels_is_rejected(text: str) -> None:
    with pytest.raises(Exception, match="too small"):
        parse_size(text)


@pytest.mark.slow
def test_program_starts_with_invalid_qt_variables(tmp_path: Path) -> None:
    bad = {"QT_SCALE_FACTOR": "nan", "QT_FONT_DPI": "99999", "QT_SCREEN_SCALE_FACTORS": "1000"}
    variables = {**os.environ, **bad, "QT_QPA_PLATFORM": "offscreen", "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "app", "--screenshot", str(tmp_path / "x.png"), "--config-dir", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "x.png").exists()
    assert all(name in ended.stderr for name in bad)
