"""`transformers serve`, which accepts settings as a GenerationConfig."""

from __future__ import annotations

import json

from decodescope.core.parameter import Settings
from decodescope.core.remote.engines.base import Body, EngineKind

_GENERATION_CONFIG_SETTINGS = (
    "max_new_tokens", "temperature", "top_p", "top_k", "min_p", "typical_p", "top_h", "epsilon_cutoff", "eta_cutoff",
    "repetition_penalty", "no_repeat_ngram_size", "min_new_tokens", "min_length", "eos_token_id", "bad_words_ids",
    "suppress_tokens", "begin_suppress_tokens", "sequence_bias", "forced_bos_token_id", "forced_eos_token_id",
    "exponential_decay_length_penalty", "remove_invalid_values", "renormalize_logits",
)  # fmt: skip


def build_settings(settings: Settings, samples: bool, seed: int) -> Body:
    """Return the settings as one JSON text in the form of transformers' GenerationConfig."""
    own = {**settings, "do_sample": samples}
    stops = {"stop": own.pop("stop_strings")} if own.get("stop_strings") else {}
    return {**stops, **({"seed": seed % 2**32} if samples else {}), "generation_config": json.dumps(own)}


ENGINE = EngineKind(
    "transformers",
    "transformers serve",
    {name: name for name in (*_GENERATION_CONFIG_SETTINGS, "stop_strings")},
    unique_paths=frozenset({"/load_model", "/reset"}),
    list_may_fail=True,  # if no model was ever downloaded
    loads_any_model=True,
    build_settings=build_settings,
    order=50,
)
