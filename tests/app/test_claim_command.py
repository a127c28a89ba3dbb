"""`decodescope claim`: lists claims, tests them, and appends outcomes to a file."""

from __future__ import annotations

import csv
import json
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from decodescope import core
from decodescope.app.start.cli import claim as command
from decodescope.core import claims
from decodescope.core.claims import ClaimExample, ClaimOutcome, ClaimProgress
from decodescope.core.common.claim import Claim
from decodescope.core.errors import StudyError

OUTCOME = ClaimOutcome(
    "", "storyteller", "does_not_hold", "small", 0.4, 0.41, 0.01, -0.02, 0.03, 12, 24, 21.0, 160, 0.05, 12,
    date="2026-11-28",
)  # fmt: skip


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replace models and trials; return the arguments of each trial."""
    made: list[dict[str, Any]] = []

    def try_claim(model: object, claim: Claim, **options: Any) -> ClaimOutcome:
        made.append({"model": model, "claim": claim.name, **options})
        if claim.name == "heads-save-passes":
            raise StudyError("The model has no heads.", "Choose another model.")
        options["progress"](ClaimProgress(1, 12, 3.0))
        return replace(OUTCOME, claim=claim.name)

    monkeypatch.setattr(claims, "try_claim", try_claim)
    monkeypatch.setattr(core, "load", lambda name: SimpleNamespace(name=name))
    return made


def run(*arguments: str) -> int:
    return command.run(arguments)


def test_without_a_name_all_claims_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    text = capsys.readouterr().out
    assert all(name in text for name in claims.all_claims())
    assert "Holtzman" in text


def test_claim_is_tested_and_its_verdict_is_printed(
    trials: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("One\n\nTwo\n", encoding="utf-8")
    arguments = ("greedy-repeats", "--model", "own", "--draft", "small", "--seconds", "5", "--prompts", str(prompts))
    assert run(*arguments) == 0
    (trial,) = trials
    assert (trial["model"].name, trial["claim"], trial["seconds"]) == ("own", "greedy-repeats", 5.0)
    assert trial["prompts"] == ["One", "Two"]
    assert [one.name for one in trial["drafters"]] == ["small"]
    text = capsys.readouterr().out
    assert "Does not hold here · storyteller" in text
    assert "0.010 (−0.020 to 0.030)" in text


def test_all_claims_are_tested_and_appended_to_a_file(trials: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    assert run("all", "--json", str(path)) == 1, "one claim cannot be tested on the model"
    outcomes = [claims.outcome_from_json(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [one.claim for one in outcomes] == [name for name in claims.all_claims() if name != "heads-save-passes"]


def test_outcomes_are_written_as_table_and_page(trials: list[dict[str, Any]], tmp_path: Path) -> None:
    table, page = tmp_path / "outcomes.csv", tmp_path / "outcomes.html"
    assert run("greedy-repeats", "drafts-save-passes", "--csv", str(table), "--html", str(page)) == 0
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["claim"], row["verdict"]) for row in rows] == [
        ("greedy-repeats", "does_not_hold"), ("drafts-save-passes", "does_not_hold"),
    ]  # fmt: skip
    text = page.read_text(encoding="utf-8")
    assert "2 claims, tested on storyteller" in text
    assert "Greedy decoding repeats itself" in text
    assert "0.010 (−0.020 to 0.030)" in text


def test_page_escapes_texts_of_the_model(tmp_path: Path) -> None:
    example = ClaimExample("<b>Once</b>", 3, "<script>alert(1)</script>", " ran.", 0.0, 0.5)
    outcome = replace(OUTCOME, claim="greedy-repeats", model="<i>m</i>", examples=(example,))
    text = claims.outcome_report([(claims.named_claim("greedy-repeats"), outcome)])
    assert not any(mark in text for mark in ("<b>Once", "<script>alert", "<i>m"))
    assert "&lt;script&gt;alert(1)" in text


def test_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("greedy-repeat") == 2
    assert "greedy-repeats" in capsys.readouterr().err


def test_device_and_binary_file_of_prompts_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("greedy-repeats", "--prompts", "/dev/zero") == 2
    assert "not a regular file" in capsys.readouterr().err
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert run("greedy-repeats", "--prompts", str(tmp_path / "binary")) == 2
    assert "UTF-8" in capsys.readouterr().err


def test_missing_file_of_prompts_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("greedy-repeats", "--prompts", str(tmp_path / "none.txt")) == 2
    assert "none.txt" in capsys.readouterr().err


def test_interrupt_ends_after_the_current_claim(trials: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    def try_claim(model: object, claim: Claim, cancel: threading.Event, **options: Any) -> ClaimOutcome:
        cancel.set()
        trials.append({"claim": claim.name})
        return replace(OUTCOME, claim=claim.name, is_stopped=True)

    monkeypatch.setattr(claims, "try_claim", try_claim)
    assert run("all") == 130
    assert len(trials) == 1
