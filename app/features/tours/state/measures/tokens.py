"""Measures of a text and its tokens. Indices count from 0; fractions are of 1, entropies in bits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from decodescope.app.features.tours.state.measures.measure import MeasureValue, measure, measure_parts
from decodescope.app.state.run import Run
from decodescope.core.events import Alternative, Stage, TokenChosen

GRAM = 4
"""Size of the n-grams checked for repetition."""
MAX_ODD_PROBABILITY = 1e-3
"""Probability below which a token counts as odd, by the model alone."""


def word_tokens(run: Run) -> list[tuple[int, TokenChosen]]:
    """Return the tokens with letters and their indices, without white space, punctuation and control tokens."""
    return [(n, token) for n, token in enumerate(run.tokens) if any(c.isalpha() for c in token.text)]


def repeats(tokens: Sequence[TokenChosen], size: int = GRAM) -> Iterator[bool]:
    """Yield for every n-gram of `size` tokens, in order, whether it occurred before."""
    seen: set[tuple[int, ...]] = set()
    for start in range(len(tokens) - size + 1):
        gram = tuple(token.id for token in tokens[start : start + size])
        yield gram in seen
        seen.add(gram)


@measure("count")
def tokens(run: Run) -> MeasureValue:
    """Number of generated tokens."""
    return len(run.tokens)


@measure("place", may_be_missing=True)
def first_place(run: Run) -> MeasureValue:
    """Index of the first token; None without one."""
    return 0 if run.tokens else None


@measure("degree", may_be_missing=True)
def letters_a_token(run: Run) -> MeasureValue:
    """Mean number of characters of a generated token, spaces and punctuation included."""
    return sum(len(token.text) for token in run.tokens) / len(run.tokens) if run.tokens else None


@measure("place", may_be_missing=True)
def longest_token(run: Run) -> MeasureValue:
    """Index of the word with the most characters."""
    return max(word_tokens(run), key=lambda placed: len(placed[1].text.strip()), default=(None, None))[0]


@measure("decimal", may_be_missing=True)
def setting(run: Run, name: str) -> MeasureValue:
    """Value of a numeric setting of the run."""
    value = run.request.settings.get(name, run.request.cache_options.get(name))
    return value if isinstance(value, int | float) else None


@measure("count", may_be_missing=True)
def vocabulary(run: Run) -> MeasureValue:
    """Size of the vocabulary."""
    return run.started.vocabulary if run.started and run.started.vocabulary else None


@measure("ratio", may_be_missing=True)
def repeated_share(run: Run) -> MeasureValue:
    """Fraction of 4-grams that occurred earlier in the text."""
    found = list(repeats(run.tokens))
    return sum(found) / len(found) if found else None


@measure("place", may_be_missing=True)
def loop_start(run: Run) -> MeasureValue:
    """Index of the token from which every 4-gram until the end is a repeat."""
    found = list(repeats(run.tokens))
    if not found or not found[-1]:
        return None
    first = len(found) - 1
    while first and found[first - 1]:
        first -= 1
    return first


@measure("count")
def likeliest_taken(run: Run) -> MeasureValue:
    """Number of tokens that were the most likely of their step."""
    return sum((token.final_rank or token.rank) == 1 for token in run.tokens)


@measure("count")
def unlikely_taken(run: Run) -> MeasureValue:
    """Number of tokens that were not the model's own top choice."""
    return sum(token.rank > 1 for token in run.tokens)


@measure("count")
def odd_tokens(run: Run) -> MeasureValue:
    """Number of tokens with a probability below 1/1000 by the model alone."""
    return sum(token.raw_probability < MAX_ODD_PROBABILITY for token in run.tokens)


@measure("bits", may_be_missing=True)
def surprise(run: Run) -> MeasureValue:
    """Mean surprise per token, by the model alone."""
    written = run.tokens if run.beams is None else run.beams.tokens(run.beams.leader(len(run.beams.steps)))
    values = [-token.raw_log_probability / math.log(2) for token in written]
    return sum(values) / len(values) if values else None


@measure("place", may_be_missing=True)
def unsurest(run: Run) -> MeasureValue:
    """Index of the word with the highest entropy."""
    return max(word_tokens(run), key=lambda placed: placed[1].entropy, default=(None, None))[0]


