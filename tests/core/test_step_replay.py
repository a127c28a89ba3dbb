"""Step replay: bit-identical without changes, and equal to an actual run with them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from decodescope import core
from decodescope.core import words
from decodescope.core.decoding.score_cache import ScoreCache
from decodescope.core.errors import ParameterError, PromptError, StrategyError
from decodescope.core.events import TokenChosen
from tests.core import tiny
from tests.core.spec_models import chosen_tokens, similar_model

PROMPT = [5, 6, 7, 5, 6]
SAMPLING = {"temperature": 0.9, "top_p": 0.9, "top_k": 20}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "greedy": ("greedy", {"repetition_penalty": 1.2}, {}),
    "sampling": ("sampling", SAMPLING, {"dry_multiplier": 0.8, "top_n_sigma": 2.0}),
    "another order": ("sampling", SAMPLING, {"stages": ["top_p", "temperature"]}),
    "dice and memory": ("sampling", {}, {"xtc_probability": 0.5, "xtc_threshold": 0.02, "mirostat_tau": 3.0}),
    "one die for all": ("sampling", {"num_return_sequences": 3}, {"xtc_probability": 0.5, "xtc_threshold": 0.02}),
    "a seed for each": ("sampling", {"num_return_sequences": 3}, {"seed_each": True, "xtc_probability": 0.5}),
    "guidance": ("sampling", {"guidance_scale": 1.5}, {}),
    "dola": ("dola", {"do_sample": True, "temperature": 1.3}, {}),
    "contrastive": ("contrastive", {"repetition_penalty": 1.1}, {}),
    "lookup": ("prompt_lookup", {"repetition_penalty": 1.2}, {"schedule": "constant"}),
    "assisted": ("assisted", {**SAMPLING, "do_sample": True}, {"schedule": "constant"}),
    "tree": ("token_tree", {}, {"widths": "2 1"}),
}
UNDECIDED = ("assisted",)


def asked(name: str) -> core.Request:
    strategy, config, options = CASES[name]
    drafters = (similar_model("llama"),) if strategy in ("assisted", "token_tree") else ()
    settings = {"max_new_tokens": 9, "min_new_tokens": 9, **config}
    return core.Request(PROMPT, settings, strategy, options, drafters=drafters, seed=3)


@cache
def run_case(name: str, budget: int = 2**20) -> tuple[core.Result, ScoreCache]:
    stored = ScoreCache(budget)
    return core.run(tiny.shared("llama"), asked(name), scores=stored), stored


def recorded(event: TokenChosen) -> TokenChosen:
    """Return the event without the fields that a replay cannot restore."""
    return replace(event, seconds=0.0, origin="target", sequence=0)


@pytest.mark.parametrize("name", CASES)
def test_replay_without_changes_is_bit_identical(name: str) -> None:
    result, stored = run_case(name)
    for event in chosen_tokens(result)[::2]:
        found = core.replay_step(
            tiny.shared("llama"), asked(name), result.sequences[event.sequence], event.step,
            sequence=event.sequence, scores=stored,
        )  # fmt: skip
        assert found.is_kept
        assert found.is_decided is (name not in UNDECIDED)
        assert found.before == found.after == recorded(event)


@pytest.mark.parametrize("name", ["greedy", "dice and memory", "dola", "lookup"])
def test_missing_scores_are_recomputed(name: str) -> None:
    result, _ = run_case(name)
    event = chosen_tokens(result)[6]
    found = core.replay_step(tiny.shared("llama"), asked(name), result.sequences[0], 6)
    assert not found.is_kept
    assert found.before.id == found.after.id == event.id
    assert [stage.survivors for stage in found.after.funnel] == [stage.survivors for stage in event.funnel]
    assert found.after.probability == pytest.approx(event.probability, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("sampling", {"temperature": 2.5, "top_p": 0.5}),
        ("sampling", {"stages": ["top_p", "temperature"], "top_p": 0.4}),
        ("greedy", {"suppress_tokens": [5]}),
        ("contrastive", {"penalty_alpha": 0.0}),
        ("dice and memory", {"mirostat_tau": 1.0}),
        ("dola", {"dola_layers": [1]}),
    ],
)
def test_first_step_equals_that_of_a_run_with_the_changes(name: str, changes: dict[str, Any]) -> None:
    """At the first step no text differs, so the events are equal, random numbers included."""
    model, request, (result, stored) = tiny.shared("llama"), asked(name), run_case(name)
    found = core.replay_step(model, request, result.sequences[0], 0, changes, scores=stored)
    options = {**request.options, **{key: value for key, value in changes.items() if key in ("stages", "mirostat_tau")}}
    config = {**request.config, **{key: value for key, value in changes.items() if key not in options}}  # type: ignore[dict-item]
    so = chosen_tokens(core.run(model, replace(request, config=config, options=options)))[0]
    assert found.before == recorded(chosen_tokens(result)[0])
    assert found.is_decided
    assert found.after == recorded(so)
    assert found.after.funnel != found.before.funnel or name == "contrastive"
    assert found.is_kept is (name != "dola"), "of other layers nothing was kept"


def test_later_step_equals_that_of_a_branch_with_the_changes() -> None:
    """The funnel of a run that continues the same text with those settings."""
    model, request, (result, stored) = tiny.shared("llama"), asked("sampling"), run_case("sampling")
    ids = result.sequences[0]
    found = core.replay_step(model, request, ids, 5, {"temperature": 3.0, "top_k": 0}, scores=stored)
    config = {**SAMPLING, "temperature": 3.0, "top_k": 0, "max_new_tokens": 1, "min_new_tokens": 9}
    (branch,) = chosen_tokens(core.run(model, replace(request, config=config, beginning=ids[:5])))
    assert [stage.survivors for stage in found.after.funnel] == [stage.survivors for stage in branch.funnel]
    assert dict(found.after.funnel[-1].top) == pytest.approx(dict(branch.funnel[-1].top), abs=1e-5)


@pytest.mark.parametrize("kept", [True, False])
def test_changed_dola_layers_equal_those_of_a_run(kept: bool) -> None:
    model, request, (result, scores) = tiny.shared("llama"), asked("dola"), run_case("dola")
    ids, changes = result.sequences[0], {"dola_layers": [1]}
    found = core.replay_step(model, request, ids, 5, changes, scores=scores if kept else None)
    so = replace(request, config={**request.config, **changes, "max_new_tokens": 1}, beginning=ids[:5])
    (branch,) = chosen_tokens(core.run(model, so))
    assert found.before.layer_choice is not None
    assert branch.layer_choice is not None
    assert found.before.layer_choice.layer != found.after.layer_choice.layer == branch.layer_choice.layer == 1
    assert dict(found.after.funnel[-1].top) == pytest.approx(dict(branch.funnel[-1].top), abs=1e-5)


def test_untried_candidates_leave_the_choice_undecided() -> None:
    result, stored = run_case("contrastive")
    found = core.replay_step(
        tiny.shared("llama"), asked("contrastive"), result.sequences[0], 3, {"top_k": 30}, scores=stored
    )
    assert not found.is_decided
    assert found.after.id == result.sequences[0][3]


def test_scores_beyond_the_budget_are_evicted() -> None:
    result, stored = run_case("greedy", budget=4 * tiny.VOCABULARY * 4)
    ids = result.sequences[0]
    held = [step for step in range(9) if stored.get(PROMPT, ids, step, 0) is not None]
    assert held == [5, 6, 7, 8]
    assert stored.get(PROMPT, [*ids[:6], ids[6] + 1, *ids[7:]], 8, 0) is None
    assert stored.get(PROMPT[1:], ids, 8, 0) is None
    assert stored.get(PROMPT, ids, 8, 1) is None


@pytest.mark.parametrize(
    ("strategy", "options", "changes", "error", "said"),
    [
        ("beam_search", {}, {}, StrategyError, "several texts at each step"),
        ("greedy", {}, {"temperature": 2.0}, ParameterError, "no setting “temperature”"),
        ("greedy", {}, {"suppress_tokens": list(range(tiny.VOCABULARY))}, ParameterError, "all are banned"),
        ("greedy", {}, {"stages": ["top_q"]}, ParameterError, "not a stage"),
        ("prompt_lookup", {"xtc_probability": 0.5}, {}, StrategyError, "the one drawn here is unknown"),
    ],
)
def test_unsupported_replays_raise_an_error(
    strategy: str, options: dict[str, Any], changes: dict[str, Any], error: type[Exception], said: str
) -> None:
    request = core.Request(PROMPT, {"do_sample": strategy == "prompt_lookup"}, strategy, options)
    with pytest.raises(error, match=said):
        core.replay_step(tiny.shared("llama"), request, [5, 6], 1, changes)


def test_explanation_matches_the_replayed_step() -> None:
    """Many steps under many settings: the chosen token, the number of tokens left, and tokens removed or added."""
    model, request, (result, stored) = tiny.shared("llama"), asked("sampling"), run_case("sampling")
    ids, seen = result.sequences[0], set[str]()
    for step in range(len(ids)):
        for changes in ({}, {"temperature": 0.4}, {"top_k": 2}, {"top_p": 1.0, "top_k": 0}, {"suppress_tokens": ids}):
            found = core.replay_step(model, request, ids, step, changes, scores=stored)
            for one, other in ((found.before, found.after), (found.after, found.before)):
                seen |= _checked_claims(core.explain_what_if(one, other, found.is_decided), one, other)
    assert seen == {"nothing", "other", "still", "left", "cut", "kept"}


def test_explanation_states_what_is_unknown() -> None:
    result, stored = run_case("assisted")
    model, ids = tiny.shared("llama"), result.sequences[0]
    found = core.replay_step(model, asked("assisted"), ids, 4, {"temperature": 2.0}, scores=stored)
    reported = core.explain_what_if(found.before, found.after, found.is_decided)
    assert "it is unknown whether it would be chosen" in reported
    assert words.percent(found.after.probability, "under", "over") in reported
    gone = core.replay_step(model, asked("assisted"), ids, 4, {"suppress_tokens": [ids[4]]}, scores=stored)
    assert "would be cut: another token would be chosen" in core.explain_what_if(gone.before, gone.after, False)


@pytest.mark.parametrize(
    ("named", "wrong"),
    [("ids", "abc"), ("ids", None), ("ids", [[5]]), ("ids", [5, 10**6]), ("ids", [True]), ("step", "0"), ("step", 0.5),
     ("step", -1), ("step", 2), ("step", True), ("sequence", 1), ("sequence", "x"), ("changes", ["top_k"])],
)  # fmt: skip
def test_invalid_replay_argument_is_named(named: str, wrong: Any) -> None:
    asks = {"ids": [5], "step": 0, "changes": {"top_k": 3}, **({named: wrong})}
    more = {"sequence": asks.pop("sequence")} if "sequence" in asks else {}
    with pytest.raises((ParameterError, PromptError)) as caught:
        core.replay_step(tiny.shared("llama"), asked("sampling"), *asks.values(), **more)
    assert caught.value.remedy
    assert named == "ids" or caught.value.parameter == named


def test_equally_likely_choice_is_described_as_before() -> None:
    """Shares that read alike are not set against each other."""
    (result, stored) = run_case("sampling")
    found = core.replay_step(
        tiny.shared("llama"), asked("sampling"), result.sequences[0], 4, {"temperature": 0.4}, scores=stored
    )
    first, second = found.before.alternatives[:2]
    before = replace(found.before, id=first.id, piece=first.text, alternatives=(first, second))
    after = replace(before, id=second.id, piece=second.text, probability=second.probability)
    reported = str(core.explain_what_if(before, after, True))
    assert reported == f"{words.quote(second.text)} would be chosen instead of {words.quote(first.text)}, with " + (
        f"{_format_share(second.probability)} as before."
    )


def _checked_claims(said: str, before: TokenChosen, after: TokenChosen) -> set[str]:
    """The claims of a sentence, each of which is true of the two sides."""
    if said == "Nothing would be different at this step.":
        assert before == after
        return {"nothing"}
    assert before != after
    claims, left = set(), said
    for name, form in _CLAIMS.items():
        if (match := re.search(form, left)) is not None:
            _CHECKS[name](match, before, after)
            claims.add(name)
            left = left.replace(match[0], "")
    assert not left.strip(), left
    return claims


_SHARE = r"((?:under |over )?[\d.]+ %)"
_CLAIMS = {
    "other": rf"“(.+?)” would be chosen instead of “(.+?)”, with {_SHARE} (?:instead of {_SHARE}|as before)\.",
    "still": rf"“(.+?)” would still be chosen, with {_SHARE} (?:instead of {_SHARE}|as before)\.",
    "left": r"([\d,]+) tokens would be left instead of ([\d,]+)\.",
    "cut": rf"“((?:(?!“).)+?)”, which had {_SHARE}, would be cut\.",
    "kept": rf"“(.+?)” would be kept, with {_SHARE}\.",
}


def _format_share(share: float) -> str:
    return words.percent(share, "under", "over")


def _share_of(name: str, event: TokenChosen) -> float:
    return next(item.probability for item in event.alternatives if item.text == name)


def _check_other(match: re.Match[str], before: TokenChosen, after: TokenChosen) -> None:
    assert (match[1], match[2]) == (after.piece, before.piece)
    assert after.id != before.id
    was = next((item.probability for item in before.alternatives if item.id == after.id), 0.0)
    assert (match[3], match[4] or match[3]) == (_format_share(after.probability), _format_share(was))


def _check_still(match: re.Match[str], before: TokenChosen, after: TokenChosen) -> None:
    assert match[1] == after.piece
    assert after.id == before.id
    assert match[2] == _format_share(after.probability)
    assert (match[3] or match[2]) == _format_share(before.probability)


def _check_left(match: re.Match[str], before: TokenChosen, after: TokenChosen) -> None:
    assert (int(match[1]), int(match[2])) == (after.funnel[-1].survivors, before.funnel[-1].survivors)


def _check_cut(match: re.Match[str], before: TokenChosen, after: TokenChosen) -> None:
    assert _share_of(match[1], after) == 0.0
    assert match[2] == _format_share(_share_of(match[1], before))


def _check_kept(match: re.Match[str], before: TokenChosen, after: TokenChosen) -> None:
    assert _share_of(match[1], before) == 0.0
    assert match[2] == _format_share(_share_of(match[1], after))


_CHECKS = {
    "other": _check_other, "still": _check_still, "left": _check_left, "cut": _check_cut, "kept": _check_kept,
}  # fmt: skip


def test_what_if_and_replay_step_are_the_same_function() -> None:
    assert core.what_if is core.replay_step
