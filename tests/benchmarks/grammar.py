"""Cost of a grammar: a story card by JSON schema, against the same number of tokens without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from decodescope import core
from tests.benchmarks.timing import speed_ratio

PROMPT = "Once upon a time, there was a little fox named Mia. She lived in a den under the hill."
TOKENS = 120
STORY = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "animal": {"enum": ["cat", "dog", "fox", "owl"]},
        "place": {"type": "string", "minLength": 200},
    },
    "required": ["name", "animal", "place"],
    "additionalProperties": False,
}
"""Its last field is longer than the run, so that both write as many tokens."""


def measure(quick: bool = False) -> dict[str, float]:
    """Tokens/s with a grammar ÷ without, on the same number of tokens; the grammar is compiled in the first round."""
    torch.set_num_threads(1)  # as the program does for models this small
    model = core.load("storyteller")
    tokens = 40 if quick else TOKENS
    ruled = {"grammar": {"json_schema": STORY}}

    def written(strategy: str, options: dict[str, Any]) -> Callable[[], object]:
        settings = {"max_new_tokens": tokens, "eos_token_id": [model.vocabulary + 1]}  # to the limit, both
        return lambda: core.run(model, core.Request(PROMPT, settings, strategy, options))

    return {
        f"grammar ÷ none, {name}": speed_ratio(written(name, ruled), written(name, {}), 3 if quick else 9)
        for name in ("greedy", "sampling")
    }
