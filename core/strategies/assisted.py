"""Assisted decoding: a small model drafts, and the large one verifies many tokens in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.common.claim import GREEDY_CELL, Claim, ClaimCell
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.parameter import Parameter, Settings
from decodescope.core.strategies import speculative as shared
from decodescope.core.strategies.speculative import drafters_unsupported_reason, make_speculative, text_draft_source
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.request import Request

SEVERAL = Parameter(
    "several", mark("Several drafts"), "choice", "merge",
    mark("merge: all draft models propose in every round, merged into one tree. choose: each round uses the "
        "draft model that has saved most time so far, and occasionally another."),
    choices=("merge", "choose"), option=True,
)  # fmt: skip
LOOKUP = Parameter(
    "with_lookup", mark("Also look up the text"), "bool", False,
    mark("Also drafts from the text so far: what followed the same words before."), option=True,
)  # fmt: skip
EXTRA = Parameter(
    "extra_drafters", mark("Further drafters"), "text", None,
    mark("Names of drafters that need no model and also draft, separated by commas, such as “prompt_lookup”."),
    option=True, advanced=True,
)  # fmt: skip


def other_draft_sources(options: Settings) -> tuple[str, ...]:
    """Return the draft sources besides the draft models, in the order of their numbers."""
    names = dict.fromkeys(str(options.get("extra_drafters") or "").replace(",", " ").split())
    lookup = {"prompt_lookup"} if options.get("with_lookup") else set()
    found = [name for name in names if name not in lookup]
    return (*(text_draft_source(options) if lookup else ()), *found)


def assisted_equivalent(request: Request) -> GenerateEquivalent:
    """Return the counterpart of speculative strategies; none for a model combined with lookup."""
    if request.settings.get("with_lookup"):
        return GenerateEquivalent(missing=tr("transformers drafts with a model or from the text, but not with both."))
    if request.settings.get("extra_drafters"):
        return GenerateEquivalent(missing=tr("transformers does not know these drafters."))
    return shared.generate_equivalent(request)


CLAIMS = (
    Claim(
        name="drafts-keep-the-text",
        title=mark("Drafts do not change the text"),
        plain=mark("Letting a small model run ahead changes nothing in the text: every word "
            "is what the large model would write."),
        exact=mark("Greedy verification: the tokens of assisted decoding equal those of greedy decoding."),
        source="Leviathan, Kalman, Matias 2023, Fast Inference from Transformers via Speculative Decoding",
        address="https://arxiv.org/abs/2211.17192",
        baseline=GREEDY_CELL,
        tested=ClaimCell(
            mark("Assisted"), {"do_sample": False, "schedule": "constant", "num_assistant_tokens": 5}, "assisted",
            uses_draft=True,
        ),
        measure="same_text", expects="equal", margin=0.05, max_new_tokens=64,
    ),
    Claim(
        name="drafts-save-passes",
        title=mark("Drafts save passes of the model"),
        plain=mark("A small model that runs ahead lets the large one write several words at a time."),
        exact=mark("Tokens per pass of the target model are higher with drafts of 5 "
            "tokens than the 1 of greedy decoding."),
        source="Leviathan, Kalman, Matias 2023, Fast Inference from Transformers via Speculative Decoding",
        address="https://arxiv.org/abs/2211.17192",
        baseline=GREEDY_CELL,
        tested=ClaimCell(
            mark("Assisted"), {"do_sample": False, "schedule": "constant", "num_assistant_tokens": 5}, "assisted",
            uses_draft=True,
        ),
        measure="tokens_per_pass", expects="higher", margin=0.5, max_new_tokens=64,
    ),
)  # fmt: skip

STRATEGY = make_speculative(
    "decode_assisted",
    name="assisted",
    title=mark("Assisted decoding"),
    summary=mark(
        "A small draft model runs ahead, and the model checks several of its words at once. Same text, but faster."
    ),
    claims=CLAIMS,
    paper="Leviathan et al. 2023, Fast Inference from Transformers via Speculative Decoding",
    aliases=("assisted_generation", "speculative"),
    order=60,
    drafts_from=other_draft_sources,
    takes_drafters=True,
    selects=lambda flags: flags.single and flags.drafters,
    checks=(drafters_unsupported_reason,),
    own=(SEVERAL, LOOKUP),
    advanced=(EXTRA,),
    generate_equivalent=assisted_equivalent,
)
