"""Steps repeated as CUDA graphs, results that are read one step late, and the kernels that attention selects."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding import token_loop
from decodescope.core.decoding.forward import graphed_pass
from decodescope.core.decoding.forward.fused_decoder import get_fused_decoder
from decodescope.core.system.gpu import free_device_bytes, reusable_bytes
from tests.card import matrix
from tests.card.card_counts import Counts
from tests.card.pretend_card import PretendCard
from tests.core import native_shapes, tiny
from tests.core.adapters import save_lora

TOKENS = 32
PROMPT = tiny.prompt(seed=2)
"""Its continuation repeats few tokens."""
_BFLOAT16_STEP = 2.0**-6
"""Distance of two neighbouring numbers of bfloat16 between 2 and 4."""
DRAFTED = {"num_assistant_tokens": 4, "num_assistant_tokens_schedule": "constant"}
ROWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "greedy": ({}, {}),
    "greedy with a penalty": ({"repetition_penalty": 1.2}, {}),
    "static": ({}, {"cache": "static"}),
    "sampling": ({"do_sample": True, "top_k": 20}, {}),
    "sampling ×3": ({"do_sample": True, "num_return_sequences": 3}, {}),
    "sampling ×3, static": ({"do_sample": True, "num_return_sequences": 3}, {"cache": "static"}),
    "beams": ({"num_beams": 3}, {"strategy": "beam_search"}),
    "beams, static": ({"num_beams": 3}, {"strategy": "beam_search", "cache": "static"}),
    "contrastive": ({"penalty_alpha": 0.6, "top_k": 4}, {}),
    "contrastive, static": ({"penalty_alpha": 0.6, "top_k": 4}, {"cache": "static"}),
    "dola": ({"dola_layers": "low"}, {}),
    "assisted": (DRAFTED, {"strategy": "assisted"}),
    "assisted, static": (DRAFTED, {"strategy": "assisted", "cache": "static"}),
    "tree": (DRAFTED, {"strategy": "token_tree"}),
    "prompt lookup": ({"prompt_lookup_num_tokens": 3}, {}),
}


def _rows(*quick: str) -> list[Any]:
    """Return all rows; those that are not `quick` are slow tests."""
    return [row if row in quick else pytest.param(row, marks=pytest.mark.slow) for row in ROWS]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers on settings that a strategy does not use
        yield


@pytest.fixture
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a cache outgrow its storages within a short text."""
    monkeypatch.setattr(graphed_pass, "MIN_CAPACITY", 16)


def _request(row: str, tokens: int = TOKENS, ends: list[int] | None = None, top_n: int = 3) -> core.Request:
    settings, more = ROWS[row]
    config = GenerationConfig(max_new_tokens=tokens, eos_token_id=ends or [tiny.VOCABULARY + 5], **settings)
    return core.Request(PROMPT, config, top_n=top_n, seed=3, steady=True, **more)


def _drafters(row: str) -> list[core.LoadedModel]:
    strategy = ROWS[row][1].get("strategy")
    return [matrix.host_model("llama", seed=3, noise=0.05)] if strategy in ("assisted", "token_tree") else []


def _run_on_both(card: PretendCard, row: str, kind: str = "llama", **more: Any) -> tuple[core.LoadedModel, Counts]:
    """Compare two runs on the card with the CPU; return the counts of the second one."""
    host, asked = matrix.host_model(kind), _request(row, **more)
    drafters = _drafters(row)
    model, twins = matrix.on_card(host), [matrix.on_card(one) for one in drafters]
    expected = matrix.outcome(host, asked, tuple(drafters))
    for _ in range(2):
        with card.counting() as counts:
            found = matrix.outcome(model, asked, tuple(twins))
        assert not list(matrix.differences(expected, found))[:3]
    return model, counts


@pytest.mark.parametrize("row", _rows("beams", "contrastive", "assisted"))
def test_graphs_compute_the_same_in_one_launch(card: PretendCard, row: str, small_buckets: None) -> None:
    _, counts = _run_on_both(card, row)
    passes = TOKENS // 5 if row in ("assisted", "assisted, static", "tree", "prompt lookup") else TOKENS // 2
    assert counts.graphs["launch"] >= passes, counts.table(TOKENS)
    assert not card.hazards


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gpt2", "mistral"])
def test_graphs_with_other_positions_and_windows_match_the_cpu(
    card: PretendCard, kind: str, small_buckets: None
) -> None:
    _, counts = _run_on_both(card, "greedy", kind)
    assert counts.graphs["launch"] > TOKENS // 2, counts.table(TOKENS)


