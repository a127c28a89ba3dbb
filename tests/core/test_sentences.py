"""Sentences at every level and in both languages, compared with their events: random steps of every strategy.

What is said at one depth is said at all: the same claims, each true of the step by figures that are read here from the
event alone, each figure one of the event's, rounded as it stands. `test_explained_truth` holds the usual English ones
against whole distributions. 200 steps of each strategy with `-m fuzz`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core import (
    explain_candidate,
    explain_draft,
    explain_extra,
    explain_round,
    explain_token,
    strategies,
    words,
)
from decodescope.core.events import (
    Alternative,
    BeamCandidate,
    BeamStep,
    DraftNode,
    DraftRound,
    Event,
    Stage,
    TokenChosen,
)
from tests.core import head_checkpoints, tiny
from tests.core.recorded_claims import (
    LEVELS_AND_LANGUAGES,
    RecordedClaim,
    TemplateRecorder,
    explanations_at,
    is_close_to,
)
from tests.core.spec_models import NO_END
from tests.core.spec_models import similar_model as drafter

SHORT, LONG = 12, 200
DRAWS = ("sampling", "beam_sampling")
OWN: dict[str, dict[str, Any]] = {
    "sampling": {"do_sample": True},
    "beam_sampling": {"do_sample": True, "num_beams": 3},
    "beam_search": {"num_beams": 3},
    "diverse_beam_search": {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.7},
    "constrained_beam_search": {"num_beams": 3, "force_words_ids": [[5, 9]]},
    "contrastive": {"penalty_alpha": 0.5, "top_k": 4},
    "dola": {"dola_layers": "low"},
    "prompt_lookup": {"prompt_lookup_num_tokens": 3},
    "early_exit": {"assistant_early_exit": 1},
}


def chances(seed: random.Random) -> dict[str, Any]:
    """Some settings that an explanation may mention."""
    known: dict[str, Any] = {
        "repetition_penalty": seed.choice([1.1, 1.5, 2.0]),
        "no_repeat_ngram_size": seed.choice([1, 2]),
        "suppress_tokens": seed.sample(range(3, 40), 6),
        "min_new_tokens": 4,
    }
    return {name: known[name] for name in seed.sample(sorted(known), seed.randint(0, 2))}


def drawing(seed: random.Random) -> dict[str, Any]:
    """Some settings of the draw."""
    known: dict[str, Any] = {
        "temperature": round(seed.uniform(0.3, 2.5), 2), "top_k": seed.choice([2, 5, 20]),
        "top_p": round(seed.uniform(0.3, 0.98), 2), "min_p": 0.1, "typical_p": 0.6, "epsilon_cutoff": 0.02,
        "eta_cutoff": 0.01, "top_h": 0.6,
    }  # fmt: skip
    return {"top_k": 0, "do_sample": True} | {name: known[name] for name in seed.sample(sorted(known), 2)}


def request(strategy: str, number: int, length: int) -> core.Request:
    """A run of that strategy with settings made at random."""
    seed = random.Random(f"{strategy} {number}")
    settings: dict[str, Any] = {"max_new_tokens": length, "eos_token_id": NO_END, **OWN.get(strategy, {})}
    if strategy in ("greedy", "sampling", "dola"):
        settings |= chances(seed)
    speculates = strategies.registry[strategy].speculates
    if strategy in DRAWS or (speculates and number % 2) or (strategy == "dola" and number % 2):
        settings |= drawing(seed)
    needs_draft = strategies.registry[strategy].takes_drafters
    prompt = tiny.prompt(seed=number) * (2 if speculates else 1)
    return core.Request(
        prompt,
        GenerationConfig(**settings),
        strategy,
        head_checkpoints.own_options(strategy),
        seed=number,
        drafters=[drafter("llama")] if needs_draft else [],
    )


def steps(strategy: str, wanted: int) -> Iterator[Event]:
    """Events to be explained, of run after run."""
    found = number = 0
    while found < wanted:
        length = max(6, wanted // 8)  # several runs, for their settings differ
        model = model_of(number)
        for event in core.run(model, request(strategy, number, length)).events:
            if isinstance(event, (TokenChosen, BeamStep, DraftRound)):
                found += not isinstance(event, DraftRound)
                yield event
        number += 1


@cache
def model_of(number: int) -> core.LoadedModel:
    """Return a model with a flat or a steep distribution; drafters match the shared one."""
    return tiny.shared("llama") if number % 2 else tiny.make("llama", scale=2.0)


# The meaning of each claim about a token, computed from the event alone.


def _left(event: TokenChosen) -> list[Alternative]:
    return [item for item in event.alternatives if item.probability > 0]


def _called(event: TokenChosen, name: str) -> list[Alternative]:
    return [item for item in event.alternatives if words.quote(item.text) == name]


def _stage(event: TokenChosen, claim: RecordedClaim) -> tuple[Stage, Stage]:
    """The stage a claim names, and the one before it."""
    pairs = list(zip(event.funnel, event.funnel[1:], strict=False))
    return next((before, stage) for before, stage in pairs if _stage_name(stage) == claim.values["stage"])


def _stage_name(stage: Stage) -> str:
    from decodescope.core.explain.settings import stage_name

    return str(stage_name(stage))


def _own(event: TokenChosen) -> bool:
    """Return whether its explanation mentions the model only."""
    return event.method in ("beam", "scored")


def token_figures(event: TokenChosen, claim: RecordedClaim) -> dict[str, Any]:
    """Values of the placeholders of a claim about a token: numbers or texts."""
    module = claim.name.split(".")[0]
    own = _own(event)
    final = event.final_rank or event.rank
    found: dict[str, Any] = {
        "name": words.quote(event.piece),
        "share": event.raw_probability if own else event.probability,
        "log": event.raw_log_probability if own else event.log_probability,
        "raw": event.raw_probability,
        "rank": event.rank,
        "place": final,
        "ordinal": words.ordinal(event.rank if own else final),
        "entropy": event.entropy,
        "old": event.raw_probability,
        "new": event.probability,
        "method": words.quote(event.method),
    }
    if event.layer_choice is not None:
        found |= {"layer": event.layer_choice.layer,
                  "divergence": dict(event.layer_choice.divergences)[event.layer_choice.layer]}  # fmt: skip
    if "other" in claim.values and module != "settings":
        found["other"] = claim.values["other"]
        assert _called(event, claim.values["other"])
    return found | (_of_settings(event, claim) if module == "settings" else {})


def _of_settings(event: TokenChosen, claim: RecordedClaim) -> dict[str, Any]:
    """Values that a claim about a funnel stage may contain."""
    before, stage = _stage(event, claim)
    old, new = dict(before.top).get(event.id, 0.0), dict(stage.top).get(event.id, 0.0)
    gone = [item for item in event.alternatives if item.rank < event.rank and item.probability == 0]
    found: dict[str, Any] = {
        "stage": claim.values["stage"], "old": old, "new": new, "factor": new / old if old else 0.0,
        "mass": stage.mass, "left": event.funnel[-1].survivors, "last": len(gone),
    }  # fmt: skip
    if "kept" in claim.values:
        numbers = sorted(int(part.replace(",", "")) for part in claim.values["kept"].split() if part[0].isdigit())
        assert numbers == [stage.survivors, before.survivors]
        found["kept"] = claim.values["kept"]
    if "count" in claim.values:
        assert claim.values["count"] in (core.words.ordinal(0), *_counted(len(gone)))
        found["count"] = claim.values["count"]
    if "other" in claim.values:
        other = next(item for item in _called(event, claim.values["other"]) if item.rank < event.rank)
        found |= {"other": claim.values["other"], "raw": other.raw_probability, "rank": other.rank,
                  "final": other.probability}  # fmt: skip
    return found


def _counted(number: int) -> tuple[str, ...]:
    from decodescope.resources.language import tr

    english = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return (tr(english[number - 2]),) if number - 2 < len(english) else (f"{number}",)


def _first(event: TokenChosen) -> bool:
    return all(item.probability <= event.probability for item in event.alternatives)


def _rank_holds(event: TokenChosen) -> bool:
    """Return whether the rank after the settings is correct, as far as the alternatives show it."""
    ahead = sum(item.probability > event.probability for item in event.alternatives)
    rank = event.final_rank or event.rank
    return ahead == rank - 1 if rank <= 10 else ahead >= 10


def _gone(event: TokenChosen, claim: RecordedClaim, kind: str) -> bool:
    """The stage has taken out the token that is named, or all that are meant, and is of that kind."""
    before, stage = _stage(event, claim)
    meant = [item for item in event.alternatives if item.rank < event.rank and item.probability == 0]
    if "other" in claim.values:
        meant = [item for item in _called(event, claim.values["other"]) if item.probability == 0]
    return bool(meant) and stage.kind == kind and any(
        item.id in dict(before.top) and item.id not in dict(stage.top) for item in meant
    )  # fmt: skip


def _all_gone(event: TokenChosen, claim: RecordedClaim, kind: str) -> bool:
    likelier = [item for item in event.alternatives if item.rank < event.rank]
    return _gone(event, claim, kind) and len(likelier) == event.rank - 1 and all(i.probability == 0 for i in likelier)


def _first_choice(event: TokenChosen, claim: RecordedClaim) -> bool:
    return any(item.rank == 1 for item in _called(event, claim.values["other"]))


def _overtaken(event: TokenChosen, claim: RecordedClaim) -> bool:
    """Return whether the first choice led before the stage and the chosen token leads after it."""
    before, stage = _stage(event, claim)
    first = next(item for item in event.alternatives if item.rank == 1)
    was, came = dict(before.top), dict(stage.top)
    return (
        _first_choice(event, claim)
        and was.get(first.id, 0) >= was.get(event.id, 0)
        and came.get(event.id, 0) >= came.get(first.id, 0)
        and event.probability > first.probability
    )


def _scores(event: TokenChosen) -> list[Alternative]:
    tried = [item for item in event.alternatives if item.score is not None and item.probability > 0]
    return sorted(tried, key=lambda item: -(item.score or 0))


def _of_balance(event: TokenChosen, claim: RecordedClaim) -> bool:
    """The chosen one has the best score; the explanation states the values of both."""
    ranked = _scores(event)
    best, values = ranked[0], claim.values
    others = [item for item in _called(event, values.get("other", "")) if item.id != event.id]
    reported = {"likeness": best.degeneration_penalty, "score": best.score, "share": best.probability}
    assert all(is_close_to(values[name], value or 0.0) for name, value in reported.items() if name in values)
    for name, figure in (("rival", "probability"), ("likeness2", "degeneration_penalty"), ("score2", "score")):
        assert name not in values or any(is_close_to(values[name], getattr(item, figure)) for item in others)
    return best.id == event.id or (best.score or 0) - max(i.score or 0 for i in ranked if i.id == event.id) < 1e-5


Says = Callable[[TokenChosen, RecordedClaim], bool]
TRUE: dict[str, Says] = {
    "tokens._ONLY": lambda e, c: e.funnel[-1].survivors == 1,
    "tokens._ONLY_DRAWN": lambda e, c: e.funnel[-1].survivors == 1,
    "tokens._CERTAIN_OF": lambda e, c: min(e.raw_probability, e.probability) > 0.95 and _first(e),
    "tokens._MOST_LIKELY": lambda e, c: _first(e),
    "tokens._TIE": lambda e, c: any(i.probability == e.probability for i in _called(e, c.values["other"])),
    "tokens._AHEAD": lambda e, c: _first(e) and is_close_to(c.values["rival"], max(
        i.probability for i in e.alternatives if i.id != e.id)),
    "tokens._HARDLY_ANOTHER": lambda e, c: e.probability > 0.9995,
    "tokens._BEAM_FIRST": lambda e, c: e.rank == 1,
    "tokens._BEAM_BEHIND": lambda e, c: any(
        i.raw_probability >= e.raw_probability and is_close_to(c.values["rival"], i.raw_probability)
        for i in _called(e, c.values["other"])),
    "tokens._BEAM_NTH": lambda e, c: e.rank > 1,
    "tokens._SCORED_FIRST": lambda e, c: e.rank == 1,
    "tokens._SCORED_NTH": lambda e, c: e.rank > 1,
    "tokens._SCORED_BEHIND": lambda e, c: e.rank > 1 and _first_choice(e, c),
    "tokens._OTHER_FIRST": lambda e, c: _first(e),
    "tokens._OTHER_NTH": lambda e, c: _rank_holds(e) and not _first(e),
    "tokens._DRAFTED": lambda e, c: e.origin == "draft",
    "tokens._CORRECTED": lambda e, c: e.origin == "correction",
    "tokens._BONUS": lambda e, c: e.origin == "bonus",
    "choice._BEST_DRAWN": lambda e, c: _first(e) and e.origin in ("target", "bonus"),
    "choice._DRAWN": lambda e, c: _rank_holds(e) and not _first(e) and e.origin in ("target", "bonus"),
    "choice._BEST_ACCEPTED": lambda e, c: _first(e) and e.origin == "draft",
    "choice._ACCEPTED": lambda e, c: _rank_holds(e) and e.origin == "draft",
    "choice._BEST_INSTEAD": lambda e, c: _first(e) and e.origin == "correction",
    "choice._INSTEAD": lambda e, c: _rank_holds(e) and e.origin == "correction",
    "settings._ALL_FORBIDDEN": lambda e, c: _all_gone(e, c, "ban"),
    "settings._ALL_CUT": lambda e, c: _all_gone(e, c, "cut"),
    "settings._FIRST_FORBIDDEN": lambda e, c: _gone(e, c, "ban") and _first_choice(e, c),
    "settings._FIRST_CUT": lambda e, c: _gone(e, c, "cut") and _first_choice(e, c),
    "settings._ONE_FORBIDDEN": lambda e, c: _gone(e, c, "ban"),
    "settings._ONE_CUT": lambda e, c: _gone(e, c, "cut"),
    "settings._AHEAD": _overtaken,
    "settings._RAISED": lambda e, c: dict(_stage(e, c)[1].top)[e.id] > dict(_stage(e, c)[0].top)[e.id],
    "settings._LOWERED": lambda e, c: dict(_stage(e, c)[1].top)[e.id] < dict(_stage(e, c)[0].top)[e.id],
    "settings._KEPT": lambda e, c: _stage(e, c)[1].kind == "cut",
    "settings._AND_FINALLY_LEFT": lambda e, c: 1 < e.funnel[-1].survivors < _stage(e, c)[1].survivors,
    "settings._AND_FINALLY_ONE": lambda e, c: e.funnel[-1].survivors == 1 < _stage(e, c)[1].survivors,
    "choice._ONLY": lambda e, c: len(_scores(e)) == 1,
    "choice._BALANCED": _of_balance,
    "choice._AHEAD": lambda e, c: _of_balance(e, c) and c.values["count"] == f"{len(_scores(e))}",
    "choice._ALONE": lambda e, c: e.funnel[-1].survivors == 1,
    "choice._MOVED": lambda e, c: _first(e),
    "choice._KEPT": lambda e, c: _first(e),
    "choice._MOVED_BEST": lambda e, c: _first(e),
    "choice._KEPT_BEST": lambda e, c: _first(e),
    "choice._MOVED_NTH": lambda e, c: _rank_holds(e),
    "choice._KEPT_NTH": lambda e, c: _rank_holds(e),
}  # fmt: skip
APART = {"against", "count", "rival", "likeness", "likeness2", "score", "score2"}
"""Figures that the claim's own check reads."""


