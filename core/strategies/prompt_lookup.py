"""Prompt lookup: draft from the text itself."""

from __future__ import annotations

from decodescope.core.common.claim import GREEDY_CELL, Claim, ClaimCell
from decodescope.core.parameter import Parameter
from decodescope.core.strategies.speculative import make_speculative, text_draft_source
from decodescope.resources.language import mark

TOKENS = Parameter(
    "prompt_lookup_num_tokens", mark("Copied tokens"), "int", 10,
    mark("Maximum number of tokens to copy from earlier text per round."),
    minimum=1, maximum=256, soft_maximum=20, step=1,
)  # fmt: skip
NGRAM = Parameter(
    "max_matching_ngram_size", mark("Longest match"), "int", 3,
    mark("Maximum number of recent tokens to match; shorter matches are tried if there is none."),
    minimum=1, maximum=64, soft_maximum=8, step=1,
)  # fmt: skip

CLAIMS = (
    Claim(
        name="lookup-saves-passes",
        title=mark("Copying saves passes on repetition"),
        plain=mark("Where a text repeats what was said before, copying it and checking the "
            "copy writes several words at a time."),
        exact=mark("On prompts that repeat themselves, tokens per pass are higher with prompt "
            "lookup (10 tokens) than with greedy decoding."),
        source="Saxena 2023, Prompt Lookup Decoding",
        address="https://github.com/apoorvumang/prompt-lookup-decoding",
        baseline=GREEDY_CELL,
        tested=ClaimCell(
            mark("Prompt lookup"), {"prompt_lookup_num_tokens": 10, "schedule": "constant"}, "prompt_lookup"
        ),
        measure="tokens_per_pass", expects="higher", margin=0.5, max_new_tokens=48, prompts="repetitive",
    ),
)  # fmt: skip

STRATEGY = make_speculative(
    "decode_lookup",
    name="prompt_lookup",
    title=mark("Prompt lookup"),
    summary=mark("Copies what followed the same words before and checks it in one pass. Needs no second model."),
    defaults={"prompt_lookup_num_tokens": 10, "max_matching_ngram_size": 3},
    claims=CLAIMS,
    paper="Saxena 2023, Prompt Lookup Decoding",
    aliases=("prompt_lookup_decoding",),
    order=62,
    drafts_from=text_draft_source,
    selects=lambda flags: flags.single and flags.lookup and not flags.drafters,
    own=(TOKENS, NGRAM),
    lengths=(),
)
