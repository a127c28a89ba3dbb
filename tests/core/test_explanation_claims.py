"""Every explanation is a claim: many steps of many kinds, each number compared with the full distribution.

The distributions are recomputed in one pass over the finished text; processors are transformers' own, one by one.
A sentence that matches no claim below fails the test too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from transformers import GenerationConfig
from transformers.generation import logits_process as lp

from decodescope import core
from decodescope.core import explain_token, words
from decodescope.core.events import BeamStep, DraftRound, TokenChosen
from tests.core import tiny
from tests.long import every, slow

NAME = r"(“.+?”|⟨.+?⟩|[Aa] line break|[Aa] space|[Ww]hite space|[Aa]n empty token)"
SHARE = r"((?:over |under |≈ )?[\d.]+ %)"
PROMPT = "I saw a red bird in the forest. The bird"
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

BUILD: dict[str, Callable[[Any, int], Any]] = {
    "sequence_bias": lambda v, start: lp.SequenceBiasLogitsProcessor(v),
    "repetition_penalty": lambda v, start: lp.RepetitionPenaltyLogitsProcessor(v),
    "no_repeat_ngram_size": lambda v, start: lp.NoRepeatNGramLogitsProcessor(v),
    "bad_words_ids": lambda v, start: lp.NoBadWordsLogitsProcessor(v, None),
    "min_new_tokens": lambda v, start: lp.MinNewTokensLengthLogitsProcessor(start, v, torch.tensor([2])),
    "exponential_decay_length_penalty": lambda v, start: lp.ExponentialDecayLengthPenalty(v, torch.tensor([2]), start),
    "suppress_tokens": lambda v, start: lp.SuppressTokensLogitsProcessor(v),
    "temperature": lambda v, start: lp.TemperatureLogitsWarper(v),
    "top_h": lambda v, start: lp.TopHLogitsWarper(v),
    "top_k": lambda v, start: lp.TopKLogitsWarper(v),
    "top_p": lambda v, start: lp.TopPLogitsWarper(v),
    "min_p": lambda v, start: lp.MinPLogitsWarper(v),
    "typical_p": lambda v, start: lp.TypicalLogitsWarper(v),
    "epsilon_cutoff": lambda v, start: lp.EpsilonLogitsWarper(v),
    "eta_cutoff": lambda v, start: lp.EtaLogitsWarper(v),
}

RUNS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "greedy, penalty": {"repetition_penalty": 1.5},
    "greedy, bans": {"no_repeat_ngram_size": 2, "suppress_tokens": [13, 14, 300]},
    "greedy, hurry": {
        "exponential_decay_length_penalty": (3, 2.0),
        "sequence_bias": [[[300], 4.0], [[301], -9.0]],
        "eos_token_id": 2,
    },
    "greedy, guidance": {"guidance_scale": 2.0},
    "hot": {"do_sample": True, "temperature": 1.8, "top_k": 0},
    "cold": {"do_sample": True, "temperature": 0.5, "top_k": 40},
    "top-k, bans": {"do_sample": True, "top_k": 3, "no_repeat_ngram_size": 2},
    "top-p": {"do_sample": True, "top_p": 0.9, "temperature": 1.4, "top_k": 0},
    "min-p": {"do_sample": True, "min_p": 0.1, "top_k": 0, "repetition_penalty": 1.8},
    "typical": {"do_sample": True, "typical_p": 0.4, "top_k": 0},
    "epsilon": {"do_sample": True, "epsilon_cutoff": 0.02, "top_k": 0, "min_new_tokens": 9, "eos_token_id": 2},
    "eta": {"do_sample": True, "eta_cutoff": 0.01, "top_k": 60},
    "top-h": {"do_sample": True, "top_h": 0.5, "top_k": 0},
    "dola": {"dola_layers": "low", "repetition_penalty": 1.2},
    "dola, dice": {"dola_layers": "high", "do_sample": True, "top_k": 5},
    "contrastive": {"penalty_alpha": 0.6, "top_k": 4, "suppress_tokens": [13]},
}


@cache
def storyteller() -> core.LoadedModel:
    return core.load("storyteller", device="cpu")


@dataclass
class StepFacts:
    """The facts of one step: probabilities [S, V] before the first stage and after each stage."""

    event: TokenChosen
    shares: torch.Tensor
    pieces: Any
    settings: dict[str, Any]

    @property
    def raw(self) -> torch.Tensor:
        return self.shares[0]

    @property
    def final(self) -> torch.Tensor:
        return self.shares[-1]

    @property
    def mine(self) -> float:
        return float(self.final[self.event.id])

    def stage(self, phrase: str) -> int:
        """Place of the stage of that name."""
        return next(n for n, stage in enumerate(self.event.funnel) if stage.phrase.lower() == phrase.lower())

    def named(self, name: str) -> list[int]:
        """All tokens that are called so."""
        name = name[:1].lower() + name[1:]
        return [token for token in range(len(self.raw)) if words.quote(self.pieces[token]) == name]

    def left(self, stage: int = -1) -> int:
        return int((self.shares[stage] > 0).sum())

    def rank(self, token: int) -> int:
        return int((self.final > self.final[token]).sum()) + 1


def near(said: str, share: float) -> bool:
    """Return whether a stated percentage is correct; passes of one and of many tokens differ in the last digit."""
    return any(said == words.percent(share * (1 + slack), "under", "over") for slack in (0, -1e-3, 1e-3, -1e-2, 1e-2))


def best_other(step: StepFacts) -> float:
    others = step.final.clone()
    others[step.event.id] = 0
    return float(others.max())


def is_mine(step: StepFacts, name: str) -> bool:
    return step.event.id in step.named(name)


# What each sentence claims: pattern, and whether its figures are true of the step.


def _ahead(s: StepFacts, name: str, share: str, other: str, second: str) -> bool:
    rival = best_other(s)
    return is_mine(s, name) and near(share, s.mine) and s.rank(s.event.id) == 1 and near(second, rival) and any(
        abs(float(s.final[token]) - rival) < 1e-3 * rival for token in s.named(other))  # fmt: skip


def _first_choice(s: StepFacts, first: str, phrase: str, verb: str) -> bool:
    token, stage = int(s.raw.argmax()), s.stage(phrase)
    kind = {"forbids it here": "ban", "cut it": "cut"}[verb]
    return token in s.named(first) and s.shares[stage - 1][token] > 0 == s.shares[stage][token] \
        and s.event.funnel[stage].kind == kind  # fmt: skip


def _put_ahead(s: StepFacts, first: str, phrase: str, mine: str) -> bool:
    token, stage, own = int(s.raw.argmax()), s.stage(phrase), s.event.id
    before, after = s.shares[stage - 1], s.shares[stage]
    return bool(token in s.named(first) and is_mine(s, mine)
                and before[token] >= before[own] and after[own] > after[token])  # fmt: skip


def _likeliest_gone(s: StepFacts, phrase: str, verb: str, number: str) -> bool:
    count = NUMBERS.index(number) + 2 if number in NUMBERS else int(number)
    stage, top = s.stage(phrase), s.raw.topk(count).indices
    return bool((s.shares[stage - 1][top] > 0).all() and (s.shares[stage][top] == 0).all()) \
        and float(s.raw[s.event.id]) <= float(s.raw[top].min())  # fmt: skip


def _likelier_gone(s: StepFacts, phrase: str, verb: str, name: str) -> bool:
    stage = s.stage(phrase)
    return any(s.shares[stage - 1][t] > 0 == s.shares[stage][t] and s.raw[t] >= s.raw[s.event.id]
               for t in s.named(name))  # fmt: skip


def _moved(s: StepFacts, phrase: str, verb: str, name: str, old: str, new: str) -> bool:
    stage = s.stage(phrase)
    before, after = (float(s.shares[place][s.event.id]) for place in (stage - 1, stage))
    return is_mine(s, name) and near(old, before) and near(new, after) and (verb == "raised") == (after > before)


def _kept(s: StepFacts, phrase: str, kept: str, of: str, _rest: str, last: str) -> bool:
    stage = s.stage(phrase)
    reported = [int(text.replace(",", "")) for text in (kept, of, last or kept)]
    return reported == [s.left(stage), s.left(stage - 1), s.left()] and s.event.funnel[stage].kind == "cut"


def _drawn(s: StepFacts, name: str, place: str, share: str, did: str) -> bool:
    ordinal = "the most likely" if s.rank(s.event.id) == 1 else f"the {words.ordinal(s.rank(s.event.id))} most likely"
    return is_mine(s, name) and near(share, s.mine) and place == ordinal and did in (
        "drawn", "drawn instead", "accepted at random")  # fmt: skip


def _through_layers(s: StepFacts, layer: str, name: str, old: str, new: str, place: str) -> bool:
    choice = s.event.layer_choice
    assert choice is not None
    furthest = max(choice.divergences, key=lambda pair: pair[1])[0]
    rank = s.rank(s.event.id)
    reported = ("the highest", "the most likely") if rank == 1 else f"the {words.ordinal(rank)}"
    return (int(layer) == choice.layer == furthest and is_mine(s, name) and near(new, s.mine)
            and near(old, float(s.raw[s.event.id])) and place.startswith(reported))  # fmt: skip


def _kept_share(s: StepFacts, layer: str, name: str, share: str, place: str) -> bool:
    return _through_layers(s, layer, name, share, share, place)


def _balance(s: StepFacts, token: int) -> tuple[float, float]:
    """Return (penalty, score) of a candidate by the formula, from the events of the run."""
    item = next(item for item in s.event.alternatives if item.id == token)
    alpha = s.settings["penalty_alpha"]
    assert item.score == pytest.approx(
        (1 - alpha) * item.probability - alpha * (item.degeneration_penalty or 0), abs=1e-4
    )
    return item.degeneration_penalty or 0.0, item.score or 0.0


def _balanced(s: StepFacts, likelier: str, share: str, old: str, new: str, name: str, mine: str) -> bool:
    top = int(s.final.argmax())
    return (top in s.named(likelier) and is_mine(s, name) and near(share, float(s.final[top])) and near(mine, s.mine)
            and float(old) > float(new) and abs(float(old) - _balance(s, top)[0]) < 6e-3
            and _balance(s, top)[1] < _balance(s, s.event.id)[1])  # fmt: skip


def _stayed(
    s: StepFacts, name: str, count: str, share: str, likeness: str, score: str, other: str, second: str
) -> bool:
    tried = [item for item in s.event.alternatives if item.score is not None and item.probability > 0]
    ranked = sorted(tried, key=lambda item: -(item.score or 0))
    penalty, own = _balance(s, s.event.id)
    return (is_mine(s, name) and s.rank(s.event.id) == 1 and near(share, s.mine) and int(count) == len(tried)
            and likeness == words.decimal(penalty) and score == words.decimal(own) and ranked[0].id == s.event.id
            and second == words.decimal(ranked[1].score or 0) and ranked[1].id in s.named(other))  # fmt: skip


CLAIMS: list[tuple[str, Callable[..., bool]]] = [
    (rf"{NAME} was the model's first choice, but (.+?) (forbids it here|cut it)\.", _first_choice),
    (rf"{NAME} was the model's first choice, but (.+?) moved {NAME} ahead of it\.", _put_ahead),
    (r"([A-Z].+?) (forbade|cut) the model's (\S+) likeliest tokens here\.", _likeliest_gone),
    (rf"([A-Z].+?) (forbade|cut) {NAME}, which had a higher raw probability\.", _likelier_gone),
    (rf"([A-Z].+?) (raised|lowered) {NAME} from {SHARE} to {SHARE}\.", _moved),
    (r"([A-Z].+?) kept ([\d,]+) of ([\d,]+) tokens(; in the end, ([\d,]+) (?:was|were) left)?\.", _kept),
    (rf"Only {NAME} was left(?:, so nothing had to be drawn)?\.", lambda s, name: is_mine(s, name) and s.left() == 1),
    (rf"{NAME} had {SHARE}: the model was nearly certain\.",
     lambda s, name, share: is_mine(s, name) and near(share, s.mine) and float(s.raw[s.event.id]) > 0.94),
    (rf"{NAME} had {SHARE}: hardly anything else could be drawn\.",
     lambda s, name, share: is_mine(s, name) and near(share, s.mine) and s.mine > 0.999),
    (rf"{NAME} had {SHARE}, the highest of all, ahead of {NAME} with {SHARE}\.", _ahead),
    (rf"{NAME} was (the .+?), with {SHARE}, and was (.+?)\.", _drawn),
    (rf"Layer (\d+) differed most from the last one\. In contrast with it, {NAME} went from {SHARE} to {SHARE}, "
     r"(.+?)\.", _through_layers),
    (rf"Layer (\d+) differed most from the last one\. In contrast with it, {NAME} kept its {SHARE}, (.+?)\.",
     _kept_share),
    (rf"Layer (\d+) differed most from the last one, but only {NAME} was left to choose\.",
     lambda s, layer, name: is_mine(s, name) and s.left() == 1 and int(layer) == s.event.layer_choice.layer),
    (rf"{NAME} was likelier \({SHARE}\), but more similar to the previous text \(([\d.]+) versus ([\d.]+)\), so "
     rf"{NAME} with {SHARE} had the better balance\.", _balanced),
    (rf"{NAME} was the likeliest of (\d+) candidates \({SHARE}\), and with a similarity of (−?[\d.]+) to the previous "
     rf"text still the best balanced: its score is (−?[\d.]+), that of {NAME} (−?[\d.]+)\.", _stayed),
]  # fmt: skip


def claims(said: str, step: StepFacts) -> Iterator[int]:
    """Numbers of the claims that a sentence makes. Fails for one that is false, and for words that claim nothing."""
    rest = str(said)
    while rest:
        for number, (pattern, is_true) in enumerate(CLAIMS):
            if match := re.match(rf"{pattern}(?: |$)", rest, re.DOTALL):
                assert is_true(step, *(group or "" for group in match.groups())), said
                rest = rest[match.end() :]
                yield number
                break
        else:
            pytest.fail(f"no known claim: {rest!r} in {said!r}")


def processed(model: core.LoadedModel, ids: list[int], start: int, settings: dict[str, Any], run: core.Result,
              tokens: list[TokenChosen]) -> Iterator[StepFacts]:  # fmt: skip
    """Every step with its distributions; one pass over the whole text (and one without the prompt, for guidance)."""
    with torch.no_grad():
        output = model.model(torch.tensor([ids]), output_hidden_states=True)
        alone = model.model(torch.tensor([ids[start - 1 :]])).logits[0]
        for event in tokens:
            place = start - 1 + event.step
            scores = output.logits[0, place].float()
            shares = [scores.softmax(-1)]
            for stage in event.funnel[1:]:
                if stage.name == "guidance_scale":
                    towards, away = scores.log_softmax(-1), alone[event.step].log_softmax(-1)
                    scores = settings["guidance_scale"] * (towards - away) + away
                elif stage.name == "dola_layers":
                    assert event.layer_choice is not None
                    early = model.model.lm_head(output.hidden_states[event.layer_choice.layer][0, place])
                    scores = _contrasted(scores.log_softmax(-1), early.float().log_softmax(-1))
                else:
                    processor = BUILD[stage.name](settings[stage.name], start)
                    scores = processor(torch.tensor([ids[: place + 1]]), scores[None].clone())[0]
                shares.append(scores.softmax(-1))
            yield StepFacts(event, torch.stack(shares), model.pieces, settings)


def _contrasted(final: torch.Tensor, early: torch.Tensor) -> torch.Tensor:
    implausible = final < final.max() + torch.log(torch.tensor(0.1))
    return (final - early).masked_fill(implausible, -torch.inf)


def check(model: core.LoadedModel, prompt: Any, settings: dict[str, Any], **more: Any) -> set[int]:
    """Run, and hold every sentence against the truth; which claims were made."""
    config = GenerationConfig(max_new_tokens=24, **settings)
    run = core.run(model, core.Request(prompt, config, seed=4, **more))
    start, made = run.metrics.prompt_tokens, set[int]()
    prompt_ids = [token.id for token in run.events[0].prompt]  # type: ignore[attr-defined]
    tokens = [event for event in run.events if isinstance(event, TokenChosen)]
    for step in processed(model, prompt_ids + run.sequences[0], start, settings, run, tokens):
        made |= set(claims(_without_draft(explain_token(step.event)), step))
    return made


def _without_draft(said: str) -> str:
    """Remove the sentence about the draft, which another test compares with the rounds."""
    return re.sub(r" ?(The draft had proposed|Every drafted token)[^.]*\.$", "", said)


@cache
def claimed(name: str) -> set[int]:
    return check(storyteller(), PROMPT, RUNS[name])


@pytest.mark.parametrize("name", every(3, RUNS))
def test_claims_of_explanations_are_true(name: str) -> None:
    assert claimed(name)


def test_claims_about_a_random_model_are_true() -> None:
    """A random model's distributions are flat, so what is rare elsewhere is common."""
    model, made = tiny.make("llama", scale=2.0), set[int]()
    for settings in RUNS.values():
        if "exponential_decay_length_penalty" not in settings and "guidance_scale" not in settings:
            allowed = {"suppress_tokens": [7, 13, 14]} if "suppress_tokens" in settings else {}
            made |= check(model, tiny.prompt(), {**settings, **allowed})
    assert len(made) > 8


