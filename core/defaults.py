"""What a setting is worth where nobody sets it, and which settings of a run differ from that. Knows no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
"""What transformers 5 fills in for settings that neither the user nor the model sets."""

_NOT_SETTINGS = {
    "transformers_version", "max_length", "bos_token_id", "pad_token_id", "decoder_start_token_id", "output_scores",
    "output_logits", "output_attentions", "output_hidden_states", "return_dict_in_generate", "_from_model_config",
    "alignment_heads", "is_multilingual", "lang_to_id", "max_initial_timestamp_index", "median_filter_width",
    "no_timestamps_token_id", "prev_sot_token_id", "return_timestamps", "task_to_id",
}  # fmt: skip


def non_default(config: GenerationConfig) -> dict[str, object]:
    """Settings of a resolved configuration that differ from the library's defaults, by name."""
    return {
        name: value
        for name, value in sorted(config.to_dict().items())
        if value is not None and name not in _NOT_SETTINGS and DEFAULTS.get(name) != value
    }
