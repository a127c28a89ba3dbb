"""The parts of speculation: trees and their merging, masks, schedules, the cost curve, lookup, draft models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from decodescope import core
from decodescope.core.caches.tensors.continuation_probe import draft_cache
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.speculation.auto_length import expected_speedup, expected_tokens
from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.compatibility import has_same_tokens, why_not_draft
from decodescope.core.decoding.speculation.drafters.model_drafter import build_early_exit_model
from decodescope.core.decoding.speculation.drafters.prompt_lookup_drafter import PromptLookupDrafter
from decodescope.core.decoding.speculation.drafters.small_model import build_numpy_draft_model
from decodescope.core.decoding.speculation.round_plan import ConstantLength, HeuristicLength, RoundPlan
from decodescope.core.decoding.speculation.tree import Branch, DraftTree, build_ancestor_mask, merge_branches
from decodescope.core.decoding.speculation.tree_passes import TreePasses, VerifyCost, verify_cost
from decodescope.core.decoding.speculation.tree_support import (
    TreePositions,
    _test_chains,
    _test_trees,
    causal_visibility,
    supports_trees,
)
from decodescope.core.decoding.speculation.verification import verify_greedy
from decodescope.core.errors import StrategyError
from tests.core import tiny
from tests.core.spec_models import config, greedy, outcome, rounds, similar_model

CPU = torch.device("cpu")


def _branch(*edges: tuple[int, int]) -> Branch:
    """Nodes from (parent, token) pairs."""
    branch = Branch()
    for parent, token in edges:
        branch.add(parent, token, 0.5)
    return branch


def test_a_tree_is_laid_out_depth_first() -> None:
    # 1 and 2 below the root, 3 and 4 below 1, 5 below 2, in drafting order (level by level).
    tree = merge_branches(9, [_branch((0, 11), (0, 12), (1, 13), (1, 14), (2, 15))])
    assert tree.ids == [9, 11, 13, 14, 12, 15]
    assert tree.parents == [-1, 0, 1, 1, 0, 4]
    assert tree.depths == [0, 1, 2, 2, 1, 2]
    assert tree.path(3) == [11, 14]
    assert tree.children == [[1, 4], [2, 3], [], [], [5], []]


def test_ancestor_mask_contains_a_node_and_its_ancestors() -> None:
    tree = merge_branches(9, [_branch((0, 11), (0, 12), (1, 13), (1, 14), (2, 15))])
    expected = [
        [1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0],
        [1, 0, 0, 0, 1, 1],
    ]  # fmt: skip
    assert tree.ancestor_mask().astype(int).tolist() == expected
    assert build_ancestor_mask([-1, 0, 1]).tolist() == causal_visibility(3).tolist()


def test_chains_merge_into_one_prefix_tree() -> None:
    one, other = Branch.chain([1, 2, 3], [0.9, 0.8, 0.7]), Branch.chain([1, 2, 4], [0.6, 0.5, 0.4])
    tree = merge_branches(0, [one, other])
    assert tree.ids == [0, 1, 2, 3, 4]
    assert tree.parents == [-1, 0, 1, 2, 2]
    assert tree.drafters == [0, 0, 0, 0, 1]
    assert tree.trials == {0: [(1, 0), (1, 1)], 1: [(2, 0), (2, 1)], 2: [(3, 0), (4, 1)]}


def test_duplicate_draw_is_one_node_with_two_trials() -> None:
    branch = _branch((0, 5), (1, 6))
    branch.trials.append(1)
    tree = merge_branches(0, [branch])
    assert len(tree) == 3
    assert tree.trials == {0: [(1, 0), (1, 0)], 1: [(2, 0)]}


def test_greedy_walk_takes_the_child_the_target_chose() -> None:
    tree = merge_branches(9, [_branch((0, 11), (0, 12), (1, 13), (1, 14), (2, 15))])
    verdict = verify_greedy(tree, [12, 0, 0, 0, 15, 7])
    assert (verdict.path, verdict.extra_token, verdict.is_bonus) == ([4, 5], 7, True)
    verdict = verify_greedy(tree, [11, 99, 0, 0, 0, 0])
    assert (verdict.path, verdict.extra_token, verdict.is_bonus) == ([1], 99, False)


@pytest.mark.parametrize("kind", tiny.DECODERS)
def test_tree_scores_equal_those_of_separate_paths(kind: str) -> None:
    """One pass under the topology mask equals a pass of its own for every node, windows included; what is kept
    afterwards goes on as if the accepted path had been read alone."""
    model, text = tiny.shared(kind), tiny.prompt(11)
    tree = merge_branches(text[-1], [_branch((0, 21), (0, 22), (1, 23), (1, 24), (3, 25), (2, 26), (5, 27))])
    with torch.inference_mode():
        passes = TreePasses(Forward(model, draft_cache(model)))
        passes.read_text(torch.tensor([text[:-1]]))
        scores = passes.read_nodes(torch.tensor([tree.ids]), tree.depths, tree.ancestor_mask())
        for node in range(len(tree)):
            alone = model.model(torch.tensor([[*text, *tree.path(node)]])).logits[0, -1]
            assert torch.allclose(scores[node], alone, atol=2e-3), node
        deepest = max(range(len(tree)), key=lambda node: tree.depths[node])
        path = [node for node in range(1, len(tree)) if tree.ancestor_mask()[deepest, node]]
        passes.commit([0, *path])
        after = passes.read_text(torch.tensor([[30]]))
        alone = model.model(torch.tensor([[*text, *tree.path(deepest), 30]])).logits[:, -1]
        assert torch.allclose(after, alone, atol=2e-3)


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_numpy_passes_equal_the_tensor_passes(kind: str) -> None:
    """Text in one go, two levels of a tree, a kept path, more text, a shorter text: as the tensors' passes."""
    model, text = tiny.shared(kind), tiny.prompt(11)
    arrays = build_numpy_draft_model(model)
    assert arrays is not None
    tensors = TreePasses(Forward(model, draft_cache(model)))
    second = np.array([[1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 1, 0, 0, 1]], dtype=bool)
    steps: list[Callable[[Any], torch.Tensor | None]] = [
        lambda reader: reader.read_text(torch.tensor([text])),
        lambda reader: reader.read_nodes(torch.tensor([[21, 22]]), (0, 0), np.eye(2, dtype=bool)),
        lambda reader: reader.read_nodes(torch.tensor([[23, 24, 25]]), (1, 1, 1), second),
        lambda reader: reader.commit((1, 4)),
        lambda reader: reader.read_text(torch.tensor([[30, 31]])),
        lambda reader: reader.read_nodes(torch.tensor([[32]]), (0,), np.ones((1, 1), dtype=bool)),
        lambda reader: reader.crop(7),
        lambda reader: reader.read_text(torch.tensor([list(range(4, 50)) * 4])),
    ]
    with torch.inference_mode():
        for step in steps:
            found, expected = step(arrays), step(tensors)
            if found is not None and expected is not None:
                assert torch.allclose(found, expected, atol=1e-4)
    assert (arrays.length, arrays.extra) == (tensors.length, tensors.extra) == (7 + 4 * 46, 0)


