"""Drafts with native passes: chains, states for heads and spare capacity equal the tensor versions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from transformers import DynamicCache

from decodescope.core.caches.tensors import cache_operations
from decodescope.core.caches.tensors.continuation_probe import draft_cache
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.model_drafter import ModelDrafter
from decodescope.core.decoding.speculation.drafters.small_model import build_numpy_draft_model
from decodescope.core.decoding.speculation.round_plan import RoundPlan
from decodescope.core.decoding.speculation.tree import NodePipeline
from decodescope.core.decoding.speculation.tree_passes import TargetHiddenStates, TreePasses
from decodescope.core.decoding.speculation.tree_support import causal_visibility
from decodescope.core.native import native_library
from tests.core import tiny
from tests.core.native_step_models import model_of, step_of, wide_model

pytestmark = pytest.mark.usefixtures("needs_compiler")


class Open:
    """A gate that accepts everything, with one leaf next to each token."""

    def acceptance(self, drafter: int, probability: float, is_alternative: bool = False) -> float:
        return probability

    def should_branch(self) -> bool:
        return False

    def draw_count(self, probability: float, nodes: int) -> int:
        return 1

    def should_extend(self, probabilities: Sequence[float], nodes: int) -> bool:
        return True

    def is_worthwhile(self, probability: float, nodes: int) -> bool:
        return True

    def child_count(
        self, probability: float, probabilities: Sequence[float], drafter: int, nodes: int, sampled: bool
    ) -> int:
        return 2


@pytest.mark.usefixtures("built")
def test_small_draft_model_uses_arrays_only_without_native_code() -> None:
    model = wide_model("llama")
    assert build_numpy_draft_model(model) is None
    native_library.enable_native_steps(False)
    try:
        assert build_numpy_draft_model(model) is not None
    finally:
        native_library.enable_native_steps(True)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", ["qwen3", "gpt2", "gpt_neox", "opt"])
@torch.inference_mode()
def test_native_states_for_heads_equal_the_tensor_ones(kind: str) -> None:
    """Hidden states of every token, with a mask, equal those that the module's own head reads."""
    model = wide_model(kind) if kind == "qwen3" else model_of(kind)
    step_of(model)
    forward, ids, cache = Forward(model, draft_cache(model)), tiny.prompt(20), DynamicCache()
    forward(torch.tensor([ids[:12]]))
    wanted = model.model(torch.tensor([ids]), **{model.cache_name: cache}, output_hidden_states=True).hidden_states[-1]
    passes = TreePasses(forward, 12)
    passes.hidden_states = TargetHiddenStates()
    passes.read_text(torch.tensor([ids[12:13]]))
    passes.read_nodes(torch.tensor([ids[13:]]), range(7), causal_visibility(7))
    passes.commit(range(7))
    torch.testing.assert_close(passes.hidden_states.take(0, 8), wanted[:, 12:], rtol=1e-4, atol=1e-4)
    assert len(forward.forward_with_states(torch.tensor([[5]])).hidden or ()) == 1


@pytest.mark.usefixtures("built")
@torch.inference_mode()
def test_drafts_use_spare_capacity_and_release_it() -> None:
    """Rounds of drafts move nothing: the storage stays, and every row is what a pass of its own would give."""
    model = tiny.shared("llama")
    step_of(model)
    ids, forward, plain = tiny.prompt(64), Forward(model, draft_cache(model)), Forward(model, draft_cache(model))
    forward.extra_capacity = 32
    passes = TreePasses(forward)
    for one in (passes.read_text, lambda text: plain(text)):
        one(torch.tensor([ids[:12]]))
    places = []
    for begin in range(12, 60, 2):  # more than there is room for at first
        drafted = torch.tensor([[ids[begin], ids[begin + 1], 7, 8]])
        logits = passes.read_nodes(drafted, range(4), causal_visibility(4))
        passes.commit((0, 1))
        expected = plain(torch.tensor([ids[begin : begin + 2]]), keep=0).logits[0]
        torch.testing.assert_close(logits[:2], expected, rtol=1e-4, atol=1e-4)
        places.append(forward.cache.layers[0].keys.data_ptr())
    assert len(set(places)) == 2
    twin = forward.fork()
    twin(torch.tensor([[9]]))
    torch.testing.assert_close(passes.read_text(torch.tensor([ids[60:61]])), plain(torch.tensor([ids[60:61]])).last)
    cache_operations.compact(forward.cache)
    cache_operations.compact(plain.cache)
    for result, reference in zip(forward.cache.layers, plain.cache.layers, strict=True):
        assert result.keys.untyped_storage().nbytes() == reference.keys.untyped_storage().nbytes()
        torch.testing.assert_close(result.keys, reference.keys, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "plan",
    [RoundPlan(6), RoundPlan(6, threshold=0.3), RoundPlan(6, allows_leaves=True, gate=Open())],
    ids=["plain", "threshold", "gate"],
)
@pytest.mark.parametrize("kind", ["llama", "qwen2", "mistral", "gpt2", "opt"])
@torch.inference_mode()
def test_native_chain_equals_the_tensor_chain(plan: RoundPlan, kind: str) -> None:
    """The same chain without tensors as with them, for models with and without positions and windows."""
    model = wide_model(kind) if kind in ("llama", "qwen2") else model_of(kind)
    text, drafts = SpeculationText(tiny.prompt(11), torch.device("cpu")), []
    for is_short in (True, False):
        reader = TreePasses(Forward(model, draft_cache(model)))
        if not is_short:
            reader.hidden_states = TargetHiddenStates()  # these are read with masks and positions
        assert reader.reads_argmax is (is_short and kind != "mistral")
        drafter = ModelDrafter(
            "d", reader, NodePipeline([]), torch.Generator(), 0, lambda: False, model.vocabulary, None
        )
        branch = drafter.propose(text, plan)
        assert branch is not None
        drafter.commit(branch.ids[:2])
        drafts.append((branch.ids, branch.parents, reader.length, branch.probabilities))
    (*result, sure), (*reference, shares) = drafts
    assert result == reference
    assert sure == pytest.approx(shares, abs=1e-5)
