"""Constrained beam search: likely texts that contain required phrases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.core.common.hf_generation import removed_from_transformers
from decodescope.core.parameter import Parameter
from decodescope.core.strategies.base import Strategy, beam_rows
from decodescope.core.strategies.beam_search import rejection_reason
from decodescope.core.strategies.parameters import BEAM_SETTINGS, EVERYWHERE, NEW_TOKENS, PENALTIES
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.events import Event

MUST_CONTAIN = Parameter(
    "must_contain", mark("Must contain"), "text", "",
    mark("Words the text must contain. Separate them with commas; a bar offers alternatives, as in “dragon "
        "| knight, lived happily”. Words in the prompt do not count."),
    option=True,
)  # fmt: skip
FORCE_WORDS = Parameter(
    "force_words_ids", mark("Must contain (token ids)"), "tokens", None,
    mark("The same as token ids: a list of phrases, or of lists of alternative phrases. The prompt does not count."),
    form="alternatives", advanced=True,
)  # fmt: skip
POOL = Parameter(
    "pool", mark("Candidates"), "choice", "auto",
    mark("paper: every beam keeps its best continuation, so that constraints met early can still win (Post "
        "and Vilar). transformers: like its version 4. auto: paper for words, transformers for token ids."),
    choices=("auto", "paper", "transformers"), option=True, advanced=True,
)  # fmt: skip


def decode(run: DecodingRun) -> Iterator[Event]:
    """Search with banks by the number of constraint tokens met."""
    from decodescope.core.decoding.beams.beam_search import decode_beams
    from decodescope.core.decoding.beams.constrained_search import (
        plan_constrained_search,  # torch is loaded only when something runs
    )

    yield from decode_beams(run, plan_constrained_search(run))


STRATEGY = Strategy(
    name="constrained_beam_search",
    title=mark("Constrained beam search"),
    summary=mark("Beam search in which every result contains the required words."),
    parameters=(NEW_TOKENS, MUST_CONTAIN, *BEAM_SETTINGS, *PENALTIES, FORCE_WORDS, POOL, *EVERYWHERE),
    decode=decode,
    flags={"do_sample": False, "num_beam_groups": 1, "penalty_alpha": None, "dola_layers": None},
    defaults={"num_beams": 4},
    paper="Post and Vilar 2018, Fast Lexically Constrained Decoding with Dynamic Beam Allocation; "
    "Anderson et al. 2017, Guided Open Vocabulary Image Captioning with Constrained Beam Search",
    aliases=("constrained",),
    order=80,
    required_settings=("must_contain", "force_words_ids"),
    selects=lambda flags: flags.forced,
    needs=frozenset({"reorder"}),
    rows=beam_rows,
    rejection_reason=rejection_reason,
    generate_equivalent=lambda request: removed_from_transformers(tr("constrained beam search")),
)
