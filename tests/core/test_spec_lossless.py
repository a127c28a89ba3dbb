"""Speculation while sampling leaves the distribution of the text as it is: chi-square on a vocabulary of six."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding.speculation.auto_length import AutoLength
from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.prompt_lookup_drafter import PromptLookupDrafter
from decodescope.core.decoding.speculation.round_plan import RoundPlan
from decodescope.core.decoding.speculation.tree import Branch, DraftTree, merge_branches
from decodescope.core.decoding.speculation.tree_passes import VerifyCost
from decodescope.core.decoding.speculation.verification import AcceptanceRng, verify_sampled
from tests.core.spec_models import few_token_model
from tests.core.spec_tables import (
    SIZE,
    Path,
    Table,
    complete,
    expected_shares,
    p_value,
    root_text,
    scores_of,
    table_drafter,
)
from tests.long import every, slow

TARGET, FIRST, SECOND = Table(1), Table(2), Table(3)
ALARM = 1e-3
"""A right sampler is accused of being wrong once in a thousand seeds; the seeds here are fixed."""
Round = Callable[[torch.Generator], DraftTree]


def _drawn(*tables: Table, depth: int = 3, **plan: object) -> Round:
    """Rounds of real drafters on tables."""

    def draft(generator: torch.Generator) -> DraftTree:
        order = RoundPlan(depth, is_sampled=True, keeps_q=True, **plan)  # type: ignore[arg-type]
        branches = []
        for number, table in enumerate(tables):
            branch = table_drafter(table, generator, number).propose(root_text(), order)
            assert branch is not None
            branches.append(branch)
        return merge_branches(0, branches)

    return draft


def _copied(generator: torch.Generator) -> DraftTree:
    """Rounds of prompt lookup: the text offers 4 2 5 after its last token."""
    branch = PromptLookupDrafter([], 3, 8).propose(
        SpeculationText([1, 4, 2, 5, 3, 1], torch.device("cpu")), RoundPlan(3, keeps_q=True)
    )
    assert branch is not None
    assert branch.ids == [4, 2, 5]
    return merge_branches(1, [branch])


def _gated(generator: torch.Generator) -> DraftTree:
    """Rounds whose widths and depth follow from the drafter's doubts."""
    schedule = AutoLength(VerifyCost((1, 8), (1.0, 1.2)), {}, "test")
    return _drawn(FIRST, gate=schedule.gate, allows_leaves=True)(generator)


def _branching(generator: torch.Generator) -> DraftTree:
    """For expensive passes: several draws at a time, and drafts after each."""
    schedule = AutoLength(VerifyCost((1, 32), (1.0, 1.01)), {}, "test", draft_cost=0.01)
    assert schedule.gate is not None
    assert schedule.gate.should_branch()
    return _drawn(FIRST, gate=schedule.gate, allows_leaves=True)(generator)


def _measure(draft: Round, rounds: int, length: int, seed: int = 0) -> Counter[Path]:
    generator = torch.Generator().manual_seed(seed)
    dice, counts = AcceptanceRng(generator), Counter[Path]()
    for _ in range(rounds):
        tree = draft(generator)
        verdict = verify_sampled(tree, scores_of(TARGET, tree), dice, generator)
        tokens = [*(tree.ids[node] for node in verdict.path), verdict.extra_token]
        counts[complete(TARGET, tokens, length, generator)] += 1
    return counts


CASES: dict[str, Round] = {
    "chain": _drawn(FIRST),
    "chain with a threshold": _drawn(FIRST, threshold=0.3),
    "lookup": _copied,
    "tree 2 2 1": _drawn(FIRST, widths=(2, 2, 1)),
    "merged chains": _drawn(FIRST, SECOND),
    "merged trees 2 2 1": _drawn(FIRST, SECOND, widths=(2, 2, 1)),
    "automatic tree": _gated,
    "automatic tree, branching": _branching,
}


