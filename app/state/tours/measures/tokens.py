"""Figures of a text and of its tokens. Places count from 0; shares are of 1, entropies in bits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from app.state.run import Run
from app.state.tours.measures.measure import MeasureValue, measure
from core.events import Alternative, Stage, TokenChosen

GRAM = 4
"""Tokens of the stretches that are looked for again."""
MAX_ODD_PROBABILITY = 1e-3
"""The model alone would write such a token less than once in a thousand times."""


def word_tokens(run: Run) -> list[tuple[int, TokenChosen]]:
    """The tokens that are words or parts of words, with their places: no white space, marks, ends."""
    return [(n, token) for n, token in enumerate(run.tokens) if any(c.isalpha() for c in token.text)]


def repeats(tokens: Sequence[TokenChosen], size: int = GRAM) -> Iterator[bool]:
    """For every stretch of `size` tokens, in order, whether it has stood before."""
    seen: set[tuple[int, ...]] = set()
    for start in range(len(tokens) - size + 1):
        gram = tuple(token.id for token in tokens[start : start + size])
        yield gram in seen
        seen.add(gram)


@measure("count")
def tokens(run: Run) -> MeasureValue:
    """How many were written."""
    return len(run.tokens)


@measure("decimal", may_be_missing=True)
def setting(run: Run, name: str) -> MeasureValue:
    """A number that the run was set to."""
    value = run.request.settings.get(name, run.request.cache_options.get(name))
    return value if isinstance(value, int | float) else None


@measure("count", may_be_missing=True)
def vocabulary(run: Run) -> MeasureValue:
    """How many tokens there are to choose from."""
    return run.started.vocabulary if run.started and run.started.vocabulary else None


@measure("share", may_be_missing=True)
def repeated_share(run: Run) -> MeasureValue:
    """The share of stretches of four tokens that have stood in the text before."""
    found = list(repeats(run.tokens))
    return sum(found) / len(found) if found else None


@measure("place", may_be_missing=True)
def loop_start(run: Run) -> MeasureValue:
    """The token from which on every stretch of four has stood before, to the end of the text."""
    found = list(repeats(run.tokens))
    if not found or not found[-1]:
        return None
    first = len(found) - 1
    while first and found[first - 1]:
        first -= 1
    return first


@measure("count")
def likeliest_taken(run: Run) -> MeasureValue:
    """How many tokens were the likeliest of their step."""
    return sum((token.final_rank or token.rank) == 1 for token in run.tokens)


@measure("count")
def unlikely_taken(run: Run) -> MeasureValue:
    """How many tokens were not the model's own first choice."""
    return sum(token.rank > 1 for token in run.tokens)


@measure("count")
def odd_tokens(run: Run) -> MeasureValue:
    """How many tokens the model alone gives less than one in a thousand."""
    return sum(token.raw_probability < MAX_ODD_PROBABILITY for token in run.tokens)


@measure("bits", may_be_missing=True)
def surprise(run: Run) -> MeasureValue:
    """Mean surprise of a token, by the model alone."""
    written = run.tokens if run.beams is None else run.beams.tokens(run.beams.leader(len(run.beams.steps)))
    values = [-token.raw_log_probability / math.log(2) for token in written]
    return sum(values) / len(values) if values else None


@measure("place", may_be_missing=True)
def unsurest(run: Run) -> MeasureValue:
    """The word at which the model was least sure what comes."""
    return max(word_tokens(run), key=lambda placed: placed[1].entropy, default=(None, None))[0]


@measure("place", may_be_missing=True)
def surest(run: Run) -> MeasureValue:
    """The word at which it was surest."""
    return min(word_tokens(run), key=lambda placed: placed[1].entropy, default=(None, None))[0]


@measure("place", may_be_missing=True)
def oddest(run: Run) -> MeasureValue:
    """The token that the model alone found the least likely."""
    return min(range(len(run.tokens)), key=lambda n: run.tokens[n].raw_probability, default=None)


@measure("place", may_be_missing=True)
def passed_over(run: Run) -> MeasureValue:
    """The first word before which a likelier one was passed over."""
    return next((n for n, token in word_tokens(run) if token.rank > 1 and _top_choice(token) is not None), None)


# At one place of the text


def _token_at(run: Run, index: int) -> TokenChosen | None:
    return run.tokens[index] if 0 <= index < len(run.tokens) else None


def _top_choice(token: TokenChosen | None) -> Alternative | None:
    """The model's own first choice, where it was recorded."""
    return next((one for one in token.alternatives if one.rank == 1), None) if token else None


