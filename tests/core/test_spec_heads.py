"""Heads that read the model's own states, MTP and EAGLE: the same text, and drafts equal to those of the heads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.errors import ParameterError, StrategyError
from decodescope.core.events import DraftRound
from decodescope.core.models.prediction_heads import load_mtp_heads
from tests.core import head_checkpoints, tiny
from tests.core.spec_models import config, few_token_model, greedy, rounds
from tests.core.spec_tables import SIZE, p_value
from tests.core.test_spec_lossless import ALARM, _model_shares

FIXED = {"schedule": "constant"}
MADE = {"deepseek": ("deepseek_v3", 1), "three heads": ("deepseek_v3", 3), "glm": ("glm4_moe", 1), "qwen": ("qwen3", 1)}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, core.LoadedModel]:
    """Models with heads in their checkpoints."""
    made = {}
    for name, (kind, count) in MADE.items():
        layout = "mtp" if kind == "qwen3" else "layers"
        made[name] = core.load(head_checkpoints.with_heads(tmp_path_factory.mktemp("m") / name, kind, count, layout))
    return made


@pytest.fixture(scope="module")
def eagle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A head for the tiny Llama."""
    return head_checkpoints.eagle(tmp_path_factory.mktemp("e") / "eagle")


def _run(model: core.LoadedModel, options: dict[str, Any] | None = None, **settings: Any) -> Any:
    request = core.Request(tiny.prompt(), config(**settings), "prediction_heads", {**FIXED, **(options or {})}, top_n=0)
    return core.run(model, request)


@pytest.mark.every(3)
@pytest.mark.parametrize("name", MADE)
def test_mtp_heads_change_no_token(models: dict[str, core.LoadedModel], name: str) -> None:
    model = models[name]
    for settings in ({}, {"repetition_penalty": 1.3}):
        result = _run(model, **settings)
        assert result.sequences[0] == greedy(model, **settings)
        assert sum(len(entry.nodes) for entry in rounds(result)) > 20
    assert _run(model, {"schedule": "auto"}).sequences[0] == greedy(model)


@pytest.mark.parametrize("name", MADE)
def test_mtp_drafts_equal_those_of_transformers(models: dict[str, core.LoadedModel], name: str) -> None:
    """The first guess of every round, and of several heads each, recomputed over the whole text by its module."""
    model, result = models[name], _run(models[name])
    text = [*tiny.prompt(), *result.sequences[0]]
    for entry in rounds(result)[:12]:
        upto = len(tiny.prompt()) + entry.step
        expected = _of_the_module(model, text[:upto], min(len(entry.nodes), MADE[name][1]))
        assert [node.id for node in entry.nodes][: len(expected)] == expected


def _of_the_module(model: core.LoadedModel, ids: list[int], count: int) -> list[int]:
    """transformers' loop over its heads, recomputing every row."""
    network = load_mtp_heads(model)._network
    from transformers.cache_utils import MtpCache

    network.config._attn_implementation = "eager"
    positions = torch.arange(1, len(ids))[None]
    with torch.inference_mode():
        seen = head_checkpoints.states(model, ids[:-1])
        drafted, _, _ = network(torch.tensor([ids[1:]]), seen, None, positions, MtpCache(config=network.config))
    network.config._attn_implementation = model.model.config._attn_implementation
    found: list[int] = drafted[0, :count].tolist()
    return found


@pytest.mark.parametrize("options", [{}, {"widths": "2 2 1"}, {"schedule": "auto"}])
def test_an_eagle_head_changes_no_token(eagle: Path, options: dict[str, Any]) -> None:
    model = tiny.shared("llama")
    result = _run(model, {"draft_head": str(eagle), **options})
    assert result.sequences[0] == greedy(model)
    assert rounds(result)


def test_eagle_chain_equals_the_recomputed_head(eagle: Path) -> None:
    """Chains of five, each held against the head recomputed from nothing over the model's own states."""
    model, tensors = tiny.shared("llama"), load_file(eagle / "model.safetensors")
    result = _run(model, {"draft_head": str(eagle)}, num_assistant_tokens=5)
    text = [*tiny.prompt(), *result.sequences[0]]
    with torch.inference_mode():
        for entry in rounds(result)[:8]:
            upto = len(tiny.prompt()) + entry.step
            drafted = [node.id for node in entry.nodes]
            assert drafted == head_checkpoints.reference_drafts(model, tensors, text[:upto], len(drafted))
    assert max(len(entry.nodes) for entry in rounds(result)) == 5