def test_numpy_passes_read_a_long_prompt_at_once() -> None:
    model, ids = tiny.shared("llama"), torch.tensor([list(range(4, 50)) * 2])
    arrays, tensors = build_numpy_draft_model(model), TreePasses(Forward(model, draft_cache(model)))
    assert arrays is not None
    with torch.inference_mode():
        for part in (ids, ids[:, :1], ids[:, :3]):
            assert torch.allclose(arrays.read_text(part), tensors.read_text(part), atol=1e-4)


def test_numpy_passes_support_small_plain_models_only() -> None:
    assert build_numpy_draft_model(tiny.shared("gpt2")) is None
    hooked = tiny.make("llama")
    assert build_numpy_draft_model(hooked) is not None
    hooked.model.model.layers[0].register_forward_hook(lambda *_: None)
    assert build_numpy_draft_model(hooked) is None


def test_heuristic_grows_by_two_and_shrinks_by_one() -> None:
    schedule = HeuristicLength(5)
    schedule.update(outcome(5, 5))
    assert schedule.length() == 7
    for _ in range(9):
        schedule.update(outcome(0, 3))
    assert schedule.length() == 1


@pytest.mark.parametrize("schedule", ["heuristic", "heuristic_transient", "auto", "constant"])
def test_seeded_text_is_independent_of_earlier_runs(schedule: str) -> None:
    model, drafter = tiny.make("llama", scale=3.0), tiny.make("llama", seed=4, scale=3.0)
    settings = {"max_new_tokens": 40, "min_new_tokens": 40, "do_sample": True}
    request = core.Request(tiny.prompt(), settings, "assisted", {"schedule": schedule}, drafters=(drafter,), seed=7)
    assert len({tuple(core.run(model, request).sequences[0]) for _ in range(4)}) == 1