@pytest.mark.parametrize(
    ("kind", "row"), [("qwen3_moe", "greedy"), *(pytest.param("mixtral", row, marks=pytest.mark.slow) for row in ROWS)]
)
def test_mixtures_of_experts_are_graphs_too(card: PretendCard, kind: str, row: str, small_buckets: None) -> None:
    host = core.wrap(native_shapes.SHAPES[kind].make())
    drafters = _drafters(row)
    model, twins = matrix.on_card(host), [matrix.on_card(one) for one in drafters]
    expected = matrix.outcome(host, _request(row), tuple(drafters))
    for _ in range(2):
        with card.counting() as counts:
            found = matrix.outcome(model, _request(row), tuple(twins))
        assert not list(matrix.differences(expected, found))[:3]
    assert counts.graphs["launch"] >= TOKENS // 5, counts.table(TOKENS)


def test_adapters_take_part_in_graphs(card: PretendCard, tmp_path: Path, small_buckets: None) -> None:
    host = matrix.on_card(matrix.host_model("llama"), "cpu")
    save_lora(host, tmp_path / "a", target_modules=["q_proj", "down_proj"])
    save_lora(host, tmp_path / "b", seed=2, target_modules=["v_proj"])
    model, texts = matrix.on_card(host), []
    for adapters in ((), ("a",), ("a", "b"), ("b",), ("a",)):
        asked = replace(_request("greedy"), adapters=[tmp_path / name for name in adapters])
        expected = matrix.outcome(host, asked, ())
        with card.counting() as counts:
            assert not list(matrix.differences(expected, matrix.outcome(model, asked, ())))[:3]
        assert counts.graphs["launch"] >= TOKENS - 10, counts.table(TOKENS)
        texts.append(tuple(core.run(host, asked).sequences[0]))
    assert len(set(texts)) == 4


@pytest.mark.slow
def test_graphs_of_former_adapters_are_dropped(card: PretendCard, tmp_path: Path) -> None:
    host = matrix.on_card(matrix.host_model("llama"), "cpu")
    save_lora(host, tmp_path / "a", target_modules=["q_proj"])
    model = matrix.on_card(host)
    for strength in (1.0, 0.0, 0.5, 0.25):
        model.adapters.set([(tmp_path / "a", strength)])
        core.run(model, _request("greedy"))
    store: graphed_pass.GraphStore = model.strategy_data[graphed_pass._KEY]
    versions = {version for arena in store._arenas for version, _ in arena.passes}
    assert versions == {0, model.adapters.version}


def _log_probabilities(host: core.LoadedModel, text: list[int]) -> torch.Tensor:
    """Return the log-probabilities [N, V] from which the N tokens of `text` are written, computed in one pass."""
    with torch.no_grad():
        return host.model(torch.tensor([PROMPT + text])).logits[0, len(PROMPT) - 1 : -1].float().log_softmax(-1)


@pytest.mark.slow
@pytest.mark.parametrize("row", ["greedy", "beams", "assisted"])
def test_bfloat16_graphs_choose_the_best_tokens_of_plain_passes(
    card: PretendCard, row: str, small_buckets: None
) -> None:  # fmt: skip
    host = matrix.host_model("llama", "bfloat16")
    drafters = [matrix.on_card(matrix.host_model("llama", "bfloat16", 3, 0.05))] if _drafters(row) else []
    with card.counting() as counts:
        (text,) = core.run(matrix.on_card(host), _request(row), drafters=drafters).sequences
    assert counts.graphs["launch"] >= TOKENS // 5
    # Two tokens often have the same logit in 8 bits; which of them is written depends on the order of summation.
    found = _log_probabilities(host, text)
    written = found.gather(1, torch.tensor(text)[:, None])[:, 0]
    if row == "beams":
        (expected,) = core.run(host, _request(row)).sequences
        best = _log_probabilities(host, expected).gather(1, torch.tensor(expected)[:, None])
        assert written.sum() >= best.sum() - TOKENS * _BFLOAT16_STEP
    else:
        assert (found.amax(-1) - written).max() <= 2 * _BFLOAT16_STEP


def test_graphs_of_a_run_are_reused_by_the_next_run(card: PretendCard, small_buckets: None) -> None:
    _, counts = _run_on_both(card, "greedy")
    assert "capture" not in counts.graphs
    assert counts.graphs["launch"] >= TOKENS - 8


