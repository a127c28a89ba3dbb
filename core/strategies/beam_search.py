"""Beam search: several hypotheses at once; the most likely full text wins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.core.common.claim import GREEDY_CELL, Claim, ClaimCell
from decodescope.core.strategies.base import Strategy, beam_rows
from decodescope.core.strategies.parameters import BEAM_SETTINGS, EVERYWHERE, NEW_TOKENS, PENALTIES
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.events import Event
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request


def decode(run: DecodingRun) -> Iterator[Event]:
    """Keep the best continuations of all hypotheses at every step."""
    from decodescope.core.decoding.beams.beam_search import (  # torch is loaded only when something runs
        BeamPlan,
        decode_beams,
    )

    yield from decode_beams(run, BeamPlan())


def rejection_reason(model: LoadedModel, request: Request | None) -> str | None:
    """Return why beams are not supported: they need a cache or state that transformers can reorder."""
    if model.model._supports_default_dynamic_cache():
        return None
    return tr("{model} uses its own kind of cache, whose rows cannot be reordered as beam search requires.").format(
        model=model.name
    )


CLAIMS = (
    Claim(
        name="beams-find-likelier-texts",
        title=mark("Beams find likelier texts"),
        plain=mark("Following several texts at once finds a text that the model considers "
            "likelier than the one word by word."),
        exact=mark("The log-probability of the whole text is higher with 4 beams (no "
            "length penalty) than with greedy decoding."),
        source="Freitag, Al-Onaizan 2017, Beam Search Strategies for Neural Machine Translation",
        address="https://arxiv.org/abs/1702.01806",
        baseline=GREEDY_CELL,
        tested=ClaimCell(mark("4 beams"), {"do_sample": False, "num_beams": 4, "length_penalty": 0.0}, "beam_search"),
        measure="text_log_probability", expects="higher", margin=1.0, max_new_tokens=64,
    ),
    Claim(
        name="beams-prefer-short-texts",
        title=mark("Beams prefer short texts"),
        plain=mark("Because each further word makes a text less likely, searching for "
            "the likeliest text finds short ones."),
        exact=mark("Without a length penalty, texts of 4 beams have fewer tokens than greedy ones."),
        source="Murray, Chiang 2018, Correcting Length Bias in Neural Machine Translation",
        address="https://arxiv.org/abs/1808.10006",
        baseline=GREEDY_CELL,
        tested=ClaimCell(mark("4 beams"), {"do_sample": False, "num_beams": 4, "length_penalty": 0.0}, "beam_search"),
        measure="length", expects="lower", margin=3.0, max_new_tokens=200,
    ),
)  # fmt: skip

STRATEGY = Strategy(
    name="beam_search",
    title=mark("Beam search"),
    summary=mark("Follows several texts at once and returns the most likely full text, not the most likely next "
        "word."),
    parameters=(NEW_TOKENS, *BEAM_SETTINGS, *PENALTIES, *EVERYWHERE),
    decode=decode,
    flags={
        "do_sample": False, "num_beam_groups": 1, "penalty_alpha": None, "dola_layers": None, "force_words_ids": None,
        "constraints": None,
    },
    defaults={"num_beams": 4},
    claims=CLAIMS,
    paper="Freitag and Al-Onaizan 2017, Beam Search Strategies for Neural Machine Translation",
    aliases=("beam",),
    order=50,
    is_compared_by_default=True,
    selects=lambda flags: flags.searches and not flags.groups and not flags.samples,
    needs=frozenset({"reorder"}),
    rows=beam_rows,
    rejection_reason=rejection_reason,
)  # fmt: skip
