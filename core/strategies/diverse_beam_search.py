"""Diverse beam search: groups of beams, each penalized for repeating tokens chosen by earlier groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.core.common.claim import Claim, ClaimCell
from decodescope.core.common.hf_generation import removed_from_transformers
from decodescope.core.parameter import Parameter
from decodescope.core.strategies.base import Strategy, beam_rows
from decodescope.core.strategies.beam_search import rejection_reason
from decodescope.core.strategies.parameters import BEAM_SETTINGS, EVERYWHERE, NEW_TOKENS, PENALTIES
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.events import Event

GROUPS = Parameter(
    "num_beam_groups", mark("Groups"), "int", 4,
    mark("Number of groups that the beams are divided into; they choose one after another at every step."),
    minimum=1, maximum=100_000, soft_maximum=16, step=1,
)  # fmt: skip
DIVERSITY = Parameter(
    "diversity_penalty", mark("Diversity penalty"), "float", 1.0,
    mark("How much a token's log-probability is reduced for every beam of an earlier group that chose it at "
        "this step."),
    minimum=0.0, maximum=1000.0, soft_maximum=3.0, step=0.1,
)  # fmt: skip


def decode(run: DecodingRun) -> Iterator[Event]:
    """Search the groups in turn, with Hamming diversity."""
    from decodescope.core.decoding.beams.beam_search import (  # torch is loaded only when something runs
        BeamPlan,
        decode_beams,
    )

    groups, penalty = int(run.settings.get("num_beam_groups") or 1), float(run.settings.get("diversity_penalty") or 0.0)
    yield from decode_beams(run, BeamPlan(groups=groups, diversity_penalty=penalty, ended_beams_count=True))


CLAIMS = (
    Claim(
        name="groups-differ-more",
        title=mark("Groups of beams differ more"),
        plain=mark("Steering each group of beams away from the others gives answers that "
            "differ more than those of ordinary beams."),
        exact=mark("The share of distinct pairs of tokens in four texts is higher with four "
            "groups (penalty 1) than with four beams."),
        source="Vijayakumar, Cogswell, Selvaraju, Sun, Lee, Crandall, Batra 2018, Diverse Beam Search",
        address="https://arxiv.org/abs/1610.02424",
        baseline=ClaimCell(
            mark("4 beams"), {"do_sample": False, "num_beams": 4, "num_return_sequences": 4}, "beam_search"
        ),
        tested=ClaimCell(
            mark("4 groups"),
            {"num_beams": 4, "num_beam_groups": 4, "diversity_penalty": 1.0, "num_return_sequences": 4},
            "diverse_beam_search",
        ),
        measure="distinct_2", expects="higher", margin=0.05, max_new_tokens=48,
    ),
)  # fmt: skip

STRATEGY = Strategy(
    name="diverse_beam_search",
    title=mark("Diverse beam search"),
    summary=mark("Beams in groups, each steered away from the words earlier groups chose. Answers that really differ."),
    parameters=(NEW_TOKENS, BEAM_SETTINGS[0], GROUPS, DIVERSITY, *BEAM_SETTINGS[1:], *PENALTIES, *EVERYWHERE),
    decode=decode,
    flags={
        "do_sample": False,
        "penalty_alpha": None,
        "dola_layers": None,
        "force_words_ids": None,
        "constraints": None,
    },
    defaults={"num_beams": 4, "num_beam_groups": 4, "diversity_penalty": 1.0},
    claims=CLAIMS,
    paper="Vijayakumar et al. 2018, Diverse Beam Search for Improved Description of Complex Scenes",
    aliases=("group_beam_search",),
    order=70,
    selects=lambda flags: flags.searches and flags.groups,
    needs=frozenset({"reorder"}),
    rows=beam_rows,
    rejection_reason=rejection_reason,
    generate_equivalent=lambda request: removed_from_transformers(tr("beam groups")),
)
