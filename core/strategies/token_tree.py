"""Token trees (SpecInfer): draft several continuations as a tree and verify them in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.common.claim import Claim, ClaimCell
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.parameter import Parameter
from decodescope.core.strategies.speculative import CHAINS, drafters_unsupported_reason, make_speculative
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request

WIDTHS = Parameter(
    "widths", mark("Widths"), "text", None,
    mark("Children of every node at depth 1, 2, …, as in “1 1 3 1 1”. By default the widths depend on the "
        "drafter's uncertainty."),
    option=True, form="ids",
)  # fmt: skip
CHILDREN = Parameter(
    "children", mark("Children"), "choice", "auto",
    mark("likeliest takes the drafter's most likely tokens, drawn samples them; auto takes what the "
        "verifier allows."),
    choices=("auto", "likeliest", "drawn"), option=True, advanced=True,
)  # fmt: skip


def trees_unsupported_reason(model: LoadedModel, request: Request | None) -> str | None:
    """Return why trees are not supported: nodes of one depth need the same position, in the target and in every draft
    model.
    """
    from decodescope.core.decoding.speculation.tree_support import (
        supports_trees,  # a model is given, so torch is loaded
    )

    if model.is_encoder_decoder:
        return tr(
            "{model} assigns positions by token order, so branches cannot share a position. Assisted "
            "decoding with chains works."
        ).format(model=model.name)
    for each in (model, *(request.drafters if request is not None else ())):
        if not supports_trees(each):
            return tr(
                "{model} assigns positions by token order or scores a tree differently than its paths, "
                "so branches cannot share a position. Assisted decoding with chains works."
            ).format(model=each.name)
    return None


CLAIMS = (
    Claim(
        name="trees-accept-more",
        title=mark("Trees accept more than chains"),
        plain=mark("Drafting several continuations at once lets the model accept more words "
            "per check than drafting a single one."),
        exact=mark("Tokens per pass are higher with a draft tree of widths 3 2 1 1 1 than with a "
            "chain of 5 tokens of the same draft model."),
        source="Miao, Oliaro, Zhang et al. 2024, SpecInfer: Accelerating LLM Serving "
            "with Tree-based Speculative Inference",
        address="https://arxiv.org/abs/2305.09781",
        baseline=ClaimCell(
            mark("Chain"), {"do_sample": False, "schedule": "constant", "num_assistant_tokens": 5}, "assisted",
            uses_draft=True,
        ),
        tested=ClaimCell(
            mark("Tree"), {"do_sample": False, "widths": "3 2 1 1 1"}, "token_tree", uses_draft=True
        ),
        measure="tokens_per_pass", expects="higher", margin=0.1, max_new_tokens=64,
    ),
)  # fmt: skip

STRATEGY = make_speculative(
    "decode_tree",
    name="token_tree",
    title=mark("Token tree"),
    summary=mark(
        "Drafts several continuations as a tree and checks all of them in one pass. Misses less than a chain."
    ),
    claims=CLAIMS,
    paper="Miao et al. 2024, SpecInfer: Accelerating LLM Serving with Tree-based Speculative Inference",
    aliases=("specinfer", "tree"),
    order=66,
    takes_drafters=True,
    needs=CHAINS | {"select"},
    own=(WIDTHS,),
    advanced=(CHILDREN,),
    checks=(trees_unsupported_reason, drafters_unsupported_reason),
    generate_equivalent=lambda request: GenerateEquivalent(
        missing=tr("transformers verifies drafts only as chains, not as trees.")
    ),
)
