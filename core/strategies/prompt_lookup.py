"""Prompt lookup: draft from the text itself."""

from __future__ import annotations

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

STRATEGY = make_speculative(
    "decode_lookup",
    name="prompt_lookup",
    title=mark("Prompt lookup"),
    summary=mark("Copies what followed the same words before and checks it in one pass. Needs no second model."),
    defaults={"prompt_lookup_num_tokens": 10, "max_matching_ngram_size": 3},
    paper="Saxena 2023, Prompt Lookup Decoding",
    aliases=("prompt_lookup_decoding",),
    order=62,
    drafts_from=text_draft_source,
    selects=lambda flags: flags.single and flags.lookup and not flags.drafters,
    own=(TOKENS, NGRAM),
    lengths=(),
)
