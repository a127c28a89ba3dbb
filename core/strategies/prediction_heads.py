"""Prediction heads: heads on the model's hidden states draft several tokens, from its own checkpoint (MTP) or from
EAGLE.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.core.common.claim import GREEDY_CELL, Claim, ClaimCell
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.parameter import Parameter
from decodescope.core.strategies import speculative as shared
from decodescope.core.strategies.speculative import CHAINS, make_speculative
from decodescope.core.strategies.token_tree import WIDTHS, trees_unsupported_reason
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request

HEAD = Parameter(
    "draft_head", mark("Draft head"), "text", None,
    mark("An EAGLE head made for this model: a folder, or a name on this disk (storyteller-eagle is "
        "included). If empty, the model's own heads draft (MTP)."),
    option=True,
)  # fmt: skip


def heads_unsupported_reason(model: LoadedModel, request: Request | None) -> str | None:
    """Return why no head can draft; None without a request if the checkpoint or this disk has a head made for the
    model.
    """
    from decodescope.core.models.head_detection import has_fitting_head, heads_unsupported_reason

    folder = request.settings.get("draft_head") if request is not None else None
    if request is None and not model.is_encoder_decoder and has_fitting_head(model):
        return None
    return heads_unsupported_reason(model, folder if isinstance(folder, str) else None)


def widths_unsupported_reason(model: LoadedModel, request: Request | None) -> str | None:
    """Return why widths are not supported: branches need the support of a token tree."""
    branches = request is not None and bool(request.settings.get("widths"))
    return trees_unsupported_reason(model, request) if branches else None


def generate_equivalent(request: Request) -> GenerateEquivalent:
    """Return the counterpart: `generate` drafts with a model's own heads, in chains with one token per head."""
    if request.settings.get("draft_head"):
        return GenerateEquivalent(missing=tr("transformers does not draft with EAGLE heads."))
    if request.settings.get("widths"):
        return GenerateEquivalent(missing=tr("transformers verifies drafts only as chains, not as trees."))
    plain = shared.generate_equivalent(request)
    return GenerateEquivalent({**plain.settings, "use_mtp": True}, plain.missing, plain.note)


def _head_name(folder: object) -> str:
    """Return the name of the EAGLE head, or of the model's own heads."""
    return Path(str(folder)).name if folder else tr("The model's own heads")


CLAIMS = (
    Claim(
        name="heads-save-passes",
        title=mark("Prediction heads save passes"),
        plain=mark("A head that predicts from the model’s own states lets the model write several words at a time."),
        exact=mark("Tokens per pass are higher with the model’s prediction heads than with greedy decoding."),
        source="Li, Wei, Zhang, Zhang 2024, EAGLE: Speculative Sampling Requires Rethinking Feature Uncertainty",
        address="https://arxiv.org/abs/2401.15077",
        baseline=GREEDY_CELL,
        tested=ClaimCell(mark("Prediction heads"), {"do_sample": False, "schedule": "constant"}, "prediction_heads"),
        measure="tokens_per_pass", expects="higher", margin=0.3, max_new_tokens=64,
    ),
)  # fmt: skip

STRATEGY = make_speculative(
    "decode_heads",
    name="prediction_heads",
    title=mark("Prediction heads"),
    summary=mark("Small heads on the model's hidden states draft, and the model checks the draft. Needs a model "
        "with such heads (MTP), or an EAGLE head."),
    claims=CLAIMS,
    paper="Li et al. 2024, EAGLE: Speculative Sampling Requires Rethinking Feature Uncertainty",
    aliases=("mtp", "eagle", "multi_token_prediction"),
    order=67,
    drafts_from=lambda options: (_head_name(options.get("draft_head")),),
    needs=CHAINS | {"select"},
    selects=lambda flags: flags.single and flags.heads and not (flags.drafters or flags.lookup or flags.early_exit),
    own=(HEAD, WIDTHS),
    checks=(heads_unsupported_reason, widths_unsupported_reason),
    generate_equivalent=generate_equivalent,
)  # fmt: skip
