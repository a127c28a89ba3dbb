"""Multinomial sampling from the processed distribution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.core.common.claim import GREEDY_CELL, Claim, sampling_cell
from decodescope.core.common.hf_generation import SAME_SETTINGS, GenerateEquivalent
from decodescope.core.parameter import RANDOMNESS, Parameter
from decodescope.core.strategies.base import Strategy
from decodescope.core.strategies.parameters import (
    EVERYWHERE,
    KEYED_NOISE,
    NEW_TOKENS,
    PENALTIES,
    SAMPLING,
    SAMPLING_ADVANCED,
    SEQUENCES,
)
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.decoding.step_replayer import StepReplayer
    from decodescope.core.events import Event
    from decodescope.core.request import Request


SEED_EACH = Parameter(
    "seed_each", mark("Seed per sequence"), "bool", False,
    mark("Each sequence gets its own seed: the second one equals a run with the next seed, and so on. Off: "
        "all share one random generator."),
    option=True, advanced=True, group=RANDOMNESS,
)  # fmt: skip


def decode(run: DecodingRun) -> Iterator[Event]:
    """Sample once from the processed distribution at every step, for all sequences as one batch."""
    from decodescope.core.decoding.token_loop import (
        KeyedPicker,
        MultinomialPicker,
        SeededMultinomialPicker,
        decode_single,
    )

    if run.settings.get(KEYED_NOISE.name, KEYED_NOISE.default):
        keyed = KeyedPicker(run, [run.request.seed + row for row in range(run.sequences)])
        run.rng = keyed.uniform
        yield from decode_single(run, keyed)
        return
    if not run.settings.get(SEED_EACH.name, SEED_EACH.default):
        yield from decode_single(run, MultinomialPicker())
        return
    picker = SeededMultinomialPicker(run.request.seed, run.sequences, run.model.device)
    run.rng = picker.uniform
    yield from decode_single(run, picker)


def make_replayer(run: DecodingRun) -> StepReplayer:
    """Return the replayer for keyed noise, and for the shared or for separate random generators."""
    from decodescope.core.decoding.step_replayer import StepReplayer  # torch is loaded only when something runs
    from decodescope.core.decoding.token_loop import KeyedReplay, SeededReplay

    if run.settings.get(KEYED_NOISE.name, KEYED_NOISE.default):
        return KeyedReplay(run)
    return SeededReplay(run) if run.settings.get(SEED_EACH.name, SEED_EACH.default) else StepReplayer(run)


def generate_equivalent(request: Request) -> GenerateEquivalent:
    """Return the equivalent; only a reason with a seed per sequence, because `generate` shares one random generator
    among all texts of a batch, or with keyed noise.
    """
    if request.settings.get(KEYED_NOISE.name):
        return GenerateEquivalent(missing=tr("transformers has no noise that is keyed by position and token."))
    own = request.settings.get(SEED_EACH.name) and (request.settings.get("num_return_sequences") or 1) > 1
    return (
        GenerateEquivalent(
            missing=tr("each sequence has its own seed here, but transformers uses one generator for all.")
        )
        if own
        else SAME_SETTINGS
    )


CLAIMS = (
    Claim(
        name="votes-answer-better",
        title=mark("A majority of drawn answers is right more often"),
        plain=mark("Asking the model several times and taking the most frequent answer is "
            "right more often than one best answer."),
        exact=mark("Self-consistency: the majority of five sampled answers (temperature 0.7) is "
            "right more often than the greedy answer."),
        source="Wang, Wei, Schuurmans, Le, Chi et al. 2022, Self-Consistency Improves Chain "
            "of Thought Reasoning in Language Models",
        address="https://arxiv.org/abs/2203.11171",
        baseline=GREEDY_CELL,
        tested=sampling_cell(mark("Majority of 5"), temperature=0.7, num_return_sequences=5),
        measure="majority_right", expects="higher", margin=0.05,
        max_new_tokens=8, prompts="facts", baseline_at_least=0.1,
    ),
)  # fmt: skip

STRATEGY = Strategy(
    name="sampling",
    title=mark("Sampling"),
    summary=mark("Picks tokens at random by their probabilities, so every run can give a different text."),
    parameters=(NEW_TOKENS, *SAMPLING, *PENALTIES, SEQUENCES, SEED_EACH, KEYED_NOISE, *SAMPLING_ADVANCED, *EVERYWHERE),
    decode=decode,
    make_replayer=make_replayer,
    generate_equivalent=generate_equivalent,
    flags={"do_sample": True, "num_beams": 1, "penalty_alpha": None, "dola_layers": None},
    claims=CLAIMS,
    paper="Holtzman et al. 2020, The Curious Case of Neural Text Degeneration",
    aliases=("sample", "multinomial"),
    order=20,
    is_starting_point=True,
    is_compared_by_default=True,
    selects=lambda flags: flags.plain and flags.samples,
)
