"""Sampled speculation emits exactly the distribution of the target: every outcome of every draw is tried.

All draws of a run, of drafters, of the verification and of the target, are replaced by choices that are enumerated, and
the probabilities of the paths that write the same text are added.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.decoding.speculation import drafters, speculation_loop, verification
from decodescope.core.decoding.speculation.drafters import model_drafter, tree_drafter
from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.model_drafter import ModelDrafter
from decodescope.core.decoding.speculation.round_plan import RoundPlan
from decodescope.core.decoding.speculation.tree import Branch
from tests.core import head_checkpoints
from tests.core.spec_models import few_token_model
from tests.long import slow

SIZE = 3
PROMPT = [1, 2, 0, 1, 2]
SETTINGS = {"do_sample": True, "temperature": 1.4, "top_p": 0.97}
_DRAWS = (speculation_loop, verification, model_drafter, tree_drafter)


class Enumeration:
    """Repeats a computation for every sequence of outcomes of its draws."""

    def __init__(self) -> None:
        self.probability = 1.0
        self._outcomes: list[tuple[int, list[float]]] = []
        self._place = 0

    def choose(self, weights: Sequence[float]) -> int:
        """Return the outcome of a draw with these probabilities in this repetition."""
        if self._place == len(self._outcomes):
            self._outcomes.append((next(index for index, weight in enumerate(weights) if weight > 0), list(weights)))
        outcome, known = self._outcomes[self._place]
        assert known == pytest.approx(list(weights)), "the computation is not repeated exactly"
        self._place += 1
        self.probability *= weights[outcome]
        return outcome

    def repetitions(self) -> Iterator[None]:
        """Yield before every repetition."""
        while True:
            self.probability, self._place = 1.0, 0
            yield
            while self._outcomes:
                outcome, weights = self._outcomes.pop()
                later = [index for index in range(outcome + 1, len(weights)) if weights[index] > 0]
                if later:
                    self._outcomes.append((later[0], weights))
                    break
            else:
                return

    def draw_samples(self, p: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
        """Replace the function of the same name."""
        rows = [(row / row.sum()).tolist() for row in p.double()]
        return torch.tensor([[self.choose(row) for _ in range(count)] for row in rows])


class _Die(float):
    """A random number whose comparison with a ratio is the draw."""

    enumeration: Enumeration
    is_below: bool | None = None

    def __lt__(self, ratio: float) -> bool:
        if self.is_below is None:
            self.is_below = self.enumeration.choose([ratio, 1 - ratio]) == 0
        return self.is_below


def _rng_class(enumeration: Enumeration) -> type[verification.AcceptanceRng]:
    class EnumeratedRng(verification.AcceptanceRng):
        def __call__(self) -> float:
            die = _Die(0.5)
            die.enumeration = enumeration
            return die

        def shuffle(self, trials: Sequence[Any]) -> list[Any]:
            orders = list(permutations(trials))
            return list(orders[enumeration.choose([1 / len(orders)] * len(orders))])

    return EnumeratedRng


def three_token_model(seed: int) -> core.LoadedModel:
    return few_token_model(seed, SIZE, 6.0)


def emitted(request: core.Request, drafts: Sequence[core.LoadedModel], patch: pytest.MonkeyPatch) -> dict[Any, float]:
    """Return the exact probability of each text that a request writes."""
    enumeration, found = Enumeration(), defaultdict[tuple[int, ...], float](float)
    for module in _DRAWS:
        patch.setattr(module, "draw_samples", enumeration.draw_samples)
    patch.setattr(speculation_loop, "AcceptanceRng", _rng_class(enumeration))
    for _ in enumeration.repetitions():
        ids = core.run(three_token_model(0), request, drafters=tuple(drafts)).sequences[0]
        found[tuple(ids)] += enumeration.probability
    return dict(found)


def expected(length: int) -> dict[tuple[int, ...], float]:
    """Return the probability of each text by plain passes of the target."""
    network, found = three_token_model(0).model, {(): 1.0}
    for _ in range(length):
        longer = {}
        for text, share in found.items():
            with torch.inference_mode():
                logits = network(torch.tensor([[*PROMPT, *text]])).logits[0, -1].double() / SETTINGS["temperature"]
            p = torch.softmax(logits, -1)
            order = p.sort(descending=True)
            kept = order.indices[order.values.cumsum(0) - order.values < SETTINGS["top_p"]].tolist()
            whole = float(p[kept].sum())
            longer |= {(*text, token): share * float(p[token]) / whole for token in kept}
        found = longer
    return found


CONSTANT = {"schedule": "constant", "num_assistant_tokens": 3}
WAYS: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "draft_model": ("assisted", CONSTANT, (1,)),
    "draft_model, heuristic": ("assisted", {"schedule": "heuristic"}, (1,)),
    "draft_model, automatic": ("assisted", {}, (1,)),
    "draft_model, threshold": ("assisted", {**CONSTANT, "assistant_confidence_threshold": 0.5}, (1,)),
    "draft_model, two": ("assisted", CONSTANT, (1, 2)),
    "draft_model, tree": ("token_tree", {"widths": "2 1"}, (1,)),
    "draft_model, two trees": ("token_tree", {"widths": "1 1"}, (1, 2)),
    "prompt_lookup": ("prompt_lookup", CONSTANT, ()),
    "prompt_lookup, with a draft model": ("assisted", {**CONSTANT, "extra_drafters": "prompt_lookup"}, (1,)),
    "early_exit": ("early_exit", {**CONSTANT, "assistant_early_exit": 1}, ()),
    "lookahead": ("lookahead", {}, ()),
    "prediction_heads": ("prediction_heads", CONSTANT, ()),
}


def test_every_kind_of_drafter_is_enumerated() -> None:
    assert {name.partition(",")[0] for name in WAYS} == set(drafters.registry)


@pytest.mark.parametrize("length", [3, slow(4)])
@pytest.mark.parametrize("name", [slow(name) if "two" in name else name for name in WAYS])
def test_emitted_distribution_of_sampled_speculation_is_the_targets(
    name: str, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy, settings, seeds = WAYS[name]
    if strategy == "prediction_heads":
        settings = {**settings, "draft_head": str(head_checkpoints.eagle(tmp_path / "head", width=16))}
    request = core.Request(
        PROMPT, {**SETTINGS, "max_new_tokens": length, **settings}, strategy, top_n=0, steady=True, seed=1
    )
    found = emitted(request, [three_token_model(seed) for seed in seeds], monkeypatch)
    wanted = expected(length)
    assert sum(found.values()) == pytest.approx(1.0)
    assert found == pytest.approx({text: wanted.get(text, 0.0) for text in found}, abs=1e-5)
    assert set(wanted) == {text for text, share in found.items() if share > 0}


def test_likeliest_tokens_that_are_reported_as_drawn_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the assistant of Gemma 4 drafts in transformers 5.24."""
    draft: Callable[..., Branch | None] = ModelDrafter.propose

    def likeliest(self: ModelDrafter, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        with monkeypatch.context() as patch:
            patch.setattr(model_drafter, "draw_samples", lambda p, count, generator: p.argmax(-1, keepdim=True))
            return draft(self, text, plan)

    monkeypatch.setattr(ModelDrafter, "propose", likeliest)
    request = core.Request(PROMPT, {**SETTINGS, "max_new_tokens": 3, **CONSTANT}, "assisted", top_n=0, steady=True)
    found, wanted = emitted(request, [three_token_model(1)], monkeypatch), expected(3)
    distance = sum(abs(found.get(text, 0.0) - share) for text, share in wanted.items()) / 2
    assert distance > 0.05
    assert math.isclose(sum(found.values()), 1.0, abs_tol=1e-6)
