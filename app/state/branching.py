"""What is made of a run's text: a branch that goes on from a place of it with another token, or its score. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import core
from app.state.run import Run
from app.state.worker_messages import GRAMMAR, RunRequest
from core import words
from resources.language import tr

if TYPE_CHECKING:
    from core.events import Stage, TokenChosen


class TokenReplacement(NamedTuple):
    """What is to stand at a token's place in the shown text."""

    position: int
    """The token's place among those of the shown text."""
    value: int | str
    """A token's id, or words."""


class PathContinuation(NamedTuple):
    """A path through a search's tree that a run is to go on from, kept or pruned."""

    ids: tuple[int, ...]
    """Its tokens, behind what the answer begins with."""
    shared: int
    """How many of them the shown text has too."""


def branch_unsupported_reason(run: Run | None) -> str:
    """Why no run can go on from a place of this one's text; empty when one can."""
    if run is None or not run.tokens:
        return tr("There is no token yet.")
    if run.request.scored and not run.request.beginning and not _has_only_start_token(run):
        return tr("A scored text without a prompt before it cannot be branched from: score a run instead.")
    return ""


def forbidden_ids(run: Run, token: TokenChosen, grammar: object) -> frozenset[int]:
    """The ids of its alternatives that no branch under `grammar` can begin with: the run was held to the same one, and
    that forbade them, or they end a text. Of another grammar nobody knows before it is tried."""
    if not is_constrained_to(run, grammar):
        return frozenset()
    ends = {item.id for item in token.alternatives if words.control_name(item.text, item.special)}
    return _forbidden_by_funnel(token) | (frozenset() if _allows_control_tokens(grammar) else ends)


def is_constrained_to(run: Run, grammar: object) -> bool:
    """Whether the run was held to this grammar."""
    return grammar is not None and run.request.grammar == grammar


def forbidden_reason(text: str, special: bool | None = None) -> str:
    """Why a branch cannot begin with a token of that text. `special`: as in `words.control_name`."""
    name = words.quote(text, special)
    if words.control_name(text, special):
        return tr("{name}: the grammar lets nothing follow it").format(name=name)
    return tr("{name}: the grammar forbids it").format(name=name)


def _allows_control_tokens(grammar: object) -> bool:
    """Whether control tokens may stand in its texts."""
    return isinstance(grammar, Mapping) and "<" in str(grammar.get("lark", ""))


def _forbidden_by_funnel(token: TokenChosen) -> frozenset[int]:
    forbids = next((pair for pair in pairwise(token.funnel) if pair[1].name == GRAMMAR), None)
    return _removed_ids(token, *forbids) if forbids is not None else frozenset()


def _removed_ids(token: TokenChosen, before: Stage, after: Stage) -> frozenset[int]:
    """What stood before the grammar and not behind it: a ban lets what it keeps move up only. Where no other stage took
    anything out, all that came to nothing."""
    kept = {one for one, _ in after.top}
    alone = all(one.survivors == other.survivors for one, other in pairwise(token.funnel) if other is not after)
    gone = {one for one, _ in before.top} - kept
    return frozenset(
        item.id for item in token.alternatives
        if item.probability == 0 and (item.id in gone or (alone and item.id not in kept))
    )  # fmt: skip


def make_branch(run: Run, replacement: TokenReplacement | PathContinuation, settings: RunRequest) -> RunRequest:
    """A run whose text is that of `run` up to the place, then what stands there instead, then what `settings` write.

    Model and prompt are the run's own, for its tokens are those of its model. Words take the white space before them
    from the token they replace.
    """
    begun = tuple(token.id for token in run.beginning)
    parts, shared = (
        (replacement.ids, replacement.shared)
        if isinstance(replacement, PathContinuation)
        else _with_replacement(run, replacement)
    )
    return replace(
        settings,
        prompt="" if run.request.scored and not run.request.beginning else run.request.prompt,
        media=run.request.media,
        load=run.request.load if run.request.model else settings.load,
        beginning=(*begun, *parts),
        parent=run.id,
        place=len(begun) + shared,
        scored=False,
        second="",
    )


def _with_replacement(run: Run, replacement: TokenReplacement) -> tuple[tuple[int | str, ...], int]:
    """The tokens before the place and what stands there now, and how many are as before."""
    kept = tuple(token.id for token in run.tokens[: replacement.position])
    what = (
        replacement.value
        if isinstance(replacement.value, int)
        else _with_leading_space(replacement.value, run.tokens[replacement.position].piece)
    )
    return (*kept, what), len(kept)


def make_score_request(run: Run, comparison_model: str = "") -> RunRequest:
    """The text of a run scored, its prompt too where the model reads both as one text."""
    request = run.request
    if not request.scored:
        ids = (*(token.id for token in run.beginning), *(token.id for token in run.tokens))
        request = strip_for_scoring(replace(request, beginning=ids, parent=run.id, place=0))
    return replace(request, second=comparison_model)


def strip_for_scoring(request: RunRequest) -> RunRequest:
    """Nothing but the text of a request, to be scored: no setting changes what the model holds of it. Those of
    watermarks stay: they are searched for."""
    return replace(
        request, strategy="greedy", config={}, options=core.watermark_settings(request.options), cache="dynamic",
        cache_options={}, draft_names=(), seed=0,
        prefix_budget=0, when_full="", scored=True,
    )  # fmt: skip


def _has_only_start_token(run: Run) -> bool:
    """Whether all that was not scored is the model's own first token: an empty prompt begins with it too."""
    return len(run.prompt) == 1 and bool(words.control_name(run.prompt[0].text, run.prompt[0].special))


def _with_leading_space(text: str, replaced: str) -> str:
    return text if text[:1].isspace() else replaced[: len(replaced) - len(replaced.lstrip())] + text
