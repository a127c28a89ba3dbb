"""The fields of transformers' GenerationConfig: their defaults, and where a run uses them. Imports no torch."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from transformers import GenerationConfig

DEFAULTS: dict[str, object] = {
    "max_length": 20, "min_length": 0, "do_sample": False, "use_cache": True, "early_stopping": False, "num_beams": 1,
    "num_beam_groups": 1, "diversity_penalty": 0.0, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "typical_p": 1.0,
    "repetition_penalty": 1.0, "length_penalty": 1.0, "no_repeat_ngram_size": 0, "encoder_no_repeat_ngram_size": 0,
    "num_return_sequences": 1, "remove_invalid_values": False, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0,
    "encoder_repetition_penalty": 1.0, "renormalize_logits": False, "num_assistant_tokens": 20,
    "num_assistant_tokens_schedule": "constant", "assistant_confidence_threshold": 0.4,
}  # fmt: skip
"""The defaults of transformers 5 for settings that neither the user nor the model sets."""

_NOT_SETTINGS = {
    "transformers_version", "max_length", "bos_token_id", "pad_token_id", "decoder_start_token_id", "output_scores",
    "output_logits", "output_attentions", "output_hidden_states", "return_dict_in_generate", "_from_model_config",
    "alignment_heads", "is_multilingual", "lang_to_id", "max_initial_timestamp_index", "median_filter_width",
    "no_timestamps_token_id", "prev_sot_token_id", "return_timestamps", "task_to_id",
}  # fmt: skip


def non_default(config: GenerationConfig) -> dict[str, object]:
    """Return the settings of a resolved configuration that differ from the library's defaults, by name."""
    return {
        name: value
        for name, value in sorted(config.to_dict().items())
        if value is not None and name not in _NOT_SETTINGS and DEFAULTS.get(name) != value
    }


METADATA_FIELDS = frozenset({
    "transformers_version", "_from_model_config", "_commit_hash", "_original_object_hash",
})  # fmt: skip
"""Origin of a configuration; these have no effect."""

COMMON_FIELDS = frozenset({
    "max_length", "max_new_tokens", "max_time", "stop_strings", "do_sample", "num_beams", "num_beam_groups",
    "num_return_sequences", "use_mtp", "eos_token_id", "bos_token_id", "decoder_start_token_id", "penalty_alpha",
    "dola_layers", "prompt_lookup_num_tokens", "assistant_early_exit", "constraints", "force_words_ids",
    "cache_implementation", "token_healing", "prefill_chunk_size",
})  # fmt: skip
"""Fields that every run reads: limits, first and last tokens, and the flags that select a strategy."""

PROCESSOR_FIELDS = frozenset({
    "min_length", "min_new_tokens", "temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff",
    "eta_cutoff", "repetition_penalty", "encoder_repetition_penalty", "no_repeat_ngram_size", "bad_words_ids",
    "renormalize_logits", "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens", "sequence_bias", "guidance_scale",
    "watermarking_config", "encoder_no_repeat_ngram_size",
})  # fmt: skip
"""Fields that logits processors read (`core.processors`)."""

STRATEGY_FIELDS = frozenset({
    "early_stopping", "length_penalty", "diversity_penalty", "num_assistant_tokens", "num_assistant_tokens_schedule",
    "assistant_confidence_threshold", "max_matching_ngram_size",
})  # fmt: skip
"""Fields that some strategies read (`Strategy.parameters`)."""

SPEECH_FIELDS = frozenset({"language", "task", "return_timestamps"})
"""Fields read by speech models; a GenerationConfig has these attributes only if they were set."""

WITHOUT_EFFECT: Mapping[str, str] = {
    "use_cache": mark("the cache is used wherever the model supports it; the text is the same"),
    "cache_config": mark("a cache is configured by the request's cache_options"),
    "max_cache_len": mark("a static cache is allocated with the size that the run needs"),
    "output_attentions": mark("a run emits events; decodescope.attention reads attention"),
    "output_hidden_states": mark("a run emits events; decodescope.lens reads hidden states"),
    "output_scores": mark("a run emits events, with the probabilities of each step"),
    "output_logits": mark("a run emits events, with the probabilities of each step"),
    "return_dict_in_generate": mark("a run emits events"),
    "pad_token_id": mark("sequences of a run are not padded"),
    "is_assistant": mark("draft models are the request's drafters"),
    "assistant_lookbehind": mark("drafts of another tokenizer are aligned by their bytes"),
    "target_lookbehind": mark("drafts of another tokenizer are aligned by their bytes"),
    "assistant_ensemble_weight": mark("drafts are verified without loss: the text has the model's own distribution"),
    "speculation_type": mark("the strategy and the draft models decide how tokens are drafted"),
    "compile_config": mark("the program decides which steps are compiled"),
    "disable_compile": mark("the program decides which steps are compiled"),
    "continuous_batching_config": mark("a request is always one run"),
    "low_memory": mark("all beams of a step are processed in one pass"),
}
"""Fields that no run reads, with the reason, as the second half of a sentence."""

KNOWN_FIELDS = (
    METADATA_FIELDS | COMMON_FIELDS | PROCESSOR_FIELDS | STRATEGY_FIELDS | SPEECH_FIELDS | WITHOUT_EFFECT.keys()
)


def generation_fields() -> frozenset[str]:
    """Return the field names of a GenerationConfig, including those of the installed transformers if it is imported."""
    module = sys.modules.get("transformers.generation.configuration_utils")
    config = getattr(module, "GenerationConfig", None)
    is_importing = getattr(getattr(module, "__spec__", None), "_initializing", False)  # in another thread
    return KNOWN_FIELDS if config is None or is_importing else _fields_of(config, config.__init__)


@functools.cache
def _fields_of(config: Callable[[], object], _initializer: object) -> frozenset[str]:
    return KNOWN_FIELDS | vars(config()).keys()


def to_generation_config(settings: Mapping[str, object]) -> GenerationConfig:
    """Return settings as transformers' own class, unchecked; fields that are not given are None."""
    from transformers import GenerationConfig  # loads torch

    config: GenerationConfig = GenerationConfig()
    for name, value in settings.items():
        setattr(config, name, value)
    return config


class GenerateEquivalent(NamedTuple):
    """The arguments of `generate` for a strategy or cache, besides the settings with the same names."""

    settings: Mapping[str, object] = MappingProxyType({})
    missing: str = ""
    """Why `generate` has no equivalent, as a sentence; empty if it has one."""
    note: str = ""
    """Differences from `generate`, as sentences."""


SAME_SETTINGS = GenerateEquivalent()


def removed_from_transformers(title: str) -> GenerateEquivalent:
    """Return the equivalent of a strategy that was removed after transformers 4."""
    return GenerateEquivalent(missing=tr("transformers 5 no longer contains {title}.").format(title=title))