def check_token(event: TokenChosen, recorder: TemplateRecorder) -> set[str]:
    """At every depth and in every language: the same claims, all true, all figures the step's."""
    reported: list[list[str]] = []
    for each, code in LEVELS_AND_LANGUAGES:
        with explanations_at(each, code):
            said, claims = recorder.claims(lambda: explain_token(event))
            for claim in claims:
                assert TRUE[claim.name](event, claim), (said, claim.name)
                figures = token_figures(event, claim)
                for name, value in claim.values.items():
                    if name not in APART or claim.name.startswith("settings"):
                        expected = figures[name]
                        fits = value == expected if isinstance(expected, str) else is_close_to(value, expected)
                        assert fits, (said, name, value, expected)
            reported.append([claim.name for claim in claims])
    assert all(names == reported[0] for names in reported), reported
    return set(reported[0])


def check_candidate(candidate: BeamCandidate, step: BeamStep, beams: int, recorder: TemplateRecorder) -> set[str]:
    group = [item for item in step.candidates if item.group == candidate.group]
    stored = [item.score for item in group if item.fate in ("kept", "early_stopped")]
    figures = {
        "rank": candidate.rank, "beams": beams, "score": candidate.score, "final": candidate.normalized,
        "length": step.step + 1, "penalty": step.length_penalty, "count": len(group), "progress": candidate.progress,
        "worst": min(stored, default=0.0), "gap": min(stored, default=0.0) - candidate.score,
    }  # fmt: skip
    true = {
        "_FOR_OTHERS": candidate.rank > beams, "_AMONG_BEST": candidate.rank <= beams > 1, "_BEST": candidate.rank == 1,
        "_FINISHED": candidate.fate == "finished", "_STOPPED": candidate.fate == "early_stopped",
        "_ONLY_BEST": beams == 1 and candidate.fate == "pruned", "_ONLY_BEST_FEW": candidate.fate == "pruned",
        "_OTHERS_MET_MORE": candidate.score > min(stored, default=0.0), 
        "_BELOW": candidate.score <= min(stored, default=0),
        "_LATE_END": candidate.rank > beams and candidate.ended is not None,
        "_LATE_END_OF_ONE": candidate.rank > beams == 1, "_WORSE_END": candidate.ended is not None,
        "_DIVERSITY": candidate.diversity_penalty > 0, "_RANK": True, "_RANK_WITHOUT_COUNT": True,
    }  # fmt: skip
    reported = []
    for each, code in LEVELS_AND_LANGUAGES:
        with explanations_at(each, code):
            said, claims = recorder.claims(lambda: explain_candidate(candidate, step, beams))
            for claim in claims:
                assert true[claim.name.split(".")[1]], (said, claim.name)
                own = figures | ({"penalty": candidate.diversity_penalty} if "_DIVERSITY" in claim.name else {})
                for name, value in claim.values.items():
                    fits = value == words.ordinal(candidate.rank) if name == "ordinal" else (
                        name == "ending" or is_close_to(value, own[name]))  # fmt: skip
                    assert fits, (said, name, value)
            reported.append([claim.name for claim in claims])
    assert all(names == reported[0] for names in reported)
    return set(reported[0])


