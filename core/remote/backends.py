"""The supported engines and their capabilities: their names for our settings, and how they report probabilities. Taken
from their sources; undocumented features are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_COMMON = {
    "max_new_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop_strings": "stop",
}  # fmt: skip
_MULTIPLE = {"num_return_sequences": "n"}
_GRAMMAR = {"grammar": "grammar"}
"""The field's name depends on the kind of engine: `core.remote.request_builder.grammar_fields`."""
_SERVER_SETTINGS = {"top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repetition_penalty",
            "min_new_tokens": "min_tokens", "eos_token_id": "stop_token_ids"}  # fmt: skip
_LLAMA_SETTINGS = {
    "top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repeat_penalty", "typical_p": "typical_p",
    "top_n_sigma": "top_n_sigma", "xtc_probability": "xtc_probability", "xtc_threshold": "xtc_threshold",
    "dry_multiplier": "dry_multiplier", "dry_base": "dry_base", "dry_allowed_length": "dry_allowed_length",
    "dry_range": "dry_penalty_last_n",
}  # fmt: skip
_GENERATION_CONFIG_SETTINGS = (
    "max_new_tokens", "temperature", "top_p", "top_k", "min_p", "typical_p", "top_h", "epsilon_cutoff", "eta_cutoff",
    "repetition_penalty", "no_repeat_ngram_size", "min_new_tokens", "min_length", "eos_token_id", "bad_words_ids",
    "suppress_tokens", "begin_suppress_tokens", "sequence_bias", "forced_bos_token_id", "forced_eos_token_id",
    "exponential_decay_length_penalty", "remove_invalid_values", "renormalize_logits",
)  # fmt: skip
OFF_VALUES: Mapping[str, object] = {
    "temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "typical_p": 1.0, "repetition_penalty": 1.0,
    "xtc_probability": 0.0, "dry_multiplier": 0.0, "top_n_sigma": -1.0, "min_new_tokens": 0,
}  # fmt: skip
"""The value at which a setting has no effect. It is sent explicitly, because engines have other defaults than those
shown here.
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of engine and its capabilities."""

    name: str
    title: str
    settings: Mapping[str, str]
    """Supported settings: our name → its name."""
    extras: Mapping[str, object] = field(default_factory=dict)
    """Fields sent with every request."""
    no_top_k: int = 0
    """The top-k value that disables top-k."""
    alternatives: int = 0
    """Maximum number of alternatives per step that it reports; 0 if it reports none."""
    chat_alternatives: int = 0
    """The same for chats."""
    counts_by: str = "logprobs"
    """Request field for the number of alternatives."""
    in_generate: bool = False
    """Whether settings are sent as one JSON text in the form of transformers' GenerationConfig."""
    takes_ids: bool = False
    """Whether a prompt may be token ids."""
    tokenizes: bool = False
    """Whether it has a tokenizer API: `/tokenize` and `/detokenize`."""
    generates: bool = False
    """Whether it has a native API that reports more: `/generate`."""
    fails_at_probabilities: bool = False
    """Whether it answers a request for probabilities with an internal error if they were not enabled at its start."""
    scores: bool = False
    """Whether it reports the probabilities of a prompt's tokens (`echo`)."""
    whole_text: tuple[str, ...] = ()
    """Its fields for the number of last tokens that a penalty covers. Each is sent as the maximum text length: -1 is
    rejected, and a larger number makes the engine reserve memory.
    """
    after_temperature: bool = False
    """Whether reported probabilities are after the temperature; otherwise they are raw."""


_CHUNK_USAGE = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
_USAGE = {"stream_options": {"include_usage": True}}
_LLAMA_SAMPLERS = ["penalties", "dry", "temperature", "top_k", "top_p", "min_p", "top_n_sigma", "typ_p", "xtc"]
"""llama.cpp's samplers in the order of transformers."""

VLLM = Kind(
    "vllm",
    "vLLM",
    {**_COMMON, **_MULTIPLE, **_SERVER_SETTINGS, **_GRAMMAR},
    {**_CHUNK_USAGE, "return_token_ids": True},
    no_top_k=-1,
    alternatives=20,
    chat_alternatives=20,
    takes_ids=True,
    tokenizes=True,
    scores=True,
)
SGLANG = Kind(
    "sglang", "SGLang", {**_COMMON, **_MULTIPLE, **_SERVER_SETTINGS, **_GRAMMAR}, _USAGE, no_top_k=-1, alternatives=20,
    chat_alternatives=20, takes_ids=True, scores=True, after_temperature=True, generates=True,
)  # fmt: skip
LLAMA_CPP = Kind(
    "llama.cpp", "llama.cpp", {**_COMMON, **_LLAMA_SETTINGS, **_GRAMMAR},
    {**_USAGE, "samplers": _LLAMA_SAMPLERS, "timings_per_token": True, "return_tokens": True},
    alternatives=100, chat_alternatives=100, counts_by="n_probs", takes_ids=True, tokenizes=True,
    whole_text=("repeat_last_n", "dry_penalty_last_n"),
)  # fmt: skip
LLAMA_CPP_PYTHON = Kind(
    "llama-cpp-python", "llama-cpp-python",
    {**_COMMON, "top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repeat_penalty", **_GRAMMAR},
    alternatives=100, scores=True, fails_at_probabilities=True,
)  # fmt: skip
"""The llama-cpp-python server, whose own defaults apply to settings that are not sent: it penalizes repetition and
truncates.
"""
SERVE = Kind(
    "transformers",
    "transformers serve",
    {name: name for name in (*_GENERATION_CONFIG_SETTINGS, "stop_strings")},
    in_generate=True,
)
OTHER = Kind(
    "other", "OpenAI-compatible", {**_COMMON, **_MULTIPLE, **_GRAMMAR}, _USAGE, alternatives=5, chat_alternatives=20
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (VLLM, SGLANG, LLAMA_CPP, LLAMA_CPP_PYTHON, SERVE, OTHER)}
