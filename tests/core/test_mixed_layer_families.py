"""Families whose layers are of several kinds: token trees and drafts on each of them, with all kinds in effect."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.errors import CacheError, StrategyError
from tests.core import tiny, zoo

PROMPT = zoo.prompt(20)


@cache
def model(kind: str) -> core.LoadedModel:
    return zoo.make(kind)


def ids(kind: str, strategy: str, **fields: Any) -> list[int]:
    drafters = (model(kind),) if core.strategies.registry[strategy].takes_drafters else ()
    settings = {"max_new_tokens": 10, "do_sample": False, "pad_token_id": 0}
    request = core.Request(PROMPT, settings, strategy, drafters=drafters, **fields)
    return list(core.run(model(kind), request).sequences[0])


@pytest.mark.parametrize("kind", ["deepseek_v32", "glm_moe_dsa"])
def test_trees_on_indexed_attention_write_the_greedy_text(kind: str) -> None:
    """The text is longer than what the index selects, and the accepted nodes are not the first ones."""
    assert model(kind).config.index_topk < len(PROMPT)
    tree = ids(kind, "token_tree", options={"widths": "3 2"})
    assert tree == ids(kind, "greedy")
    assert tree == ids(kind, "assisted")


@pytest.mark.parametrize("kind", ["lfm2", "lfm2_moe"])
def test_trees_on_convolutions_are_refused_before_the_run(kind: str) -> None:
    assert "conv" in model(kind).config.layer_types
    with pytest.raises(StrategyError, match="chains works"):
        ids(kind, "token_tree")
    assert ids(kind, "assisted") == ids(kind, "greedy")


def test_repeated_layers_refuse_early_exit_and_offloading() -> None:
    with pytest.raises(StrategyError, match="several times"):
        ids("dory", "early_exit")
    for name in ("offloaded", "offloaded_static"):
        with pytest.raises(CacheError, match="several times"):
            ids("dory", "greedy", cache=name)


def test_model_with_a_custom_cache_uses_that_of_transformers() -> None:
    """xLSTM's cache has no layers: nothing is kept between tokens, and the text is that of `generate`."""
    settings = GenerationConfig(max_new_tokens=10, do_sample=False, pad_token_id=0, eos_token_id=None)
    assert ids("xlstm", "greedy") == tiny.reference(model("xlstm"), PROMPT, settings)[0]
    with pytest.raises(StrategyError, match="its own kind of cache"):
        ids("xlstm", "beam_search")