def test_heuristic_is_kept_between_runs_and_transient_is_not() -> None:
    model, drafts = tiny.make("llama"), [similar_model("llama")]
    begins: dict[str, list[int]] = {}
    for name in ("heuristic", "heuristic_transient"):
        for _ in range(2):
            request = core.Request(tiny.prompt(), config(), "assisted", {"schedule": name}, drafters=drafts)
            result = core.run(model, request)
            begins.setdefault(name, []).append(rounds(result)[0].length)
    assert begins["heuristic_transient"] == [5, 5]
    assert begins["heuristic"][0] == 5
    assert begins["heuristic"][1] != 5


def test_constant_length_equals_the_setting() -> None:
    model, drafts = tiny.shared("llama"), [tiny.shared("llama")]
    result = core.run(model, core.Request(tiny.prompt(), config(num_assistant_tokens=3), drafters=drafts))
    assert {len(event.nodes) for event in rounds(result)[:-1]} == {3}
    assert ConstantLength(4).length() == 4


def test_confidence_threshold_stops_after_an_uncertain_token() -> None:
    model, drafts = tiny.shared("gpt2"), [similar_model("gpt2")]
    free = core.run(model, core.Request(tiny.prompt(), config(num_assistant_tokens=8), drafters=drafts))
    shares = sorted(node.draft_probability for event in rounds(free) for node in event.nodes)
    limit = shares[len(shares) // 4]
    settings = config(num_assistant_tokens=8, assistant_confidence_threshold=limit)
    result = core.run(model, core.Request(tiny.prompt(), settings, drafters=drafts))
    assert result.sequences[0] == greedy(model)
    lengths = set()
    for event in rounds(result)[:-1]:
        shares = [node.draft_probability for node in event.nodes]
        assert all(share >= limit for share in shares[:-1])
        assert len(shares) == 8 or shares[-1] < limit
        lengths.add(len(shares))
    assert len(lengths) > 1


def test_the_cost_curve_is_measured_once_and_remembered() -> None:
    model = tiny.make("llama")
    with torch.inference_mode():
        passes = TreePasses(Forward(model, draft_cache(model)))
        passes.read_text(torch.tensor([tiny.prompt()]))
        before = (passes.length, passes.extra, passes.forward.passes)
        cost = verify_cost(passes, 5)
        assert (passes.length, passes.extra, passes.forward.passes) == before
        assert passes.forward.cache.get_seq_length() == passes.length
        assert verify_cost(passes, 5) is cost
    assert cost.sizes[0] == 1
    assert cost.curve[0] == (1, 1.0)
    assert [ratio for _, ratio in cost.curve] == sorted(ratio for _, ratio in cost.curve)


def test_cost_between_and_beyond_the_measured_sizes() -> None:
    cost = VerifyCost((1, 2, 4), (1.0, 1.2, 2.0))
    assert [cost.ratio(count) for count in (1, 2, 3, 4, 6)] == pytest.approx([1.0, 1.2, 1.6, 2.0, 2.8])
    assert VerifyCost((1,), (3.0,)).ratio(7) == 1.0


def test_expected_lengths_follow_the_formulas() -> None:
    assert expected_tokens(0.8, 4) == pytest.approx(sum(0.8**power for power in range(5)))
    assert expected_tokens(1.0, 4) == 5
    assert expected_speedup(0.8, 4, 0.1) == pytest.approx((1 - 0.8**5) / (0.2 * 1.4))


def test_lookup_copies_what_followed_the_longest_match() -> None:
    drafter = PromptLookupDrafter([], 3, 10)
    text = SpeculationText([7, 1, 2, 3, 4, 5, 9, 2, 3, 8, 1, 2, 3], CPU)
    branch = drafter.propose(text, RoundPlan(4))
    assert branch is not None
    assert branch.ids == [4, 5, 9, 2]
    text.extend([8, 6])
    assert drafter.propose(text, RoundPlan(4)).ids == []  # type: ignore[union-attr]


def test_lookup_repeats_a_loop_and_searches_the_source() -> None:
    loop = PromptLookupDrafter([], 2, 10).propose(SpeculationText([5, 6, 5, 6], CPU), RoundPlan(5))
    assert loop is not None
    assert loop.ids == [5, 6, 5, 6, 5]
    source = PromptLookupDrafter([1, 2, 3, 4], 2, 10).propose(SpeculationText([0, 1, 2], CPU), RoundPlan(2))
    assert source is not None
    assert source.ids == [3, 4]


def test_lower_layers_share_every_weight() -> None:
    for kind in tiny.DECODERS:
        model = tiny.shared(kind)
        lower = build_early_exit_model(model, 2)
        assert lower.layers == 2
        assert model.layers == 4
        own = {parameter.data_ptr() for parameter in model.model.parameters()}
        assert {parameter.data_ptr() for parameter in lower.model.parameters()} < own
        with torch.inference_mode():
            ids = torch.tensor([tiny.prompt()])
            states = model.model(ids, output_hidden_states=True).hidden_states
            assert not torch.allclose(lower.model(ids).logits, model.model(ids).logits, atol=0.1)
        assert len(states) == 5


def test_early_exit_is_exact_when_upper_layers_are_identity() -> None:
    """An early exit reads what the layers below give, through the final norm and the head."""
    model = tiny.make("llama")
    with torch.no_grad():
        for layer in list(model.model.model.layers)[2:]:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    request = core.Request(tiny.prompt(), config(assistant_early_exit=2), "early_exit", {"schedule": "constant"})
    assert core.run(model, request).metrics.acceptance_rate == 1.0


class _FakeTokenizer:
    def __init__(self, words: dict[str, int]) -> None:
        self._words = words

    def __len__(self) -> int:
        return len(self._words)

    def get_vocab(self) -> dict[str, int]:
        return dict(self._words)

    def add(self, word: str) -> None:
        self._words[word] = len(self._words)


def test_draft_models_must_share_the_tokenizer() -> None:
    target = replace(tiny.shared("llama"), tokenizer=_FakeTokenizer({"a": 0, "b": 1}))
    same = replace(similar_model("llama"), tokenizer=_FakeTokenizer({"b": 1, "a": 0}))
    other = replace(similar_model("llama"), tokenizer=_FakeTokenizer({"a": 1, "b": 0}))
    assert has_same_tokens(target, same)
    assert why_not_draft(target, same) is None
    assert "tokenizer" in (why_not_draft(target, other) or "")
    assert "recurrent" in (why_not_draft(target, tiny.shared("mamba")) or "")
    same.tokenizer.add("c")
    assert not has_same_tokens(target, same)  # what was found is not kept longer than it holds


def test_padded_vocabularies_are_aligned() -> None:
    """Models of a family may pad their embeddings differently; the tokens are the same."""
    words = _FakeTokenizer({str(number): number for number in range(tiny.VOCABULARY)})
    target = replace(tiny.shared("llama"), tokenizer=None)
    for size in (tiny.VOCABULARY - 3, tiny.VOCABULARY + 3):
        draft = tiny.make("llama", seed=4, vocab_size=size)
        drafter = _drafter_for(draft)
        assert drafter._fit_vocabulary(torch.zeros(2, size)).shape == (2, tiny.VOCABULARY)
    assert words.get_vocab()
    assert target.vocabulary == tiny.VOCABULARY


def _drafter_for(model: core.LoadedModel) -> Any:
    from decodescope.core.decoding.speculation.drafters.model_drafter import ModelDrafter
    from decodescope.core.decoding.speculation.tree import NodePipeline

    reader = TreePasses(Forward(model, draft_cache(model)))
    return ModelDrafter("draft", reader, NodePipeline([]), torch.Generator(), 0, lambda: False, tiny.VOCABULARY, None)


def test_speculation_text_grows_beyond_its_initial_capacity() -> None:
    text = SpeculationText([1, 2], CPU)
    for number in range(700):
        text.extend([number, number])
    assert len(text) == 1402
    assert text.tensor[0, -2:].tolist() == [699, 699]
    assert text.ids_from(1400).tolist() == [[699, 699]]


def test_long_extension_enlarges_the_text_capacity() -> None:
    text = SpeculationText([1], CPU)
    text.extend(list(range(1000)))
    assert text.tensor.shape == (1, 1001)


def test_sliding_window_masks_exclude_older_tokens() -> None:
    model = tiny.shared("mistral")
    sees = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1]], dtype=bool)
    mask = TreePositions(model).build(10, (0, 1, 1), sees)["attention_mask"]
    visible = (mask[0, 0] == 0).int().tolist()
    assert visible[0] == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
    assert visible[1] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0]
    assert visible[2] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1]


