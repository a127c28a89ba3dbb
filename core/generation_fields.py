"""Classify the fields of transformers' GenerationConfig: what a run does with each. Imports neither torch nor
transformers.

`tests/core/test_generation_fields.py` compares these sets with the fields of the installed release. A field that
belongs to no set is named in a notice when a request sets it, so a later release cannot add one that is silent.
"""

from __future__ import annotations

from collections.abc import Mapping

from resources.language import mark

METADATA_FIELDS = frozenset({
    "transformers_version", "_from_model_config", "_commit_hash", "_original_object_hash",
})  # fmt: skip
"""Where a configuration comes from. It sets nothing."""

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
"""Fields that models of speech read; they are attributes of a GenerationConfig only where somebody sets them."""

WITHOUT_EFFECT: Mapping[str, str] = {
    "use_cache": mark("runs keep what they have read wherever the model can, and write the same text"),
    "cache_config": mark("a cache is configured by the request's cache_options"),
    "max_cache_len": mark("a cache of fixed size gets the size that the run needs"),
    "output_attentions": mark("a run emits events; core.attention reads attention"),
    "output_hidden_states": mark("a run emits events; core.lens reads hidden states"),
    "output_scores": mark("a run emits events, with the probabilities of each step"),
    "output_logits": mark("a run emits events, with the probabilities of each step"),
    "return_dict_in_generate": mark("a run emits events"),
    "pad_token_id": mark("no text of a run is padded"),
    "is_assistant": mark("draft models are the request's drafters"),
    "assistant_lookbehind": mark("drafts of another tokenizer are aligned by their bytes"),
    "target_lookbehind": mark("drafts of another tokenizer are aligned by their bytes"),
    "assistant_ensemble_weight": mark("drafts are verified without loss: the text has the model's own distribution"),
    "speculation_type": mark("the strategy and the draft models decide how tokens are drafted"),
    "compile_config": mark("the program decides which steps are compiled"),
    "disable_compile": mark("the program decides which steps are compiled"),
    "continuous_batching_config": mark("a request is one run"),
    "low_memory": mark("all beams of a step are read in one pass"),
}
"""Fields that no run reads, with the reason, as the second half of a sentence."""

KNOWN_FIELDS = (
    METADATA_FIELDS | COMMON_FIELDS | PROCESSOR_FIELDS | STRATEGY_FIELDS | SPEECH_FIELDS | WITHOUT_EFFECT.keys()
)
