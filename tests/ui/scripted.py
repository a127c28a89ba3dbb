"""Runs from scripted events for the views' tests: plausible numbers without a model."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.core.events import (
    Alternative,
    Event,
    Finished,
    Metrics,
    Prefilled,
    PromptToken,
    RunStarted,
    SequenceFinished,
    Stage,
    TokenChosen,
)

VOCABULARY = 2048
PROMPT = ("Once", " upon", " a", " time", ",", " there", " was", " a", " little")
STORY = (
    " fox", " named", " M", "ia", ".", " She", " lived", " in", " a", " den", " under", " the", " hill", ".",
    " Every", " day", ",", " she", " dan", "ced", " until", " evening", ".", "\n", "One", " after", "noon", ",",
    " Mia", " heard", " some", "body", " cry", "ing", " from", " the", " river", ".", ' "', "Content", " was", " that",
    '?"', " asked", " the", " fox", ".",
)  # fmt: skip
OTHERS = (" rabbit", " girl", " bear", " boy", " mouse", " dog", " cat", " bird", " tree", " frog")


def prompt_tokens(pieces: Sequence[str] = PROMPT) -> tuple[PromptToken, ...]:
    """Return the prompt as in `RunStarted`."""
    return tuple(PromptToken(100 + n, text) for n, text in enumerate(pieces))


def started(pieces: Sequence[str] = PROMPT, sequences: int = 1) -> RunStarted:
    """First event of a run."""
    return RunStarted(
        "sampling", "storyteller", "cpu", "float32", "dynamic", 0, prompt_tokens(pieces),
        (("temperature", 0.8), ("top_p", 0.92)), sequences, VOCABULARY, 512,
    )  # fmt: skip


def _alternatives(rng: random.Random, piece: str, raw: float, rank: int, kept: int) -> tuple[Alternative, ...]:
    """Ten candidates by raw probability, the chosen one at its rank (or last)."""
    place = min(rank, 10) - 1
    shares = sorted((rng.random() ** 3 * max(0.02, 1 - raw) for _ in range(9)), reverse=True)
    texts = rng.sample(OTHERS, 9)
    rows = [(200 + n, text, share) for n, (text, share) in enumerate(zip(texts, shares, strict=True))]
    high = [(i, t, raw + (place - n) * 0.04) for n, (i, t, _) in enumerate(rows[:place])]
    low = [(i, t, min(s, raw * 0.8 / (n + 1))) for n, (i, t, s) in enumerate(rows[place:])]
    ordered = [*high, (hash_id(piece), piece, raw), *low]
    return tuple(_alternative(n, *row, kept) for n, row in enumerate(ordered))


def _alternative(n: int, token: int, text: str, raw: float, kept: int) -> Alternative:
    final = min(0.99, raw * 1.3) if n < kept else 0.0
    return Alternative(
        token, text, raw, final, math.log(max(raw, 1e-9)), math.log(final) if final else -math.inf,
        n + 1,
    )  # fmt: skip


def hash_id(piece: str) -> int:
    """A stable id for a piece of text."""
    return sum(ord(c) * (n + 1) for n, c in enumerate(piece)) % VOCABULARY


def token(step: int, text: str, raw: float = 0.5, rank: int = 1, sequence: int = 0, **changes: object) -> TokenChosen:
    """One chosen token with alternatives and a funnel."""
    rng = random.Random(step * 31 + sequence)
    stored = max(rank if rank <= 10 else 10, rng.randint(1, 8))
    top_p = rng.randint(stored, 40)
    final = min(0.99, raw * 1.3)
    fields: dict[str, object] = {
        "step": step, "sequence": sequence, "id": hash_id(text), "piece": text, "text": text,
        "raw_probability": raw, "probability": final, "raw_log_probability": math.log(raw),
        "log_probability": math.log(final), "rank": rank, "entropy": 3.5 * (1 - raw), "seconds": 0.01,
        "alternatives": _alternatives(rng, text, raw, rank, stored),
        "funnel": (
            Stage("raw", "model", VOCABULARY, 1.0, 1.0, kind="model", phrase="the model"),
            Stage("temperature", "T 0.8", VOCABULARY, 1.0, 1.0, value=0.8, phrase="temperature 0.8"),
            Stage("top_p", "top-p 0.92", top_p, 0.92, 0.9, (), 0.92, "cut", "top-p 0.92"),
        ),
        "method": "sampled",
    }  # fmt: skip
    return TokenChosen(**(fields | changes))  # type: ignore[arg-type]


def story(count: int, sequence: int = 0, pieces: Sequence[str] = STORY) -> list[TokenChosen]:
    """Return `count` tokens of a story that repeats."""
    rng = random.Random(7 + sequence)
    chosen = []
    for n in range(count):
        raw = min(0.995, max(0.004, rng.betavariate(1.1, 0.7)))
        rank = 1 if raw > 0.5 else rng.randint(1, 6) if raw > 0.02 else rng.randint(8, 90)
        chosen.append(token(n, pieces[n % len(pieces)], raw, rank, sequence))
    return chosen


def end_token(step: int, sequence: int = 0) -> TokenChosen:
    """The end-of-sequence token."""
    return token(step, "", 0.9, 1, sequence, id=2, piece="<|end|>", special=True)


def make_run(
    tokens: Sequence[TokenChosen] = (), *, prompt: Sequence[str] = PROMPT, sequences: int = 1, finished: bool = False
) -> Run:
    """A Run that these events have been applied to."""
    run = Run(RunRequest("".join(prompt), load=LoadRequest("storyteller")))
    events: list[Event] = [started(prompt, sequences), Prefilled(len(prompt), 0.02), *tokens]
    if finished:
        events += [SequenceFinished(n, "eos") for n in range(sequences)]
        events.append(Finished("completed", ((),), ("",), Metrics()))
    run.apply(events)
    return run
