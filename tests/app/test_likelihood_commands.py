"""`decodescope probability` and `decodescope infer-settings`: output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decodescope import core
from decodescope.app.__main__ import main

PROMPT = "Once upon a time, there was a"
SAMPLE = ["--set", "do_sample=true", "--set", "max_new_tokens=4", "--set", "top_k=0"]


def test_probability_prints_bounds_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probability", "storyteller", PROMPT, " little", " big", *SAMPLE]) == 0
    assert "These bounds are sure." in capsys.readouterr().out
    assert main(["probability", "storyteller", PROMPT, " little", " big", *SAMPLE, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = core.pattern_probability(
        core.load("storyteller"),
        core.Request(PROMPT, {"do_sample": True, "max_new_tokens": 4, "top_k": 0}), [" little", " big"],
    )  # fmt: skip
    assert (found["lower"], found["upper"]) == pytest.approx((expected.lower, expected.upper), abs=1e-6)
    assert [one["pattern"] for one in found["patterns"]] == [" little", " big"]


def test_probability_fails_when_the_limit_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["probability", "storyteller", PROMPT, "girl", "--place", "contains", "--max-prefixes", "1", *SAMPLE]
    assert main(arguments) == 1
    assert "undecided" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["probability", "storyteller", PROMPT, "(a", "--regex"], 2, "cannot be used"),
        (["probability", "storyteller", "@missing.txt", "a"], 2, "missing.txt"),
        (["probability", "storyteller", "@/dev/zero", "a"], 2, "not a regular file"),
        (["infer-settings", "storyteller", "@/dev/zero"], 2, "not a regular file"),
        (["probability", "storyteller", PROMPT, "a", "--set", "temprature=1"], 2, "temperature"),
        (["infer-settings", "storyteller", "Hello", "--set", "top_k=4"], 2, "top_k"),
        (["infer-settings", "storyteller", ""], 1, "no tokens"),
    ],
)
def test_faults_have_a_message_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert main(arguments) == code
    assert words in capsys.readouterr().err


def test_infer_settings_reads_files_and_prints_sentences_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = core.load("storyteller")
    text = core.run(model, core.Request("Once upon a time", {"max_new_tokens": 30})).texts[0]
    (tmp_path / "story.txt").write_text(text, "utf-8")
    arguments = ["infer-settings", "storyteller", f"@{tmp_path / 'story.txt'}", "--prompt", "Once upon a time"]
    assert main(arguments) == 0
    assert "Every token is the model's first choice." in capsys.readouterr().out
    assert main([*arguments, "--json", "--reading", "text"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["greedy_below"] > 0
    assert all(one["rank"] == 1 for one in found["tokens"])