@pytest.mark.every(4)
@pytest.mark.parametrize("name", every(2, CASES))
def test_two_tokens_follow_the_target_distribution(name: str) -> None:
    counts = _measure(CASES[name], 2000, 2)
    assert p_value(counts, expected_shares(TARGET, 2)) > ALARM


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [4000, pytest.param(20_000, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("name", CASES)
def test_three_tokens_follow_the_target_distribution(name: str, rounds: int) -> None:
    counts = _measure(CASES[name], rounds, 3, seed=5)
    assert p_value(counts, expected_shares(TARGET, 3)) > ALARM


def test_chi_square_detects_a_rule_that_is_not_lossless() -> None:
    """Top-k children with sampling: the test would notice the error because of which the strategy refuses them."""

    def likeliest(generator: torch.Generator) -> DraftTree:
        branch = table_drafter(FIRST, generator).propose(root_text(), RoundPlan(3, (2, 2, 1), keeps_q=True))
        assert branch is not None
        return merge_branches(0, [branch])

    counts = _measure(likeliest, 2500, 2)
    assert p_value(counts, expected_shares(TARGET, 2)) < 1e-6


def test_drafter_equal_to_the_target_is_never_rejected() -> None:
    generator = torch.Generator().manual_seed(0)
    dice = AcceptanceRng(generator)
    for _ in range(200):
        tree = _drawn(TARGET)(generator)
        verdict = verify_sampled(tree, scores_of(TARGET, tree), dice, generator)
        assert len(verdict.path) == 3
        assert verdict.is_bonus


def test_acceptance_rate_equals_the_overlap() -> None:
    """The chance that a drafted token is accepted is Σ min(p, q)."""
    generator = torch.Generator().manual_seed(1)
    dice, accepted, rounds = AcceptanceRng(generator), 0, 3000
    for _ in range(rounds):
        tree = _drawn(FIRST, depth=1)(generator)
        accepted += len(verify_sampled(tree, scores_of(TARGET, tree), dice, generator).path)
    overlap = float(torch.minimum(TARGET(()), FIRST(())).sum())
    spread = (overlap * (1 - overlap) / rounds) ** 0.5
    assert abs(accepted / rounds - overlap) < 4 * spread


def test_rejected_tokens_of_a_certain_draft_are_excluded() -> None:
    """A point mass that is refused leaves no chance for its own token."""
    generator = torch.Generator().manual_seed(2)
    dice = AcceptanceRng(generator)
    for _ in range(300):
        tree = merge_branches(0, [Branch.chain([3], [1.0], [None])])
        verdict = verify_sampled(tree, scores_of(TARGET, tree), dice, generator)
        assert verdict.path or verdict.extra_token != 3


def _xtc(p: torch.Tensor, threshold: float, probability: float) -> torch.Tensor:
    """Return the mixture of two distributions [n, 3, V] that the random decision of XTC makes."""
    cut = p.clone()
    for row in cut.flatten(0, 1):
        high = [token for token in range(SIZE) if row[token] >= threshold]
        row[[token for token in high if row[token] > min(row[t] for t in high)]] = 0.0
    return (1 - probability) * p + probability * cut / cut.sum(-1, keepdim=True)


def _model_shares(
    model: core.LoadedModel, prompt: list[int], temperature: float, top_k: int, xtc: tuple[float, float] | None = None
) -> dict[Path, float]:
    """Probability of every pair of second and third tokens, by plain passes; `xtc`: threshold and probability."""
    pairs = list(product(range(SIZE), repeat=2))
    with torch.inference_mode():
        logits = model.model(torch.tensor([[*prompt, *pair] for pair in pairs])).logits[:, -3:] / temperature
    cut = logits.topk(top_k).values[..., -1:]
    p = torch.softmax(logits.masked_fill(logits < cut, -torch.inf), -1)
    p = p if xtc is None else _xtc(p, *xtc)
    shares = {pair: 0.0 for pair in pairs}
    for row, (first, second) in enumerate(pairs):
        for third in range(SIZE):
            shares[second, third] += float(p[row, 0, first] * p[row, 1, second] * p[row, 2, third])
    return shares


ENDS: dict[str, dict[str, object]] = {
    "assisted": {"schedule": "constant"},
    "prompt_lookup": {"schedule": "constant"},
    "early_exit": {"schedule": "constant"},
    "token_tree": {"widths": "2 2 1"},
}


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("strategy", "xtc"),
    [
        *every(3, [(name, None) for name in ENDS]),
        slow(("assisted", (0.15, 0.6))),
        pytest.param("token_tree", (0.15, 0.6), marks=pytest.mark.fuzz),
    ],
)
def test_sampled_runs_follow_the_target_distribution(strategy: str, xtc: tuple[float, float] | None) -> None:
    """The second and third token go through speculation, with temperature and top-k. XTC draws a new number for every
    drafted token.
    """
    options = {} if xtc is None else {"xtc_threshold": xtc[0], "xtc_probability": xtc[1]}
    model, drafts = few_token_model(0), [few_token_model(1), few_token_model(2)]
    prompt, counts = [1, 2, 3, 1, 2], Counter[Path]()
    needs_drafts = strategy in ("assisted", "token_tree")
    for seed in range(300):
        config = GenerationConfig(max_new_tokens=5, do_sample=True, temperature=1.3, top_k=4)
        request = core.Request(
            prompt, config, strategy, {**ENDS[strategy], **options}, seed=seed, top_n=0,
            drafters=drafts if needs_drafts else (),
        )  # fmt: skip
        counts[tuple(core.run(model, request).sequences[0][1:3])] += 1
    shares = _model_shares(model, prompt, 1.3, 4, xtc)
    assert p_value(counts, {path: share for path, share in shares.items() if share > 0}) > ALARM