@pytest.mark.slow
def test_example_runs_cover_nearly_every_claim() -> None:
    made = set[int]().union(*map(claimed, RUNS))
    assert made >= set(range(len(CLAIMS))) - {3, 12}, sorted(set(range(len(CLAIMS))) - made)


@pytest.mark.parametrize("settings", [{}, {"do_sample": True, "temperature": 1.3, "top_k": 20}])
@pytest.mark.parametrize("strategy", ["prompt_lookup", slow("early_exit")])
def test_claims_about_drafts_are_true(strategy: str, settings: dict[str, Any]) -> None:
    own = {"prompt_lookup_num_tokens": 4} if strategy == "prompt_lookup" else {"assistant_early_exit": 8}
    model, config = storyteller(), GenerationConfig(max_new_tokens=40, **settings, **own)
    run = core.run(model, core.Request(PROMPT * 2, config, strategy=strategy, seed=2, steady=True))
    prompt_ids = [token.id for token in run.events[0].prompt]  # type: ignore[attr-defined]
    tokens = [event for event in run.events if isinstance(event, TokenChosen)]
    for step in processed(model, prompt_ids + run.sequences[0], len(prompt_ids), settings, run, tokens):
        list(claims(_without_draft(explain_token(step.event)), step))
    rounds = {event.step: event for event in run.events if isinstance(event, DraftRound)}
    assert rounds
    for at, event in rounds.items():
        written = tokens[at : at + len(event.accepted) + (event.extra_kind != "none")]
        reported = [explain_token(token) for token in written]
        assert all(text.endswith("The draft had proposed it.") for text in reported[: len(event.accepted)])
        if event.extra_kind == "bonus":
            assert all(node.fate != "refused" for node in event.nodes if node.parent in (0, *event.accepted))
            assert reported[-1].endswith("so it came as a bonus.")
        if event.extra_kind == "correction":
            refused = [node for node in event.nodes if node.fate == "refused"]
            assert refused
            assert reported[-1].endswith("which was rejected.")


def test_claims_about_beams_are_true() -> None:
    config = GenerationConfig(num_beams=3, max_new_tokens=12)
    for step in core.run(storyteller(), core.Request(PROMPT, config)).events:
        if not isinstance(step, BeamStep):
            continue
        ranked = sorted(step.candidates, key=lambda item: -item.score)
        stayed = [item.score for item in ranked if item.fate in ("kept", "early_stopped")]
        for place, candidate in enumerate(ranked, 1):
            reported = core.explain_candidate(candidate, step, 3)
            assert reported.startswith(f"{words.ordinal(place).capitalize()} of {len(ranked)} continuations:")
            if match := re.search(r"Its score is ([\d.]+) below", reported):
                assert float(match[1]) == pytest.approx(min(stayed) - candidate.score, abs=6e-3)
