"""`decodescope study`: output, files and exit codes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from decodescope import core
from decodescope.app.__main__ import main

STUDY = """
seeds = 2
recordings = false
measures = ["length", "log_probability"]
[prompts]
texts = ["Once", "One day"]
[settings]
max_new_tokens = 3
[grid]
strategy = ["greedy", "sampling"]
"""


def write(folder: Path, text: str = STUDY) -> str:
    (folder / "study.toml").write_text(text, "utf-8")
    return str(folder / "study.toml")


def test_study_prints_a_table_and_writes_csv_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path)
    assert main(["study", path, "--check"]) == 0
    assert "2 cells × 2 prompts × 2 seeds = 8 runs" in capsys.readouterr().out
    assert not (tmp_path / "study-results").exists()
    assert main(["study", path, "--quiet"]) == 0
    out = capsys.readouterr()
    assert out.err == ""
    assert "log_probability" in out.out
    with (tmp_path / "study-results" / "study.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 + 4
    assert "One day" in (tmp_path / "study-results" / "study.html").read_text("utf-8")


def test_second_start_runs_nothing_and_pilot_tells_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write(tmp_path, STUDY.replace("seeds = 2", "seeds = 3")), str(tmp_path / "out")
    assert main(["study", path, "--out", out, "--pilot"]) == 0
    captured = capsys.readouterr()
    assert "2 runs are left" in captured.out
    assert "8/8" in captured.err
    assert main(["study", path, "--out", out, "--quiet"]) == 0
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert main(["study", path, "--out", out, "--quiet"]) == 0
    assert main(["study", path, "--out", out, "--report"]) == 0
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("seeds = 0\n[prompts]\ntexts = ['a']\n", 2, "study.toml, line 1, seeds"),
        ("[prompts]\ntexts = ['a']\n[settings]\ntemprature = 1.0\n", 2, "Did you mean “temperature”?"),
        ("models = ['missing-model']\n[prompts]\ntexts = ['a']\n", 1, "missing-model"),
        ("[prompts]\ntexts = ['" + "Once " * 3000 + "']\n", 1, ""),
    ],
)
def test_faults_have_a_message_and_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, words: str
) -> None:
    assert main(["study", write(tmp_path, text), "--quiet"]) == code
    captured = capsys.readouterr()
    assert words in captured.err
    assert "Traceback" not in captured.err


def test_held_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path)
    with core.Study(path) as study:
        study._open_for_writing()
        assert main(["study", path, "--quiet"]) == 1
    assert "Another process" in capsys.readouterr().err