def check_round(event: DraftRound, recorder: TemplateRecorder) -> None:
    drafted, stored = len(event.nodes), len(event.accepted)
    figures = {"count": drafted, "kept": stored, "length": event.length,
               "depth": max((node.depth for node in event.nodes), default=0)}  # fmt: skip
    for each, code in LEVELS_AND_LANGUAGES:
        with explanations_at(each, code):
            reported, claims = recorder.claims(lambda: explain_round(event))
            for claim in claims:
                assert all(
                    is_close_to(claim.values[name], figures[name]) for name in figures if name in claim.values
                ), reported
                assert ("_ALL_WERE" not in claim.name) or stored == drafted > 1
                assert ("_NONE_WAS" not in claim.name) or stored == 0
            assert f"draft_rounds._ENDINGS.{event.extra_kind}" in [claim.name for claim in claims]
            assert bool(recorder.claims(lambda: explain_extra(event))[0]) == (event.extra_kind != "none")
            for node in event.nodes:
                check_draft(node, event, recorder)


def check_draft(node: DraftNode, event: DraftRound, recorder: TemplateRecorder) -> None:
    said, claims = recorder.claims(lambda: explain_draft(node, event))
    names = {claim.name.split(".")[1]: claim.values for claim in claims}
    assert ("_UNREACHED" in names) == (node.fate == "unreached")
    opening = names["_UNREACHED" if node.fate == "unreached" else "_COMPARED"]
    assert is_close_to(opening["share"], node.draft_probability), said
    assert "target" not in opening or is_close_to(opening["target"], node.target_probability), said
    assert opening["name"] == words.quote(node.piece)
    fates = {
        "_CERTAINLY_ACCEPTED": "accepted",
        "_RANDOMLY_ACCEPTED": "accepted",
        "_SAME": "accepted",
        "_RANDOMLY_REJECTED": "refused",
        "_OTHER": "refused",
        "_ANOTHER": "refused",
    }
    assert all(fates.get(name, node.fate) == node.fate for name in names), said
    for name in {"_RANDOMLY_ACCEPTED", "_RANDOMLY_REJECTED"} & set(names):
        assert node.ratio is not None
        assert node.die is not None
        assert (node.die < node.ratio) == (name == "_RANDOMLY_ACCEPTED")
        reported = {"chance": node.ratio, "ratio": node.ratio, "die": node.die}
        assert all(is_close_to(value, reported[figure]) for figure, value in names[name].items()), said
        if {"ratio", "die"} <= set(names[name]):
            assert (float(names[name]["die"]) < float(names[name]["ratio"])) == (name == "_RANDOMLY_ACCEPTED"), said