def test_tree_branch_is_drafted_like_its_path(eagle: Path) -> None:
    """Each likeliest child of a node of a tree is what a chain through that node would go on with."""
    model, tensors = tiny.shared("llama"), load_file(eagle / "model.safetensors")
    result = _run(model, {"draft_head": str(eagle), "widths": "2 1 1"})
    text = [*tiny.prompt(), *result.sequences[0]]
    entry = rounds(result)[3]
    chain = head_checkpoints.reference_drafts(model, tensors, text[: len(tiny.prompt()) + entry.step], 3)
    assert [node.id for node in _first_path(entry)] == chain
    other = [node for node in entry.nodes if node.parent == 0][1]
    assert other.id != chain[0]
    assert any(node.parent == other.node for node in entry.nodes)


def _first_path(entry: DraftRound) -> list[Any]:
    path, parent = [], 0
    while children := [node for node in entry.nodes if node.parent == parent]:
        path.append(children[0])
        parent = children[0].node
    return path


@pytest.mark.slow
def test_sampled_runs_follow_the_target_distribution(tmp_path: Path) -> None:
    """With sampling, although the head is a bad one."""
    model, prompt, counts = few_token_model(0), [1, 2, 3, 1, 2], Counter[tuple[int, ...]]()
    head = head_checkpoints.eagle(tmp_path / "six", width=model.config.hidden_size)
    assert model.vocabulary == SIZE
    settings = GenerationConfig(max_new_tokens=5, do_sample=True, temperature=1.3, top_k=4)
    options, drafted = {**FIXED, "draft_head": str(head)}, 0
    for seed in range(160):
        result = core.run(model, core.Request(prompt, settings, "prediction_heads", options, seed=seed, top_n=0))
        drafted += sum(len(event.nodes) for event in rounds(result))
        counts[tuple(result.sequences[0][1:3])] += 1
    assert drafted > 160
    shares = _model_shares(model, prompt, 1.3, 4)
    assert p_value(counts, {path: share for path, share in shares.items() if share > 0}) > ALARM


def test_use_mtp_selects_the_models_mtp_heads(models: dict[str, core.LoadedModel]) -> None:
    """As in transformers; a model without heads raises an error, and its own default for them is ignored."""
    result = core.run(models["glm"], core.Request(tiny.prompt(), config(use_mtp=True), top_n=0))
    assert result.sequences[0] == greedy(models["glm"])
    assert rounds(result)
    with pytest.raises(StrategyError, match="no multi-token prediction heads"):
        core.run(tiny.shared("llama"), core.Request(tiny.prompt(), {"use_mtp": True, "max_new_tokens": 2}))


def test_a_pickled_head_is_read_without_running_code(tmp_path: Path) -> None:
    model, head = tiny.shared("llama"), head_checkpoints.eagle(tmp_path / "old", pickled=True)
    assert _run(model, {"draft_head": str(head)}).sequences[0] == greedy(model)


def test_unsupported_heads_are_refused_with_the_reason(
    tmp_path: Path, models: dict[str, core.LoadedModel], eagle: Path
) -> None:
    model = tiny.shared("llama")
    third = {"midlayer.hidden_norm.weight": torch.ones(32)}
    cases: list[tuple[core.LoadedModel, dict[str, Any], type[Exception], str]] = [
        (model, {"draft_head": str(tmp_path / "none")}, StrategyError, "does not exist"),
        (model, {"draft_head": str(head_checkpoints.eagle(tmp_path / "wide", 16))}, StrategyError, "another model"),
        (model, {"draft_head": str(head_checkpoints.eagle(tmp_path / "third", **third))}, StrategyError, "EAGLE-3"),
        (tiny.shared("t5"), {"draft_head": str(eagle)}, StrategyError, "encoder–decoder"),
        (models["three heads"], {"widths": "2 1"}, ParameterError, "can only draft a chain"),
    ]
    for requested, options, kind, words in cases:
        with pytest.raises(kind, match=words):
            _run(requested, options)


def test_a_head_with_a_missing_part_is_refused(tmp_path: Path) -> None:
    folder = head_checkpoints.with_heads(tmp_path / "short", "glm4_moe", 1)
    file = folder / "model.safetensors"
    from safetensors.torch import save_file

    stored = {name: value for name, value in load_file(file).items() if "hnorm" not in name}
    save_file(stored, file, metadata={"format": "pt"})
    with pytest.raises(StrategyError, match="cannot be read"):
        _run(core.load(folder))


def test_the_bundled_head_is_mostly_right() -> None:
    """The bundled heads write the storyteller's text in far fewer of its passes."""
    model, prompt = core.load("storyteller"), "Once upon a time, there was a little fox named Mia."
    options = {**FIXED, "draft_head": "storyteller-eagle"}
    result = core.run(model, core.Request(prompt, {"max_new_tokens": 80}, "prediction_heads", options, top_n=0))
    plain = core.run(model, core.Request(prompt, {"max_new_tokens": 80}, "greedy", top_n=0))
    assert result.sequences == plain.sequences
    assert (result.metrics.tokens_per_target_pass or 0) > 2.5
