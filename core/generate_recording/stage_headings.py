"""Headings of the logits processors that a `generate` call applies: transformers' own ones and those of its caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.decoding.processor_pipeline import StageHeading, build_heading
from core.processors import registry

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from core.events import StageKind

_SETTINGS = {
    "MinLengthLogitsProcessor": ("min_length", "min_length"),
    "MinNewTokensLengthLogitsProcessor": ("min_new_tokens", "min_new_tokens"),
    "TemperatureLogitsWarper": ("temperature", "temperature"),
    "RepetitionPenaltyLogitsProcessor": ("repetition_penalty", "penalty"),
    "EncoderRepetitionPenaltyLogitsProcessor": ("encoder_repetition_penalty", ""),
    "TopPLogitsWarper": ("top_p", "top_p"),
    "TopKLogitsWarper": ("top_k", "top_k"),
    "TopHLogitsWarper": ("top_h", "top_h"),
    "MinPLogitsWarper": ("min_p", "min_p"),
    "TypicalLogitsWarper": ("typical_p", "mass"),
    "EpsilonLogitsWarper": ("epsilon_cutoff", "epsilon"),
    "EtaLogitsWarper": ("eta_cutoff", ""),
    "NoRepeatNGramLogitsProcessor": ("no_repeat_ngram_size", "ngram_size"),
    "EncoderNoRepeatNGramLogitsProcessor": ("encoder_no_repeat_ngram_size", "ngram_size"),
    "SequenceBiasLogitsProcessor": ("sequence_bias", ""),
    "NoBadWordsLogitsProcessor": ("bad_words_ids", ""),
    "ForcedBOSTokenLogitsProcessor": ("forced_bos_token_id", "bos_token_id"),
    "ForcedEOSTokenLogitsProcessor": ("forced_eos_token_id", ""),
    "InfNanRemoveLogitsProcessor": ("remove_invalid_values", ""),
    "ExponentialDecayLengthPenalty": ("exponential_decay_length_penalty", ""),
    "LogitNormalization": ("renormalize_logits", ""),
    "SuppressTokensAtBeginLogitsProcessor": ("begin_suppress_tokens", ""),
    "SuppressTokensLogitsProcessor": ("suppress_tokens", ""),
    "WatermarkLogitsProcessor": ("watermarking_config", ""),
    "SynthIDTextWatermarkLogitsProcessor": ("watermarking_config", ""),
    "UnbatchedClassifierFreeGuidanceLogitsProcessor": ("guidance_scale", "guidance_scale"),
}
"""Class in transformers → (setting that enables it, its attribute with the value or "" to read the configuration)."""


def is_transformers_own(processor: object) -> bool:
    """Return whether the processor is one of transformers' classes, which never modify their input."""
    return type(processor).__module__.startswith("transformers.")


def heading_of(processor: object, config: GenerationConfig) -> StageHeading:
    """Return the heading of a processor: that of its setting, or its class name if no setting enables it."""
    known = _SETTINGS.get(type(processor).__name__) if is_transformers_own(processor) else None
    if known is None:
        name = getattr(processor, "__name__", "") or type(processor).__name__
        return StageHeading(name, name, None, "shift", name)
    setting, attribute = known
    value = getattr(processor, attribute, None) if attribute else getattr(config, setting, None)
    return build_heading(registry[setting], _plain(value))


def with_kind(heading: StageHeading, kind: StageKind) -> StageHeading:
    """Return the heading with another kind."""
    return heading._replace(kind=kind)


def _plain(value: object) -> object:
    """Return the value of a tensor with one element or of a NumPy number; other values unchanged."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "numel", lambda: 1)() == 1 else value