@measure("place", may_be_missing=True)
def surest(run: Run) -> MeasureValue:
    """Index of the word with the lowest entropy."""
    return min(word_tokens(run), key=lambda placed: placed[1].entropy, default=(None, None))[0]


@measure("place", may_be_missing=True)
def oddest(run: Run) -> MeasureValue:
    """Index of the token with the lowest probability by the model alone."""
    return min(range(len(run.tokens)), key=lambda n: run.tokens[n].raw_probability, default=None)


@measure("place", may_be_missing=True)
def passed_over(run: Run) -> MeasureValue:
    """Index of the first word that was chosen over a more likely one."""
    return next((n for n, token in word_tokens(run) if token.rank > 1 and _top_choice(token) is not None), None)


# At one index of the text


def _token_at(run: Run, index: int) -> TokenChosen | None:
    return run.tokens[index] if 0 <= index < len(run.tokens) else None


def _top_choice(token: TokenChosen | None) -> Alternative | None:
    """Return the model's own top choice, if it was recorded."""
    return next((one for one in token.alternatives if one.rank == 1), None) if token else None


def _runner_up(token: TokenChosen | None) -> Alternative | None:
    others = [one for one in token.alternatives if one.id != token.id] if token else []
    return max(others, key=lambda one: one.raw_probability, default=None)


@measure("degree", may_be_missing=True)
def likeness_at(run: Run, index: int) -> MeasureValue:
    """Contrastive search: similarity of the chosen token to the text so far."""
    token = _token_at(run, index)
    found = [one for one in token.alternatives if one.id == token.id] if token else []
    return found[0].degeneration_penalty if found else None


# The funnel


def _stage(token: TokenChosen | None, name: str) -> Stage | None:
    return next((stage for stage in token.funnel if stage.name == name), None) if token else None


measure_parts(
    _token_at,
    piece_at=("token", "piece"),
    chance_at=("share", "raw_probability"),  # by the model alone
    final_chance_at=("share", "probability"),  # after all settings
    rank_at=("count", "rank"),  # by the model alone, starting at 1
)
measure_parts(  # the model's own top choice at an index
    lambda run, index: _top_choice(_token_at(run, index)),
    first_choice_at=("token", "text"),
    first_chance_at=("share", "raw_probability"),
    first_final_at=("share", "probability"),
    first_likeness_at=("degree", "degeneration_penalty"),  # contrastive search: similarity to the text so far
)
measure_parts(  # the most likely token other than the chosen one
    lambda run, index: _runner_up(_token_at(run, index)),
    second_choice_at=("token", "text"),
    second_chance_at=("share", "raw_probability"),
)
measure_parts(  # a stage of the funnel at an index
    lambda run, index, stage: _stage(_token_at(run, index), stage),
    kept_at=("count", "survivors"),  # the tokens that it left
    held_at=("share", "mass"),  # the fraction of its input probability that these have
)


def _survivors(run: Run, stage: str) -> list[tuple[int, int]]:
    """Return (survivors, index) of every word that passed the stage."""
    found = ((n, _stage(token, stage)) for n, token in word_tokens(run))
    return [(stage.survivors, n) for n, stage in found if stage is not None]


@measure("place", may_be_missing=True)
def most_kept(run: Run, stage: str) -> MeasureValue:
    """Index of the word at which a stage kept the most tokens."""
    return max(_survivors(run, stage), key=lambda pair: (pair[0], -pair[1]), default=(None, None))[1]


@measure("place", may_be_missing=True)
def fewest_kept(run: Run, stage: str) -> MeasureValue:
    """Index of the word at which a stage kept the fewest tokens."""
    return min(_survivors(run, stage), default=(None, None))[1]


@measure("place", may_be_missing=True)
def first_choice_cut(run: Run) -> MeasureValue:
    """Index of the first word for which the model's own top choice was removed."""
    return next((n for n, token in word_tokens(run) if (first := _top_choice(token)) and first.probability == 0), None)


@measure("count")
def first_choices_cut(run: Run) -> MeasureValue:
    """Number of tokens for which the model's own top choice was removed."""
    return sum((first := _top_choice(token)) is not None and first.probability == 0 for token in run.tokens)
