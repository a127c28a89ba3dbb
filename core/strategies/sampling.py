"""Multinomial sampling: a weighted die over the processed distribution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.common.hf_generation import SAME_SETTINGS, GenerateEquivalent
from core.parameter import Parameter
from core.strategies.base import Strategy
from core.strategies.parameters import (
    EVERYWHERE,
    NEW_TOKENS,
    PENALTIES,
    SAMPLING,
    SAMPLING_ADVANCED,
    SEQUENCES,
)
from resources.language import mark, tr

if TYPE_CHECKING:
    from core.decoding.run import DecodingRun
    from core.decoding.step_replayer import StepReplayer
    from core.events import Event
    from core.request import Request


SEED_EACH = Parameter(
    "seed_each", mark("A seed for each text"), "bool", False,
    mark("Of several texts, the second is what a run with the next seed writes, and so on. Off: one die is "
         "rolled for all."),
    option=True, advanced=True,
)  # fmt: skip


def decode(run: DecodingRun) -> Iterator[Event]:
    """One draw from the processed distribution at every step, for all sequences as one batch."""
    from core.decoding.token_loop import MultinomialPicker, SeededMultinomialPicker, decode_single

    if not run.request.options.get(SEED_EACH.name, SEED_EACH.default):
        yield from decode_single(run, MultinomialPicker())
        return
    picker = SeededMultinomialPicker(run.request.seed, run.sequences, run.model.device)
    run.rng = picker.uniform
    yield from decode_single(run, picker)


def again(run: DecodingRun) -> StepReplayer:
    """By the dice of all texts, or by the text's own."""
    from core.decoding.step_replayer import StepReplayer  # torch is loaded only when something runs
    from core.decoding.token_loop import SeededReplay

    return SeededReplay(run) if run.request.options.get(SEED_EACH.name, SEED_EACH.default) else StepReplayer(run)


def counterpart(request: Request) -> GenerateEquivalent:
    """`generate` rolls one die for all texts of a batch."""
    own = request.options.get(SEED_EACH.name) and (request.asked("num_return_sequences") or 1) > 1
    return (
        GenerateEquivalent(missing=tr("each text has a seed of its own, and it rolls one die for all."))
        if own
        else SAME_SETTINGS
    )


STRATEGY = Strategy(
    name="sampling",
    title=mark("Sampling"),
    summary=mark("Rolls a die weighted by the probabilities, so every run can tell another story."),
    parameters=(NEW_TOKENS, *SAMPLING, *PENALTIES, SEQUENCES, SEED_EACH, *SAMPLING_ADVANCED, *EVERYWHERE),
    decode=decode,
    again=again,
    counterpart=counterpart,
    flags={"do_sample": True, "num_beams": 1, "penalty_alpha": None, "dola_layers": None},
    paper="Holtzman et al. 2020, The Curious Case of Neural Text Degeneration",
    aliases=("sample", "multinomial"),
    order=20,
    compared=True,
    selects=lambda flags: flags.plain and flags.samples,
)