@measure("token", may_be_missing=True)
def piece_at(run: Run, index: int) -> MeasureValue:
    """The token."""
    token = _token_at(run, index)
    return token.piece if token else None


@measure("share", may_be_missing=True)
def chance_at(run: Run, index: int) -> MeasureValue:
    """Its probability by the model alone."""
    token = _token_at(run, index)
    return token.raw_probability if token else None


@measure("share", may_be_missing=True)
def final_chance_at(run: Run, index: int) -> MeasureValue:
    """Its probability after everything that is set."""
    token = _token_at(run, index)
    return token.probability if token else None


@measure("count", may_be_missing=True)
def rank_at(run: Run, index: int) -> MeasureValue:
    """Its place among the model's choices, 1 the first."""
    token = _token_at(run, index)
    return token.rank if token else None


@measure("token", may_be_missing=True)
def first_choice_at(run: Run, index: int) -> MeasureValue:
    """What the model alone would have said first there."""
    first = _top_choice(_token_at(run, index))
    return first.text if first else None


@measure("share", may_be_missing=True)
def first_chance_at(run: Run, index: int) -> MeasureValue:
    """How likely the model alone found that."""
    first = _top_choice(_token_at(run, index))
    return first.raw_probability if first else None


@measure("share", may_be_missing=True)
def first_final_at(run: Run, index: int) -> MeasureValue:
    """How likely it was after everything that is set."""
    first = _top_choice(_token_at(run, index))
    return first.probability if first else None


@measure("token", may_be_missing=True)
def second_choice_at(run: Run, index: int) -> MeasureValue:
    """The likeliest token beside the chosen one."""
    second = _runner_up(_token_at(run, index))
    return second.text if second else None


@measure("share", may_be_missing=True)
def second_chance_at(run: Run, index: int) -> MeasureValue:
    """How likely the model alone found that."""
    second = _runner_up(_token_at(run, index))
    return second.raw_probability if second else None


def _runner_up(token: TokenChosen | None) -> Alternative | None:
    others = [one for one in token.alternatives if one.id != token.id] if token else []
    return max(others, key=lambda one: one.raw_probability, default=None)


@measure("degree", may_be_missing=True)
def likeness_at(run: Run, index: int) -> MeasureValue:
    """Contrastive search: how like the text so far the chosen token is."""
    token = _token_at(run, index)
    found = [one for one in token.alternatives if one.id == token.id] if token else []
    return found[0].degeneration_penalty if found else None


@measure("degree", may_be_missing=True)
def first_likeness_at(run: Run, index: int) -> MeasureValue:
    """Contrastive search: how like the text so far the model's first choice is."""
    first = _top_choice(_token_at(run, index))
    return first.degeneration_penalty if first else None


# The funnel


def _stage(token: TokenChosen | None, name: str) -> Stage | None:
    return next((stage for stage in token.funnel if stage.name == name), None) if token else None


@measure("count", may_be_missing=True)
def kept_at(run: Run, index: int, stage: str) -> MeasureValue:
    """How many tokens a stage of the funnel left there."""
    found = _stage(_token_at(run, index), stage)
    return found.survivors if found else None


@measure("share", may_be_missing=True)
def held_at(run: Run, index: int, stage: str) -> MeasureValue:
    """The share of the distribution entering the stage that those hold."""
    found = _stage(_token_at(run, index), stage)
    return found.mass if found else None


def _survivors(run: Run, stage: str) -> list[tuple[int, int]]:
    """(survivors, place) of every word that went through the stage."""
    found = ((n, _stage(token, stage)) for n, token in word_tokens(run))
    return [(stage.survivors, n) for n, stage in found if stage is not None]


@measure("place", may_be_missing=True)
def most_kept(run: Run, stage: str) -> MeasureValue:
    """The word at which a stage left most."""
    return max(_survivors(run, stage), key=lambda kept: (kept[0], -kept[1]), default=(None, None))[1]


@measure("place", may_be_missing=True)
def fewest_kept(run: Run, stage: str) -> MeasureValue:
    """The word at which it left fewest."""
    return min(_survivors(run, stage), default=(None, None))[1]


@measure("place", may_be_missing=True)
def first_choice_cut(run: Run) -> MeasureValue:
    """The first word at which the model's own first choice was cut."""
    return next((n for n, token in word_tokens(run) if (first := _top_choice(token)) and first.probability == 0), None)


@measure("count")
def first_choices_cut(run: Run) -> MeasureValue:
    """How many tokens were chosen with the model's own first choice cut."""
    return sum((first := _top_choice(token)) is not None and first.probability == 0 for token in run.tokens)
