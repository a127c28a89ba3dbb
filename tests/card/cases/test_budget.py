"""The budget of a token in steady state: waits of the host, blocking uploads, launches.

Counted on a tiny model with four layers: a wait or an upload in every layer shows as four. What drafting costs per
token depends on the tokens of a round; the draft model is similar enough for three and more.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import pytest
from transformers import GenerationConfig

from decodescope import core
from tests.card import matrix
from tests.card.card_counts import Counts, Totals
from tests.card.pretend_card import PretendCard
from tests.core import tiny

FIRST, MORE = 20, 32
"""New tokens of the first run, which is subtracted, and further ones of the second: two measurements of the cache."""


class Budget(NamedTuple):
    """Limits per token."""

    waits: float
    uploads: float = 0.0
    launches: float = float("inf")
    """Kernels and graphs."""
    graphs: float = 0.0
    """Minimum of graphs among the launches."""


GREEDY: dict[str, Any] = {}
DRAFTED = {"num_assistant_tokens": 4, "num_assistant_tokens_schedule": "constant"}
SAMPLING = {"do_sample": True, "top_k": 20, "top_p": 0.9}
ROWS: dict[str, tuple[dict[str, Any], dict[str, Any], Budget]] = {
    "greedy": (GREEDY, {}, Budget(1, 0, 5, 0.9)),
    "greedy, static": (GREEDY, {"cache": "static"}, Budget(1, 0, 5, 0.9)),
    "greedy, compiled": (GREEDY, {"cache": "static", "cache_options": {"compile": True}}, Budget(1, 0, 32)),
    "sampling": (SAMPLING, {}, Budget(1, 0, 80, 0.9)),
    "sampling ×3": ({"do_sample": True, "num_return_sequences": 3}, {}, Budget(1, 0, 65, 0.9)),
    "contrastive": ({"penalty_alpha": 0.6, "top_k": 4}, {}, Budget(1, 0, 68, 0.9)),
    "dola": ({"dola_layers": "low"}, {}, Budget(1, 0, 90, 0.9)),
    "beams": ({"num_beams": 3}, {"strategy": "beam_search"}, Budget(1, 0, 45, 0.9)),
    "diverse": (
        {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.5}, {"strategy": "diverse_beam_search"},
        Budget(4, 0, 180, 0.9),  # each group reads its candidates, and the funnels of its beams with the penalty
    ),
    "constrained": (
        {"num_beams": 3, "force_words_ids": [[11, 12]]}, {"strategy": "constrained_beam_search"}, Budget(2, 0, 75, 0.9),
    ),
    "assisted": (DRAFTED, {"strategy": "assisted"}, Budget(0.7, 0, 30, 0.9)),
    "assisted, static": (DRAFTED, {"strategy": "assisted", "cache": "static"}, Budget(0.7, 0, 30, 0.9)),
    "tree": (DRAFTED, {"strategy": "token_tree"}, Budget(1.3, 0, 36, 0.9)),
    "offloaded": (GREEDY, {"cache": "offloaded"}, Budget(1)),
}  # fmt: skip


def count_per_token(card: PretendCard, row: str, top_n: int) -> tuple[Totals, Counts]:
    """Count a row of `ROWS` per token: the difference of a long and a short run."""
    config, request, _ = ROWS[row]
    model, drafters = matrix.on_card(matrix.host_model("llama")), ()
    if request.get("strategy") in ("assisted", "token_tree"):
        drafters = (matrix.on_card(matrix.host_model("llama", seed=3, noise=0.05)),)
    found = []
    for tokens in (FIRST, FIRST, FIRST + MORE):
        config = GenerationConfig(**{**config, "max_new_tokens": tokens, "eos_token_id": [tiny.VOCABULARY + 5]})
        asked = core.Request(tiny.prompt(), config, top_n=top_n, steady=True, **request)
        config = ROWS[row][0]
        with card.counting() as counts:
            result = core.run(model, asked, drafters=drafters)
        assert len(result.sequences[0]) == tokens
        found.append(counts)
    _, short, long = found
    for name in ("waits", "uploads", "launches", "graphs"):
        getattr(long, name).subtract(getattr(short, name))
    return long.totals(MORE), long


@pytest.mark.every(5)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("top_n", [10, pytest.param(0, marks=pytest.mark.slow)], ids=["traced", "untraced"])
def test_a_token_stays_within_its_budget(card: PretendCard, row: str, top_n: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        totals, counts = count_per_token(card, row, top_n)
    budget = ROWS[row][2]
    graphs = counts.graphs["launch"] / MORE
    print(
        f"{row}: waits {totals.waits:.2f}, uploads {totals.uploads:.2f}, launches {totals.launches:.1f} ({graphs:.2f})"
    )
    within = [found <= limit + 0.2 for found, limit in zip(totals, budget[:3], strict=True)]  # two measurements in 32
    assert all(within), counts.table(MORE)
    assert graphs >= budget.graphs, counts.table(MORE)
