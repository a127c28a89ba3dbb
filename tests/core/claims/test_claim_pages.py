"""The pages about claims state what is stored, and what is stored is what the bundled model shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from decodescope import core
from decodescope.core import claims
from decodescope.core.claims.claim_outcome import compare, verdict_of
from decodescope.core.studies.runner import describe_result

ROOT = Path(__file__).parents[3]
WORDS = {
    "docs/guide/claims.md": {
        "holds": "holds", "does_not_hold": "does not hold", "cannot_be_told": "cannot be told", "": "not tested",
    },
    "docs/guide/zh_CN/claims.md": {
        "holds": "成立", "does_not_hold": "不成立", "cannot_be_told": "无法判断", "": "未检验",
    },
}  # fmt: skip
QUICK = ("drafts-keep-the-text", "votes-answer-better", "top-n-sigma-survives-heat", "groups-differ-more")
"""Claims with different measures that are tested again in the slow suite."""


def rows(page: str) -> dict[str, list[str]]:
    """Return the cells of the page's table by claim."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"^\| `([a-z0-9-]+)` \|(.*)\|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found}


def figures(text: str) -> list[str]:
    return re.findall(r"−?\d+(?:\.\d+)?", text)


@pytest.mark.parametrize("page", WORDS)
def test_page_lists_every_claim(page: str) -> None:
    assert list(rows(page)) == list(claims.all_claims())


@pytest.mark.parametrize("page", WORDS)
def test_page_states_the_stored_verdicts_and_intervals(page: str) -> None:
    for name, cells in rows(page).items():
        outcome, claim = claims.bundled_outcome(name), claims.named_claim(name).claim
        verdict, difference = cells[-2:]
        assert verdict == WORDS[page][outcome.verdict if outcome is not None else ""], name
        expected = "" if outcome is None else claims.interval_text(outcome, claims.measure_of(claim).digits)
        assert figures(difference) == figures(expected), name


def test_stored_outcomes_are_those_of_the_claims_as_they_are() -> None:
    for name, outcome in claims.bundled_outcomes().items():
        claim = claims.named_claim(name).claim
        assert (outcome.model, outcome.margin) == ("storyteller", claim.margin), name
        assert outcome.max_new_tokens == claim.max_new_tokens, "the texts were shortened on a slow computer"
        assert outcome.prompts >= 15, name
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", outcome.date)


def test_at_least_twelve_claims_were_tested_on_the_bundled_model() -> None:
    assert len(claims.bundled_outcomes()) >= 12


def test_stored_sentence_names_date_verdict_and_interval() -> None:
    outcome = claims.bundled_outcome("greedy-repeats")
    assert outcome is not None
    text = claims.bundled_text(outcome, claims.named_claim("greedy-repeats").claim)
    assert outcome.date in text
    assert claims.verdict_title(outcome.verdict) in text


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_bundled_model_shows_what_is_stored(name: str) -> None:
    stored = claims.bundled_outcome(name)
    assert stored is not None
    outcome = core.try_claim(core.load("storyteller"), name, seconds=1_800)
    assert outcome.verdict == stored.verdict
    assert (outcome.difference, outcome.low, outcome.high) == pytest.approx(
        (stored.difference, stored.low, stored.high), abs=0.02
    )


@pytest.mark.slow
def test_same_sampling_with_other_seeds_is_not_said_to_differ() -> None:
    """A planted null: texts of one setting, drawn twice, for four claims' measures."""
    model = core.load("storyteller")
    prompts = [one.text for one in claims.claim_prompts("stories")]
    settings = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0, "max_new_tokens": 48}
    values: dict[str, list[dict[object, dict[object, float]]]] = {}
    for cell in range(4):
        for prompt in prompts:
            run = core.run(model, core.Request(prompt, settings, strategy="sampling", seed=100 + cell))
            found, _ = describe_result(run.events)
            for name in ("repetition", "log_probability", "length"):
                value = claims.MEASURES[name].compute(claims.ClaimRun(found["texts"], found["metrics"]))
                cells = values.setdefault(name, [{} for _ in range(4)])
                if value is not None:
                    cells[cell][prompt] = {0: value}
    verdicts = []
    for name, cells in values.items():
        margins = {"repetition": 0.02, "log_probability": 0.1, "length": 3.0}
        for expects in ("higher", "lower"):
            claim = claims.Claim(
                "null", "", "", "", "", "", claims.ClaimCell(""), claims.ClaimCell(""), name, expects, margins[name]
            )
            for first in range(4):
                for second in range(first):
                    baseline = {prompt: one for prompt, one in cells[first].items() if prompt in cells[second]}
                    verdicts.append(verdict_of(claim, claims.MEASURES[name], 0.5, compare(baseline, cells[second]))[0])
    assert verdicts.count("holds") <= 0.05 * len(verdicts)
