"""Settings that several strategies share; names are GenerationConfig's own."""

from __future__ import annotations

from core.parameter import Parameter

NEW_TOKENS = Parameter(
    "max_new_tokens", "New tokens", "int", 120,
    "The most tokens to write. The run also ends when the model writes its end token.",
    minimum=1, maximum=1_000_000, soft_maximum=400, step=1,
)  # fmt: skip

TEMPERATURE = Parameter(
    "temperature", "Temperature", "float", 1.0,
    "Below 1 the likely tokens gain, above 1 the unlikely ones do. Near 0 it is greedy decoding.",
    minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.05, exclusive=True,
)  # fmt: skip
TOP_K = Parameter(
    "top_k", "Top-k", "int", 50,
    "Keep only the k most likely tokens. 0 switches it off.",
    minimum=0, maximum=1_000_000, soft_maximum=100, step=1, unset=0,
)  # fmt: skip
TOP_P = Parameter(
    "top_p", "Top-p", "float", 1.0,
    "Keep the smallest set of likeliest tokens that together hold at least this share. 1 switches it off.",
    minimum=0.0, maximum=1.0, step=0.01,
)  # fmt: skip
MIN_P = Parameter(
    "min_p", "Min-p", "float", None,
    "Keep tokens at least this share as likely as the likeliest one.",
    minimum=0.0, maximum=1.0, step=0.01, unset=0.0,
)  # fmt: skip
TOP_H = Parameter(
    "top_h", "Top-H", "float", None,
    "Keep the likeliest tokens until their entropy reaches this share of the whole distribution's entropy.",
    minimum=0.0, maximum=1.0, step=0.01, exclusive=True, advanced=True,
)  # fmt: skip
TYPICAL_P = Parameter(
    "typical_p", "Typical", "float", 1.0,
    "Keep the tokens whose surprise is closest to the average surprise, up to this share. 1 switches it off.",
    minimum=0.0, maximum=1.0, step=0.01, exclusive=True, advanced=True,
)  # fmt: skip
EPSILON = Parameter(
    "epsilon_cutoff", "Epsilon cut-off", "float", 0.0,
    "Cut every token less likely than this. 0 switches it off; 0.0003 to 0.0009 is usual.",
    minimum=0.0, maximum=1.0, soft_maximum=0.01, step=0.0001, advanced=True,
)  # fmt: skip
ETA = Parameter(
    "eta_cutoff", "Eta cut-off", "float", 0.0,
    "Cut unlikely tokens, more of them when the model is sure. 0 switches it off; 0.0003 to 0.002 is usual.",
    minimum=0.0, maximum=1.0, soft_maximum=0.01, step=0.0001, advanced=True,
)  # fmt: skip
SAMPLING = (TEMPERATURE, TOP_P, TOP_K, MIN_P)
SAMPLING_ADVANCED = (TYPICAL_P, TOP_H, EPSILON, ETA)

