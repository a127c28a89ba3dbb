"""Contrastive search: likely tokens that differ from the text so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.core.common.claim import GREEDY_CELL, Claim, ClaimCell
from decodescope.core.common.hf_generation import removed_from_transformers
from decodescope.core.parameter import Parameter
from decodescope.core.strategies.base import CONTRAST, Strategy
from decodescope.core.strategies.parameters import EVERYWHERE, NEW_TOKENS, PENALTIES
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.decoding.step_replayer import StepReplayer
    from decodescope.core.events import Event
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request

ALPHA = Parameter(
    "penalty_alpha", mark("Penalty alpha"), "float", 0.6,
    mark("Penalty for similarity to the text so far. 0 is greedy decoding."),
    minimum=0.0, maximum=1.0, step=0.05,
)  # fmt: skip
CANDIDATES = Parameter(
    "top_k", mark("Candidates (k)"), "int", 4,
    mark("How many of the most likely tokens are compared at every step."),
    minimum=1, maximum=1_000_000, soft_maximum=20, step=1,
)  # fmt: skip


def decode(run: DecodingRun) -> Iterator[Event]:
    """Choose the candidate of the top k with the best score of confidence and novelty."""
    from decodescope.core.decoding.contrastive import decode_contrastive  # torch is loaded only when something runs

    yield from decode_contrastive(run)


def make_replayer(run: DecodingRun) -> StepReplayer:
    """Return the replayer, which uses the recorded penalties."""
    from decodescope.core.decoding.contrastive import ContrastiveReplay  # torch is loaded only when something runs

    return ContrastiveReplay(run)


def rejection_reason(model: LoadedModel, request: Request | None) -> str | None:
    """Return why contrastive search is not supported: it needs copies of the cache, which a recurrent state does not
    allow.
    """
    if model.is_recurrent:
        return tr(
            "{model} has a recurrent state instead of a key–value cache; contrastive search must try "
            "several candidates from one cache."
        ).format(model=model.name)
    return None


CLAIMS = (
    Claim(
        name="contrast-repeats-less",
        title=mark("Contrastive search breaks loops"),
        plain=mark("Preferring words that differ from the text so far stops a text from "
            "repeating itself, without any chance."),
        exact=mark("The share of repeated 4-grams is lower with contrastive search (α "
            "0.6, k 4) than with greedy decoding."),
        source="Su, Lan, Wang, Yogatama, Kong, Collier 2022, A Contrastive Framework for Neural Text Generation",
        address="https://arxiv.org/abs/2202.06417",
        baseline=GREEDY_CELL,
        tested=ClaimCell(mark("Contrastive search"), {"penalty_alpha": 0.6, "top_k": 4}, "contrastive"),
        measure="repetition", expects="lower", margin=0.05, max_new_tokens=160,
    ),
)  # fmt: skip

STRATEGY = Strategy(
    name="contrastive",
    title=mark("Contrastive search"),
    summary=mark(
        "Among the likeliest tokens, takes the one least similar to the text so far. Breaks loops without randomness."
    ),
    parameters=(NEW_TOKENS, ALPHA, CANDIDATES, *PENALTIES, *EVERYWHERE),
    decode=decode,
    make_replayer=make_replayer,
    replayable_settings=(ALPHA.name,),
    flags={"do_sample": False, "num_beams": 1, "dola_layers": None},
    defaults={"penalty_alpha": 0.6, "top_k": 4},
    claims=CLAIMS,
    paper="Su et al. 2022, A Contrastive Framework for Neural Text Generation",
    aliases=("contrastive_search",),
    order=30,
    group=CONTRAST,
    is_compared_by_default=True,
    selects=lambda flags: flags.contrasts and not (flags.samples or flags.beams or flags.forced),
    needs=frozenset({"reorder"}),
    rows=lambda config, vocabulary: min(int(config.top_k or 1), vocabulary),
    rejection_reason=rejection_reason,
    generate_equivalent=lambda request: removed_from_transformers(tr("contrastive search")),
)
