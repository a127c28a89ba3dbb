"""Assisted decoding: a small model drafts, the large one checks many tokens in one pass."""

from __future__ import annotations

from core.strategies.speculative import needs_draft, speculative
from resources.language import mark

STRATEGY = speculative(
    "decode_assisted",
    name="assisted",
    title=mark("Assisted decoding"),
    summary=mark("A small draft model runs ahead and the model checks its words in one go. The same text, sooner."),
    paper="Leviathan et al. 2023, Fast Inference from Transformers via Speculative Decoding",
    aliases=("assisted_generation", "speculative"),
    order=60,
    takes_drafters=True,
    selects=lambda flags: flags.single and flags.drafters,
    checks=(needs_draft,),
)