def test_graphs_are_dropped_where_memory_runs_short(small_buckets: None) -> None:
    with PretendCard(capacity=2**26) as card:
        model, counts = _run_on_both(card, "greedy")
        gc.collect()
        assert counts.graphs["launch"]
        assert graphed_pass.graph_bytes(model) > 0
        assert reusable_bytes(model.device) <= card.reserved[0] - card.used[0] - card.pool_bytes()
        free = free_device_bytes(model.device) or 0
        ballast = torch.zeros(free - 2**20, dtype=torch.uint8, device="cuda")
        with card.counting() as counts:
            result = core.run(model, _request("beams", tokens=6))  # three rows need other storages
        assert result.sequences == core.run(matrix.host_model("llama"), _request("beams", tokens=6)).sequences
        assert not counts.graphs["capture"]
        assert graphed_pass.graph_bytes(model) == 0
        del ballast


@pytest.mark.slow
def test_running_out_of_memory_drops_graphs(small_buckets: None) -> None:
    with PretendCard() as card:
        model, _ = _run_on_both(card, "greedy")
        assert card.pool_bytes() > 0
        card.fail_after = 300
        result = core.run(model, _request("sampling ×3"))
        assert len(result.sequences) == 3
        assert card.fail_after is None


@pytest.mark.slow
def test_operation_that_cannot_be_captured_runs_without_a_graph(
    card: PretendCard, monkeypatch: pytest.MonkeyPatch, small_buckets: None
) -> None:
    original = graphed_pass.FusedDecoder.head_output

    def head_output(decoder: Any, last: torch.Tensor, keep: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        if last.shape[1] == 1 and last.device.type == "cuda":
            last.sum().item()
        return original(decoder, last, keep)

    monkeypatch.setattr(graphed_pass.FusedDecoder, "head_output", head_output)
    _, counts = _run_on_both(card, "greedy")
    assert not counts.graphs["launch"]


@pytest.mark.parametrize("row", _rows("greedy")[:4])
def test_a_text_that_ends_early_is_cut_off_exactly(card: PretendCard, row: str) -> None:
    host = matrix.host_model("llama")
    text = core.run(host, _request(row)).sequences[0]
    end = next(place for place in reversed(range(2, 16)) if text[place] not in text[:place])
    store, asked = core.PrefixStore(), _request(row, ends=[text[end]])
    model = matrix.on_card(host)
    found = core.run(model, asked, prefixes=store)
    assert found.sequences[0] == text[: end + 1]
    assert found.metrics.target_passes == core.run(host, asked).metrics.target_passes
    assert len(store.prefixes[0].ids) == len(PROMPT) + end
    assert matrix.outcome(host, asked) is not None
    assert not list(matrix.differences(matrix.outcome(host, asked), matrix.outcome(model, asked)))


def test_the_next_pass_is_launched_before_a_step_is_read(card: PretendCard, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    original, call = token_loop.PendingStats.result, core.decoding.forward.forward_pass.Forward.__call__

    def result(pending: Any) -> Any:
        order.append("read")
        return original(pending)

    def forward(one: Any, *args: Any, **more: Any) -> Any:
        order.append("pass")
        return call(one, *args, **more)

    monkeypatch.setattr(token_loop.PendingStats, "result", result)
    monkeypatch.setattr(core.decoding.forward.forward_pass.Forward, "__call__", forward)
    core.run(matrix.on_card(matrix.host_model("llama")), _request("sampling", tokens=6))
    # Step 0 is measured and read at once; the last one has no next pass.
    assert order == ["pass", "read", "pass", "pass", "read", "pass", "read", "pass", "read", "pass", "read", "read"]


@pytest.mark.parametrize("row", _rows("tree"))
@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_attention_never_takes_the_math_kernel(card: PretendCard, row: str, dtype: str) -> None:
    model = matrix.on_card(matrix.host_model("llama", dtype))
    drafters = [matrix.on_card(matrix.host_model("llama", dtype, 3, 0.05))] if _drafters(row) else []
    for one in (model, *drafters):
        get_fused_decoder(one)  # compares with the module, where transformers selects the kernel
    with card.counting() as counts:
        core.run(model, _request(row, tokens=12), drafters=drafters)
    kernels = {kernel for kernel, _ in counts.attention}
    assert kernels
    assert not any(kernel.startswith("math") for kernel in kernels), counts.table()
