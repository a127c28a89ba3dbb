"""Tours: every number is the run's own, and an unreadable tour is reported and affects no others."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decodescope.app.features.tours.state import (
    Tour,
    TourError,
    TourSetting,
    find_tour,
    load_tours,
    names_and_titles,
    narrate,
)
from decodescope.app.features.tours.state.measures import MEASURES
from decodescope.app.features.tours.state.measures.measure import TourNumber
from decodescope.app.features.tours.state.tour_file import placeholders, read_tour
from decodescope.app.session.engine import CoreEngine
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.core import words
from decodescope.core.strategies import registry
from tests.app.tour_figures import CHECKS, holds, shown
from tests.long import every

TOURS, PROBLEMS = load_tours()
LATER_SEED = 1000


class Maker:
    """Runs of tours as the window makes them; an engine holds one model at a time."""

    def __init__(self) -> None:
        self._engine = CoreEngine()
        self._made: dict[str, Run] = {}

    def run(self, setting: TourSetting) -> Run:
        """The run of a setting, each once."""
        key = repr(setting)
        if key not in self._made:
            strategy = registry[setting.strategy]
            defaults = {p.name: p.default for p in strategy.parameters if p.default is not None}
            request = RunRequest(
                setting.prompt, defaults | dict(setting.parameters), strategy.name, load=LoadRequest(setting.model),
                draft_names=setting.drafts, seed=setting.seed, cache=setting.cache,
                cache_options=dict(setting.cache_parameters), steady=True,
            )  # fmt: skip
            self._engine.load(request.load)
            run = self._made[key] = Run(request)
            run.apply(self._engine.stream(request, threading.Event()))
        return self._made[key]


@pytest.fixture(scope="module")
def maker() -> Maker:
    return Maker()


def measured(tour: Tour, place: int, runs: Mapping[str, Run]) -> dict[str, Any]:
    """The figures of a step, each taken once more from the bare events."""
    found: dict[str, Any] = {}
    for name, wanted in tour.steps[place].figures.items():
        inputs: list[Any] = [runs[one].events if one in runs else found.get(one, one) for one in wanted.of]
        found[name] = None if None in inputs else CHECKS[wanted.measure](*inputs)
    return found


def same(one: Any, other: Any) -> bool:
    """Compare with a tolerance, because sums may be computed in another order."""
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-9)
    return bool(one == other)


def check_tour(tour: Tour, maker: Maker) -> list[bool]:
    """Check every sentence of a tour against its runs; return which effects occurred."""
    runs: dict[str, Run] = {}
    appeared = []
    for place, step in enumerate(tour.steps):
        if step.run:
            runs.setdefault(step.run, maker.run(tour.runs[step.run]))
        reported, values = narrate(step, runs), measured(tour, place, runs)
        for name, value in values.items():
            figure = reported.numbers[name]
            assert same(figure.value, value), (tour.name, place, name, value)
        true = all(value is not None for value in values.values()) and all(holds(c, values) for c in step.when)
        assert reported.effect_appears == true, (tour.name, place)
        template = step.text if true else step.otherwise
        filled = {
            name: shown(reported.numbers[name].kind, value) for name, value in values.items() if value is not None
        }
        assert reported.text == template.format(**filled)
        appeared.append(true)
    return appeared


@pytest.mark.parametrize("tour", every(3, TOURS), ids=lambda tour: tour.name)
def test_tour_sentences_match_their_runs(tour: Tour, maker: Maker) -> None:
    """With the bundled models every effect occurs."""
    assert all(check_tour(tour, maker))


SHOWN_AT_A_TOKEN = {"chance_at", "final_chance_at", "first_chance_at", "first_final_at", "second_chance_at"}


@pytest.mark.parametrize("tour", every(3, TOURS), ids=lambda tour: tour.name)
def test_numbers_in_tour_sentences_match_inspector(tour: Tour, maker: Maker) -> None:
    """Numbers about the selected token equal those of the card and the bars, digit by digit."""
    runs: dict[str, Run] = {}
    for place, step in enumerate(tour.steps):
        if step.run:
            runs.setdefault(step.run, maker.run(tour.runs[step.run]))
        reported = narrate(step, runs)
        at = reported.index_of(step.token)
        if at is None:
            continue
        token = runs[tour.run_of(place)].tokens[at]
        shown_there = {words.percent(share) for share in (token.raw_probability, token.probability)}
        shown_there |= {words.percent(one.raw_probability) for one in token.alternatives}
        shown_there |= {words.percent(one.probability) for one in token.alternatives}
        for name, wanted in step.figures.items():
            if wanted.measure in SHOWN_AT_A_TOKEN:
                assert reported.numbers[name].text in shown_there, (tour.name, place, name)


def test_compared_passes_have_same_prompt() -> None:
    for tour in TOURS:
        counted = {
            str(wanted.of[0]) for step in tour.steps for wanted in step.figures.values() if wanted.measure == "passes"
        }
        assert len({tour.runs[name].prompt for name in counted}) <= 1, tour.name


def test_passes_equal_rounds_plus_others(maker: Maker) -> None:
    for name, of in (("draft", "drafted"), ("tree", "tree")):
        run = maker.run(find_tour(name).runs[of])
        step = next(step for step in find_tour(name).steps if "passes" in step.figures)
        reported = narrate(step, {of: run}).numbers
        assert reported["rounds"].value == len(run.rounds.rounds)
        assert reported["passes"].value == reported["rounds"].value + reported["others"].value  # type: ignore[operator]


def other_seed(setting: TourSetting) -> TourSetting:
    return replace(setting, seed=setting.seed + LATER_SEED)


def other_prompt(setting: TourSetting) -> TourSetting:
    """A prompt for which the tours were not tuned."""
    return replace(setting, prompt="The king had three", seed=setting.seed + 1)


def shorter(setting: TourSetting) -> TourSetting:
    """A run too short for most effects."""
    return replace(setting, parameters={**setting.parameters, "max_new_tokens": 6})


def other_model(setting: TourSetting) -> TourSetting:
    """A weaker model that disagrees with its draft model more often."""
    return replace(setting, model="storyteller-draft-b")


def window_model(setting: TourSetting) -> TourSetting:
    """A sliding-window model; eviction and quantized caches do not support it."""
    return replace(setting, model="storyteller-window") if setting.cache == "dynamic" else setting


MORE = [pytest.param(one, marks=pytest.mark.fuzz) for one in (other_seed, other_prompt, window_model)]


@pytest.mark.parametrize("change", [shorter, other_model, *MORE])
def test_tour_sentences_match_changed_runs(change: Callable[[TourSetting], TourSetting], maker: Maker) -> None:
    for tour in TOURS:
        check_tour(replace(tour, runs={name: change(setting) for name, setting in tour.runs.items()}), maker)


def test_a_short_text_shows_no_loop(maker: Maker) -> None:
    tour = find_tour("likeliest")
    runs = {name: maker.run(shorter(setting)) for name, setting in tour.runs.items()}
    reported = [narrate(step, runs) for step in tour.steps]
    assert [one.text for one in reported if "end in a loop" in one.text] == [
        "This time the text does not end in a loop."
    ]


def test_all_shipped_tours_are_valid() -> None:
    assert not PROBLEMS
    assert names_and_titles() == [(tour.name, tour.title) for tour in TOURS]
    assert len({tour.name for tour in TOURS}) == len(TOURS)
    for tour in TOURS:
        assert tour.title
        assert tour.seconds <= 90
        assert all(step.notes for step in tour.steps)


GOOD = """
name = "n"
title = "T"
about = "A."
[runs.one]
model = "storyteller"
strategy = "greedy"
prompt = "Once"
[[steps]]
run = "one"
text = "{count} tokens."
otherwise = "None."
figures = { count = ["tokens", "one"] }
when = [["count", ">", 1]]
"""
BAD = {
    "no toml": ("name = ", "Invalid value"),
    "no title": (GOOD.replace('title = "T"\n', ""), "the key “title” is missing"),
    "no steps": (GOOD.partition("[[steps]]")[0], "[[steps]] is missing"),
    "mistyped key": (GOOD.replace("otherwise", "otherwis"), "step 1: unknown key “otherwis”. Did you mean"),
    "no such strategy": (GOOD.replace('"greedy"', '"gredy"'), "Unknown strategy “gredy”. Did you mean “greedy”?"),
    "no such setting": (GOOD.replace('prompt = "Once"', 'prompt = "O"\nparameters = { top_q = 1 }'), "top_q"),
    "setting out of range": (
        GOOD.replace('prompt = "Once"', 'prompt = "O"\nparameters = { max_new_tokens = 0 }'),
        "max_new_tokens must be at least 1",
    ),
    "no such measure": (GOOD.replace('["tokens"', '["token"'), "Unknown measure “token”"),
    "a run that is not there": (GOOD.replace('"tokens", "one"', '"tokens", "two"'), "requires 1 runs"),
    "no such figure": (GOOD.replace('"{count}', '"{cont}'), "Unknown figure “cont”"),
    "no condition": (GOOD.replace('">"', '"~"'), "is not a condition"),
    "nothing to fall back on": (GOOD.replace('otherwise = "None."\n', ""), "requires “otherwise”"),
    "a figure that may be missing": (
        GOOD.replace('["tokens", "one"]', '["loop_start", "one"]').replace('"None."', '"{count}."'),
        "which may be missing",
    ),
    "no list": (
        GOOD.replace('prompt = "Once"', 'prompt = "O"\ndrafts = 5'),
        "runs.one: wrong type for “drafts”: 5",
    ),
    "no number": (
        GOOD.replace('prompt = "Once"', 'prompt = "O"\nseed = "x"'),
        "wrong type for “seed”: x",
    ),
    "no table": (
        GOOD.replace('prompt = "Once"', 'prompt = "O"\nparameters = 3'),
        "runs.one: wrong type for “parameters”: 3",
    ),
    "no time": (GOOD.replace("[[steps]]", "[[steps]]\nseconds = true"), "step 1: wrong type for “seconds”: True"),
    "no conditions": (GOOD.replace('[["count", ">", 1]]', "3"), "wrong type for “when”: 3"),
    "no wanted figure": (GOOD.replace('["tokens", "one"]', "3"), "Unknown measure “3”"),
    "half a brace": (GOOD.replace('"{count} tokens."', '"{count tokens."'), "unmatched brace in “{count tokens.”"),
    "too long": (GOOD.replace("[[steps]]", "[[steps]]\nseconds = 91"), "the maximum is 90.0"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_tour_is_reported_and_others_load(tmp_path: Path, name: str) -> None:
    reported, expected = BAD[name]
    (tmp_path / "a.toml").write_text(reported, encoding="utf-8")
    (tmp_path / "b.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(TourError, match=r"Cannot play the tour a\.toml") as raised:
        read_tour(tmp_path / "a.toml")
    assert expected in raised.value.cause
    tours, problems = load_tours(tmp_path)
    assert [tour.name for tour in tours] == ["n"]
    assert [problem.cause for problem in problems] == [raised.value.cause]


def test_unknown_tour_error_lists_available_tours() -> None:
    with pytest.raises(TourError, match=r"Did you mean “likeliest”.*Available: .*likeliest"):
        find_tour("likliest")


def test_every_measure_in_tours_has_check() -> None:
    used = {wanted.measure for tour in TOURS for step in tour.steps for wanted in step.figures.values()}
    assert used <= set(CHECKS)
    assert all(placeholders(step.text) <= set(step.figures) for tour in TOURS for step in tour.steps)


def test_ratio_of_counts_in_a_sentence_is_exact() -> None:
    assert [TourNumber(1.0, kind).text for kind in ("ratio", "share")] == ["100 %", "≈ 100 %"]
    ratios = {name for name, one in MEASURES.items() if one.kind == "ratio"}
    assert ratios == {"acceptance", "pruned_share", "repeated_share", "bytes_beside"}
