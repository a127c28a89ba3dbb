"""The cache size computed from config.json equals that of the loaded model's dynamic cache."""

from __future__ import annotations

import pytest

from decodescope import core
from decodescope.core.models import catalog
from decodescope.core.models.model_entry import cache_bytes, fits


def test_size_from_config_equals_the_loaded_models_prediction() -> None:
    (entry,) = [entry for entry in catalog.bundled() if entry.name == "storyteller"]
    model = core.load("storyteller", dtype="float32")
    predicted = core.caches.registry["dynamic"].predict(model, 100, 1, {})
    assert cache_bytes(catalog.read_config(entry.path), 100, 4) == predicted
    assert fits(entry, tokens=100).needed_bytes == fits(entry).needed_bytes + predicted
    assert fits(entry, tokens=100, rows=3).needed_bytes == fits(entry).needed_bytes + 3 * predicted
    assert "for 100 tokens" in fits(entry, tokens=100).sentence


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"n_layer": 2, "n_head": 4, "n_embd": 32}, 2 * 2 * 4 * 10 * 8 * 4),
        ({"text_config": {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "head_dim": 16,
                          "num_key_value_heads": 1}}, 2 * 2 * 1 * 10 * 16 * 4),
        ({"num_hidden_layers": 2, "hidden_size": 32}, 0),
        ({"num_hidden_layers": 2, "num_attention_heads": [4, 2], "hidden_size": 32}, 2 * 2 * 4 * 10 * 8 * 4),
        ({"num_hidden_layers": "two", "num_attention_heads": 4, "hidden_size": 32}, 0),
        ({"num_hidden_layers": True, "num_attention_heads": {}, "hidden_size": None, "text_config": 5}, 0),
    ],
)  # fmt: skip
def test_size_is_computed_from_the_names_of_each_family(config: dict[str, object], expected: int) -> None:
    assert cache_bytes(config, 10) == expected
