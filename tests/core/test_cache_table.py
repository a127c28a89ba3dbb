"""The page of combinations equals the program's own table, and every allowed combination runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from transformers import GenerationConfig

from decodescope import core
from tests.core import head_checkpoints, tiny
from tests.long import every

SCRIPT = Path(__file__).parents[2] / "packaging" / "cache_table.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("cache_table", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLE = script()


def test_the_page_is_up_to_date() -> None:
    assert TABLE.PAGE.read_text(encoding="utf-8") == TABLE.page(), (
        "Run python packaging/cache_table.py, which writes docs/cache-compatibility.md."
    )


@pytest.mark.every(3)
@pytest.mark.parametrize("strategy", core.strategies.registry)
@pytest.mark.parametrize("kind", every(3, ["gemma3", "llama", "t5", "mamba"]))
def test_every_allowed_cell_runs_and_exact_ones_agree(kind: str, strategy: str, tmp_path: Path) -> None:
    model, written = tiny.shared(kind), {}
    options = {"draft_head": str(head_checkpoints.eagle(tmp_path))} if strategy == "prediction_heads" else {}
    settings = {"num_beams": 2} if "beam" in strategy else {"num_assistant_tokens": 3, "prompt_lookup_num_tokens": 3}
    if strategy == "diverse_beam_search":
        settings |= {"num_beam_groups": 2, "diversity_penalty": 0.5}
    if strategy == "constrained_beam_search":
        settings["force_words_ids"] = [[7]]
    for cache in core.caches.registry:
        if TABLE.why_not(kind, strategy, cache):
            continue
        config = GenerationConfig(max_new_tokens=10, min_new_tokens=10, **settings)
        drafters = (model,) if core.strategies.registry[strategy].takes_drafters else ()
        request = core.Request(tiny.prompt(), config, strategy, options, cache, drafters=drafters)
        result = core.run(model, request)
        assert result.sequences
        assert result.metrics.cache_peak_bytes > 0
        if core.caches.registry[cache].exact:
            written[cache] = result.sequences
    assert all(sequences == written["dynamic"] for sequences in written.values()), written