REPETITION = Parameter(
    "repetition_penalty", "Repetition penalty", "float", 1.0,
    "Above 1, tokens already in the text lose likelihood. 1 is no penalty.",
    minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.01, exclusive=True,
)  # fmt: skip
NO_REPEAT = Parameter(
    "no_repeat_ngram_size", "No repeated n-gram", "int", 0,
    "No run of this many tokens may come twice. 0 switches it off.",
    minimum=0, maximum=1000, soft_maximum=10, step=1,
)  # fmt: skip
MIN_NEW_TOKENS = Parameter(
    "min_new_tokens", "At least", "int", None,
    "The end token is forbidden until this many tokens are written.",
    minimum=0, maximum=1_000_000, soft_maximum=400, step=1, advanced=True, unset=0,
)  # fmt: skip
MAX_TIME = Parameter(
    "max_time", "Time limit (s)", "float", None,
    "Stop after this many seconds; the token under way is still finished.",
    minimum=0.0, maximum=86_400.0, soft_maximum=60.0, step=0.5, exclusive=True, advanced=True,
)  # fmt: skip
STOP_STRINGS = Parameter(
    "stop_strings", "Stop at text", "lines", None,
    "Stop as soon as one of these is written, one a line.", advanced=True,
)  # fmt: skip
SEQUENCE_BIAS = Parameter(
    "sequence_bias", "Sequence bias", "tokens", None,
    "Make phrases likelier or less likely: list of [[token ids], bias].", advanced=True,
)  # fmt: skip
BAD_WORDS = Parameter(
    "bad_words_ids", "Never write", "tokens", None,
    "Phrases that must not appear, one a line, or lists of token ids.", advanced=True,
)  # fmt: skip
ENCODER_REPETITION = Parameter(
    "encoder_repetition_penalty", "Prompt faithfulness", "float", 1.0,
    "Above 1, tokens of the source text gain likelihood (encoder–decoder and prompt alike).",
    minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.01, exclusive=True, advanced=True,
)  # fmt: skip
ENCODER_NO_REPEAT = Parameter(
    "encoder_no_repeat_ngram_size", "No n-gram of the prompt", "int", 0,
    "No run of this many tokens may be copied from the source text. 0 switches it off.",
    minimum=0, maximum=1000, soft_maximum=10, step=1, advanced=True,
)  # fmt: skip
MIN_LENGTH = Parameter(
    "min_length", "Least length with prompt", "int", 0,
    "The end token is forbidden until prompt and text together have this many tokens.",
    minimum=0, maximum=1_000_000, soft_maximum=400, step=1, advanced=True,
)  # fmt: skip
FORCED_BOS = Parameter(
    "forced_bos_token_id", "First token", "int", None,
    "The first token written, by id (translation models use it for the language).",
    minimum=0, maximum=10_000_000, step=1, advanced=True,
)  # fmt: skip
FORCED_EOS = Parameter(
    "forced_eos_token_id", "Last token", "tokens", None,
    "The token written when the length limit is reached, by id.", advanced=True,
)  # fmt: skip
REMOVE_INVALID = Parameter(
    "remove_invalid_values", "Repair invalid numbers", "bool", False,
    "Replace NaN and infinity in the model's output instead of ending the run with an error.", advanced=True,
)  # fmt: skip
DECAY = Parameter(
    "exponential_decay_length_penalty", "Hurry to the end", "tokens", None,
    "[start, factor]: from that many new tokens on, the end token gains likelihood exponentially.", advanced=True,
)  # fmt: skip
SUPPRESS = Parameter(
    "suppress_tokens", "Suppressed tokens", "tokens", None,
    "Token ids that are never written.", advanced=True,
)  # fmt: skip
BEGIN_SUPPRESS = Parameter(
    "begin_suppress_tokens", "Suppressed at the start", "tokens", None,
    "Token ids that are not written first.", advanced=True,
)  # fmt: skip
GUIDANCE = Parameter(
    "guidance_scale", "Guidance", "float", None,
    "Above 1, steer away from what the model would write without the prompt. Twice the work.",
    minimum=0.0, maximum=100.0, soft_maximum=5.0, step=0.1, advanced=True, unset=1.0,
)  # fmt: skip
RENORMALIZE = Parameter(
    "renormalize_logits", "Renormalise", "bool", False,
    "Make the processed scores a distribution again.", advanced=True,
)  # fmt: skip
PENALTIES = (REPETITION, NO_REPEAT)
STOPPING = (MIN_NEW_TOKENS, MIN_LENGTH, MAX_TIME, STOP_STRINGS)
PROCESSING = (
    GUIDANCE, BAD_WORDS, SEQUENCE_BIAS, SUPPRESS, BEGIN_SUPPRESS, ENCODER_REPETITION, ENCODER_NO_REPEAT,
    FORCED_BOS, FORCED_EOS, DECAY, REMOVE_INVALID, RENORMALIZE,
)  # fmt: skip

SEQUENCES = Parameter(
    "num_return_sequences", "Texts at once", "int", 1,
    "How many texts to write side by side from the same prompt.",
    minimum=1, maximum=1_000_000, soft_maximum=8, step=1, advanced=True,
)  # fmt: skip
EOS = Parameter(
    "eos_token_id", "End tokens", "tokens", None,
    "Token ids that end a text; unset, the model's own.", advanced=True,
)  # fmt: skip
EVERYWHERE = (*STOPPING, EOS, *PROCESSING)
"""What every strategy understands besides its own settings."""

BEAMS = Parameter(
    "num_beams", "Beams", "int", 4,
    "How many hypotheses are followed side by side. More find likelier texts and take more work.",
    minimum=1, maximum=100_000, soft_maximum=16, step=1,
)  # fmt: skip
LENGTH_PENALTY = Parameter(
    "length_penalty", "Length penalty", "float", 1.0,
    "Finished texts are ranked by log-probability ÷ length^penalty: above 0 longer ones gain, below 0 shorter ones; "
    "0 ranks by log-probability alone.",
    minimum=-100.0, maximum=100.0, soft_minimum=-2.0, soft_maximum=3.0, step=0.1,
)  # fmt: skip
EARLY_STOPPING = Parameter(
    "early_stopping", "Early stopping", "choice", False,
    "True: stop once as many texts have ended as there are beams. False: stop when none better is likely. "
    "never: stop when none better is possible.",
    choices=(False, True, "never"),
)  # fmt: skip
RETURNED = Parameter(
    "num_return_sequences", "Texts shown", "int", 1,
    "How many of the best texts to return; at most as many as beams.",
    minimum=1, maximum=100_000, soft_maximum=16, step=1,
)  # fmt: skip
BEAM_SETTINGS = (BEAMS, LENGTH_PENALTY, EARLY_STOPPING, RETURNED)
"""What every beam strategy understands."""
