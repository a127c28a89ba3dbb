"""What engines there are, and what each of them knows: its names for our settings, and how it is asked for what it
tells. Read from their sources; what an engine is not known to have is not asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_COMMON = {
    "max_new_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop_strings": "stop",
}  # fmt: skip
_MULTIPLE = {"num_return_sequences": "n"}
_GRAMMAR = {"grammar": "grammar"}
"""What an engine calls it hangs on its kind: `core.remote.request_builder`."""
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
"""The value of a setting that does nothing: sent where it is off, for engines have other defaults than we show."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of engine."""

    name: str
    title: str
    settings: Mapping[str, str]
    """Our name of each setting it knows: its own."""
    extras: Mapping[str, object] = field(default_factory=dict)
    """What is sent with every request."""
    no_top_k: int = 0
    """The top-k that cuts nothing."""
    alternatives: int = 0
    """How many tokens of a step it tells at most; 0 where it tells none."""
    chat_alternatives: int = 0
    """The same of its chats."""
    counts_by: str = "logprobs"
    """Field of a request that says how many."""
    in_generate: bool = False
    """Settings go as one JSON text that is transformers' own GenerationConfig."""
    takes_ids: bool = False
    """A prompt may be token ids."""
    tokenizes: bool = False
    """It tells how it cuts a text into tokens: `/tokenize`, and `/detokenize` back."""
    generates: bool = False
    """It has a face of its own that tells more: `/generate`."""
    fails_at_probabilities: bool = False
    """Where it was started without them, asking for them is answered as a fault of its own."""
    scores: bool = False
    """It tells what it holds of a prompt's tokens (`echo`)."""
    whole_text: tuple[str, ...] = ()
    """Its names for how many of the last tokens a penalty reads. Each of them is sent as the length of the longest
    text: -1 is refused, and a larger number is memory that the engine reserves."""
    after_temperature: bool = False
    """What it tells is divided by the temperature already; else it is of the model alone."""


_CHUNK_USAGE = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
_USAGE = {"stream_options": {"include_usage": True}}
_LLAMA_SAMPLERS = ["penalties", "dry", "temperature", "top_k", "top_p", "min_p", "top_n_sigma", "typ_p", "xtc"]
"""Of llama.cpp's stages: that of transformers."""

VLLM = Kind(
    "vllm", "vLLM", {**_COMMON, **_MULTIPLE, **_SERVER_SETTINGS, **_GRAMMAR}, {**_CHUNK_USAGE, "return_token_ids": True},
    no_top_k=-1, alternatives=20, chat_alternatives=20, takes_ids=True, tokenizes=True, scores=True,
)  # fmt: skip
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
"""Its server, which has settings of its own where nothing is said of them: it repeats less, and cuts."""
SERVE = Kind("transformers", "transformers serve", {name: name for name in (*_GENERATION_CONFIG_SETTINGS, "stop_strings")},
             in_generate=True)  # fmt: skip
OTHER = Kind(
    "other", "OpenAI-compatible", {**_COMMON, **_MULTIPLE, **_GRAMMAR}, _USAGE, alternatives=5, chat_alternatives=20
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (VLLM, SGLANG, LLAMA_CPP, LLAMA_CPP_PYTHON, SERVE, OTHER)}