def test_a_window_shorter_than_the_tree_is_deep() -> None:
    model = tiny.make("mistral", sliding_window=3)
    expected = greedy(model)
    for way, options in (("assisted", {"schedule": "constant"}), ("token_tree", {"widths": "1 2 1 2 1"})):
        result = core.run(model, core.Request(tiny.prompt(), config(), way, options, drafters=[model]))
        assert result.sequences[0] == expected
        assert result.metrics.acceptance_rate == 1.0


def test_tree_size_follows_the_widths() -> None:
    request = core.Request(tiny.prompt(), config(), "token_tree", {"widths": "2 1 3"}, drafters=[tiny.shared("llama")])
    first: DraftTree | Any = rounds(core.run(tiny.shared("llama"), request))[0]
    by_depth = [sum(node.depth == depth for node in first.nodes) for depth in (1, 2, 3)]
    assert by_depth == [2, 2, 6]


def test_tree_support_of_unknown_architectures_is_tested() -> None:
    """MPT's positions follow from its mask, so a tree would be read wrongly: chains only, and exactly."""
    small: dict[str, Any] = {"vocab_size": tiny.VOCABULARY, "hidden_size": 32, "bos_token_id": 1, "eos_token_id": 2}
    torch.manual_seed(0)
    bloom = core.wrap(transformers.BloomForCausalLM(transformers.BloomConfig(n_layer=2, n_head=4, **small)))
    neox = core.wrap(
        transformers.GPTNeoXForCausalLM(
            transformers.GPTNeoXConfig(num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, **small)
        )
    )
    mpt = core.wrap(
        transformers.MptForCausalLM(
            transformers.MptConfig(d_model=32, n_layers=2, n_heads=4, vocab_size=tiny.VOCABULARY, eos_token_id=2)
        )
    )
    assert not supports_trees(mpt)
    assert supports_trees(neox)
    assert supports_trees(bloom)
    for model in (bloom, neox, mpt):
        request = core.Request(tiny.prompt(), config(num_assistant_tokens=4), drafters=[model])
        result = core.run(model, request)
        assert result.sequences[0] == greedy(model)
        assert result.metrics.acceptance_rate == 1.0
    with pytest.raises(StrategyError, match="order"):
        core.run(mpt, core.Request(tiny.prompt(), config(), "token_tree", drafters=[mpt]))
    tree = core.run(bloom, core.Request(tiny.prompt(), config(), "token_tree", drafters=[bloom]))
    assert tree.sequences[0] == greedy(bloom)


@pytest.mark.parametrize("kind", tiny.DECODERS)
def test_tree_probe_succeeds_for_all_known_families(kind: str) -> None:
    model = tiny.shared(kind)
    assert supports_trees(model)
    assert _test_trees(model)
    assert _test_chains(model)
