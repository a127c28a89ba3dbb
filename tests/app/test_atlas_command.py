"""`decodescope atlas`: output, file and exit codes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from decodescope import core
from decodescope.app.__main__ import main


def test_atlas_prints_the_texts_of_the_core_and_writes_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "atlas.csv"
    command = ["atlas", "Once", "--seed", "7", "--tokens", "3", "--to", "1.5", "--param", "top_p=0.9", "--quiet"]
    assert main([*command, "--csv", str(path)]) == 0
    out = capsys.readouterr()
    assert out.err == ""
    request = core.Request("Once", {"top_p": 0.9, "max_new_tokens": 3}, seed=7)
    atlas = core.map_setting(core.load("storyteller"), request, high=1.5)
    assert len(out.out.splitlines()) == len(atlas) + 1
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["high"]) for row in rows] == [one.high for one in atlas]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--param", "temprature=1"], 2, "Did you mean “temperature”?"),
        (["--param", "top_p=high"], 2, "must be a number"),
        (["--setting", "xtc_probability"], 2, "Choose one of"),
        (["--model", "missing-model"], 1, "missing-model"),
        (["--passes", "1"], 1, "--passes"),
    ],
)
def test_faults_have_a_message_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert main(["atlas", "Once", "--tokens", "3", "--quiet", *arguments]) == code
    assert words in capsys.readouterr().err
