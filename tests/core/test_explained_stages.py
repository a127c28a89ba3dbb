"""Explanations of one stage: every number is the event's own and every claim holds, at every level of detail."""

from __future__ import annotations

import re

import pytest

from decodescope import core
from decodescope.core.events import (
    Likely,
    Repeat,
    Repeats,
    ScoreSpread,
    Stage,
    StageDetail,
    StepTemperature,
    SurpriseAim,
    TopCut,
)  # fmt: skip
from decodescope.core.explain import settings
from decodescope.core.explain.sentence import SentenceTemplate
from decodescope.core.trace.page.page_data import collect_page_data
from decodescope.resources import depth
from tests.core.recorded_claims import LEVELS_AND_LANGUAGES, explanations_at

LIKELY = (Likely(5, " red", 0.5), Likely(6, " blue", 0.25), Likely(7, " green", 0.125))
DOG = Repeat(9, " dog", 5, 7, 13.13)
CASES: dict[str, tuple[StageDetail, str, tuple[str, ...]]] = {
    "no repeat": (StageDetail(repeats=Repeats()), "_NO_REPEAT", ()),
    "one repeat": (StageDetail(repeats=Repeats((DOG,), 1)), "_ONE_REPEAT", ("7", "5", "13.13")),
    "repeats": (StageDetail(repeats=Repeats((DOG, DOG), 4)), "_REPEATS", ("7", "5", "13.13", "4")),
    "few": (StageDetail(top_cut=TopCut(0.5, 0.25, 0.125, LIKELY[:1], 1)), "_FEW_LIKELY", ()),
    "no cut": (StageDetail(top_cut=TopCut(0.5, 0.75, 0.125, LIKELY, 3)), "_NO_CUT", ("0.75", "0.5", "3")),
    "on the edge": (StageDetail(top_cut=TopCut(0.5, 0.5, 0.125, LIKELY, 3)), "_NO_CUT", ("0.5", "3")),
    "spared": (StageDetail(top_cut=TopCut(0.5, 0.25, 0.125, LIKELY, 3)), "_CUT_PREVENTED", ("0.25", "0.5", "3")),
    "cut": (StageDetail(top_cut=TopCut(0.5, 0.25, 0.125, LIKELY, 3, 2)), "_TOP_CUT", ("0.25", "0.5", "3", "2")),
    "spread": (StageDetail(spread=ScoreSpread(8.5, 3.75, 4.75, -9.0, (3, 1))), "_SPREAD", ("8.5", "4.75", "3.75")),
    "too much": (StageDetail(aim=SurpriseAim(2.0, 3.5, 2.25)), "_TOO_MUCH", ("2.25", "2", "3.5")),
    "as asked": (StageDetail(aim=SurpriseAim(2.0, 3.5, 2.0)), "_TOO_LITTLE", ("2", "3.5")),
    "too little": (StageDetail(aim=SurpriseAim(2.0, 3.5, 0.5)), "_TOO_LITTLE", ("0.5", "2", "3.5")),
    "heat": (StageDetail(heat=StepTemperature(0.75, 0.5, 1.5)), "_TEMPERATURE", ("0.75", "0.5", "1.5")),
}


@pytest.mark.parametrize("case", CASES)
def test_stage_explanation_contains_the_numbers_of_the_event(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    detail, wanted, figures = CASES[case]
    said_by: list[SentenceTemplate] = []
    usual = SentenceTemplate.words
    monkeypatch.setattr(SentenceTemplate, "words", lambda saying, **v: (said_by.append(saying), usual(saying, **v))[1])
    for each, code in LEVELS_AND_LANGUAGES:
        with explanations_at(each, code):
            reported = core.explain_stage(Stage("x", "x", 5, 1.0, 1.0, detail=detail))
        assert said_by.pop() is vars(settings)[wanted]
        assert "{" not in reported
        if each != depth.PLAIN:
            known = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", reported.replace("−log₂", ""))}
            assert {float(figure) for figure in figures} <= known, reported


def test_stage_without_details_has_no_explanation() -> None:
    assert core.explain_stage(Stage("top_k", "top-k 50", 50, 1.0, 1.0)) == ""


def test_html_page_contains_the_stage_explanation() -> None:
    request = core.Request("Once upon", {"max_new_tokens": 2}, "sampling", {"top_n_sigma": 1.0})
    events = list(core.stream(core.load("storyteller"), request))
    chosen = [event for event in events if isinstance(event, core.events.TokenChosen)]
    reported = [token["did"] for token in collect_page_data(events)["texts"][0]["tokens"]]  # type: ignore[index]
    assert ["".join(said) for (said,) in reported] == [core.explain_stage(event.funnel[1]) for event in chosen]


def test_explanation_uses_the_singular_for_one() -> None:
    one = Stage(
        "dry_multiplier",
        "DRY 0.8",
        9,
        1.0,
        1.0,
        detail=StageDetail(repeats=Repeats((Repeat(5, " dog", 1, 1, 0.8),), 1)),
    )
    assert "like this before (1 token), and “dog” followed 1 token ago" in str(core.explain_stage(one))
    cut = Stage(
        "xtc_probability",
        "XTC 0.5",
        9,
        1.0,
        1.0,
        detail=StageDetail(top_cut=TopCut(0.5, 0.25, 0.125, LIKELY[:2], 2, 1)),
    )
    assert "Removed: 1, " in str(core.explain_stage(cut))
