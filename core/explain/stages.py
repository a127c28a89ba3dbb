"""What a sentence calls a stage of the funnel: in plain words, by its usual name, or by its setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core import processors
from core.explain.sentence import fill
from core.processors.wording import stage_phrase
from resources import depth
from resources.language import mark, tr

if TYPE_CHECKING:
    from core.events import Stage

_PLAIN_NAMES = {
    "temperature": mark("the heat of {v}"),
    "top_k": mark("the rule “only the best {v}”"),
    "top_p": mark("the rule “only the best, until they hold enough”"),
    "min_p": mark("the rule “nothing far behind the best”"),
    "top_h": mark("the rule “only so much doubt”"),
    "typical_p": mark("the rule “nothing too obvious or too odd”"),
    "epsilon_cutoff": mark("the rule “nothing without a real chance”"),
    "eta_cutoff": mark("the rule “nothing without a real chance at this place”"),
    "repetition_penalty": mark("the brake on repeated words"),
    "encoder_repetition_penalty": mark("the pull to the words of the source"),
    "no_repeat_ngram_size": mark("the rule “no words in a row twice”"),
    "encoder_no_repeat_ngram_size": mark("the rule “nothing copied from the source”"),
    "bad_words_ids": mark("the list of forbidden words"),
    "suppress_tokens": mark("the list of what may never be written"),
    "begin_suppress_tokens": mark("the list of what may not come first"),
    "forced_bos_token_id": mark("the fixed beginning"),
    "forced_eos_token_id": mark("the fixed ending"),
    "min_length": mark("the demand for a longer text"),
    "min_new_tokens": mark("the demand for a longer answer"),
    "exponential_decay_length_penalty": mark("the hurry to the end"),
    "guidance_scale": mark("the pull to the prompt"),
    "sequence_bias": mark("the list of wanted and unwanted words"),
    "remove_invalid_values": mark("the repair of broken numbers"),
    "renormalize_logits": mark("the new sharing out"),
    "watermarking_config": mark("the hidden mark"),
    "grammar": mark("the form that was asked for"),
    "dola_layers": mark("the look at the early guess"),
    "dry_multiplier": mark("the brake on repeated passages"),
    "xtc_probability": mark("the dice that take the likeliest away"),
    "top_n_sigma": mark("the rule “only scores close to the best”"),
    "mirostat_tau": mark("the aim of a steady surprise"),
    "dynatemp_high": mark("the heat that follows the doubt"),
    "watermark_bias": mark("the hidden mark"),
    "synthid_length": mark("the hidden mark by contest"),
}


def stage_name(stage: Stage) -> str:
    """Its name within a sentence, at the depth and in the language of now; a stranger's is as it says itself."""
    if depth.current_depth() == depth.EXACT:
        return (
            f"{stage.name} = {_format_value(stage.value)}"
            if stage.value is not None and _has_numeric_setting(stage)
            else stage.name
        )
    if depth.current_depth() == depth.PLAIN and stage.name in _PLAIN_NAMES:
        return fill(tr(_PLAIN_NAMES[stage.name]), v="" if stage.value is None else _format_value(stage.value))
    return stage_phrase(stage)


def _has_numeric_setting(stage: Stage) -> bool:
    """Whether its value is the setting's own; that of a list is how many it holds."""
    known = processors.registry.get(stage.name)
    parameter = known.parameter if known is not None else None
    return parameter is None or parameter.kind in ("int", "float")


def _format_value(value: float) -> str:
    return f"{int(value)}" if value == int(value) else f"{value:g}"
