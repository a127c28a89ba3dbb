"""Early exit: the model's own lower layers draft."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.common.claim import GREEDY_CELL, Claim, ClaimCell
from decodescope.core.parameter import Parameter
from decodescope.core.strategies.speculative import make_speculative
from decodescope.resources.language import mark, tr, trn

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request

LAYERS = Parameter(
    "assistant_early_exit", mark("Draft layers"), "int", 2,
    mark("How many of the model's lowest layers draft, followed by its final norm and head."),
    minimum=1, maximum=1000, soft_maximum=32, step=1,
)  # fmt: skip


def layers_unsupported_reason(model: LoadedModel, request: Request | None) -> str | None:
    """Return why early exit is not supported: it needs a list of layers that can be left early, and fewer draft layers
    than the model has.
    """
    from decodescope.core.decoding.speculation.drafters.model_drafter import supports_early_exit

    if not supports_early_exit(model):
        return tr("{model} has no single stack of layers whose intermediate states its head could read.").format(
            model=model.name
        )
    if model.repeats_layers:
        return tr("{model} runs some of its layers several times, so it cannot be left early.").format(model=model.name)
    requested = (request.settings.get("assistant_early_exit") if request is not None else None) or 1
    if int(requested) >= model.layers:
        return trn(
            "{model} has {layers} layer; drafting with {wanted} would save no time.",
            "{model} has {layers} layers; drafting with {wanted} of them would save no time.",
            model.layers,
        ).format(model=model.name, layers=model.layers, wanted=requested)
    return None


CLAIMS = (
    Claim(
        name="lower-layers-draft",
        title=mark("The lower layers can draft"),
        plain=mark("The lower half of a model often knows the next word already, so it can draft for the whole model."),
        exact=mark("Tokens per pass are higher with drafts of the first two layers than with greedy decoding."),
        source="Elhoushi, Shrivastava, Liskovich et al. 2024, LayerSkip: Enabling Early Exit "
            "Inference and Self-Speculative Decoding",
        address="https://arxiv.org/abs/2404.16710",
        baseline=GREEDY_CELL,
        tested=ClaimCell(
            mark("Early exit"),
            {"assistant_early_exit": 2, "schedule": "constant", "num_assistant_tokens": 3},
            "early_exit",
        ),
        measure="tokens_per_pass", expects="higher", margin=0.2, max_new_tokens=64,
    ),
)  # fmt: skip

STRATEGY = make_speculative(
    "decode_early_exit",
    name="early_exit",
    title=mark("Early exit"),
    summary=mark("The model's lower layers draft, and all its layers check the draft. Needs no second model."),
    defaults={"assistant_early_exit": 2},
    claims=CLAIMS,
    paper="Elhoushi et al. 2024, LayerSkip: Enabling Early Exit Inference and Self-Speculative Decoding",
    aliases=("self_speculative",),
    order=64,
    drafts_from=lambda options: (tr("The lower layers"),),
    selects=lambda flags: flags.single and flags.early_exit and not (flags.drafters or flags.lookup),
    own=(LAYERS,),
    checks=(layers_unsupported_reason,),
)