def check(strategy: str, wanted: int, recorder: TemplateRecorder) -> set[str]:
    """Explain that many steps of a strategy; the claims that were made."""
    made: set[str] = set()
    width = OWN.get(strategy, {}).get("num_beams", 1) // OWN.get(strategy, {}).get("num_beam_groups", 1)
    for event in steps(strategy, wanted):
        if isinstance(event, TokenChosen):
            made |= check_token(event, recorder)
        elif isinstance(event, DraftRound):
            check_round(event, recorder)
        elif isinstance(event, BeamStep):
            for candidate in event.candidates:
                made |= check_candidate(candidate, event, width, recorder)
    return made


@pytest.mark.parametrize("strategy", strategies.registry)
def test_sentences_match_their_steps(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(strategy, SHORT, TemplateRecorder(monkeypatch))


@pytest.mark.fuzz
@pytest.mark.parametrize("strategy", strategies.registry)
def test_sentences_match_200_steps(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(strategy, LONG, TemplateRecorder(monkeypatch))


def test_sentences_on_tokens_of_a_method_with_its_own_name_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = TemplateRecorder(monkeypatch)
    taken = [*steps("greedy", SHORT), *steps("sampling", SHORT)]
    tokens = [event for event in taken if isinstance(event, TokenChosen)]
    made = [check_token(replace(event, method="coin"), recorder) for event in tokens]
    assert set().union(*made) >= {"tokens._OTHER_FIRST", "tokens._OTHER_NTH"}


def test_sentences_match_a_scored_text(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = TemplateRecorder(monkeypatch)
    scored = core.score(core.load("storyteller"), "Once upon a time there was a purple engine, and it sang.")
    made = [check_token(event, recorder) for event in scored]
    assert set().union(*made) >= {"tokens._SCORED_FIRST", "tokens._SCORED_BEHIND"}
