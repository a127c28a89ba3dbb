"""Requests derived from a run's text: a branch that replaces a token and continues, or a score of the text. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from decodescope import core
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import GRAMMAR, RunRequest
from decodescope.core import words
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.events import Stage, TokenChosen


class TokenReplacement(NamedTuple):
    """Replacement of a token in the shown text."""

    position: int
    """The token's index in the shown text."""
    value: int | str
    """A token id, or text."""


class PathContinuation(NamedTuple):
    """A path of a search tree to continue from, kept or pruned."""

    ids: tuple[int, ...]
    """Its tokens, after the beginning of the answer."""
    shared: int
    """Number of tokens it shares with the shown text."""


def branch_unsupported_reason(run: Run | None) -> str:
    """Return why the run cannot be branched; empty if it can."""
    if run is None or not run.tokens:
        return tr("There are no tokens yet.")
    if run.request.scored and not run.request.beginning and not _has_only_start_token(run):
        return tr("A scored text without a prompt cannot be branched. Score the text of a run instead.")
    return ""


def forbidden_ids(run: Run, token: TokenChosen, grammar: object) -> frozenset[int]:
    """Return the ids of the token's alternatives that no branch under `grammar` can start with.

    Known only if the run used the same grammar: it forbade these tokens, or they end the text. Otherwise the result is
    empty.
    """
    if not is_constrained_to(run, grammar):
        return frozenset()
    ends = {item.id for item in token.alternatives if words.control_name(item.text, item.special)}
    return _forbidden_by_funnel(token) | (frozenset() if _allows_control_tokens(grammar) else ends)


def is_constrained_to(run: Run, grammar: object) -> bool:
    """Return whether the run used this grammar."""
    return grammar is not None and run.request.grammar == grammar


def forbidden_reason(text: str, special: bool | None = None) -> str:
    """Return why a branch cannot start with a token whose text is `text`. `special`: as in `words.control_name`."""
    name = words.quote(text, special)
    if words.control_name(text, special):
        return tr("{name}: the grammar allows nothing after it").format(name=name)
    return tr("{name}: not allowed by the grammar").format(name=name)


def _allows_control_tokens(grammar: object) -> bool:
    """Return whether texts of the grammar may contain control tokens."""
    return isinstance(grammar, Mapping) and "<" in f"{grammar.get('lark', '')}{grammar.get('gbnf', '')}"


def _forbidden_by_funnel(token: TokenChosen) -> frozenset[int]:
    forbids = next((pair for pair in pairwise(token.funnel) if pair[1].name == GRAMMAR), None)
    return _removed_ids(token, *forbids) if forbids is not None else frozenset()


def _removed_ids(token: TokenChosen, before: Stage, after: Stage) -> frozenset[int]:
    """Return the tokens removed by the grammar stage: a constraint can only move the remaining tokens up. If no other
    stage removed tokens, the grammar removed all that have probability 0.
    """
    remaining = {one for one, _ in after.top}
    alone = all(one.survivors == other.survivors for one, other in pairwise(token.funnel) if other is not after)
    gone = {one for one, _ in before.top} - remaining
    return frozenset(
        item.id for item in token.alternatives
        if item.probability == 0 and (item.id in gone or (alone and item.id not in remaining))
    )  # fmt: skip


def make_branch(run: Run, replacement: TokenReplacement | PathContinuation, settings: RunRequest) -> RunRequest:
    """Create a request that keeps the text of `run` up to the replaced token, inserts `replacement`, and continues with
    `settings`.

    Model and prompt are those of the run, because its token ids belong to its model. Replacement text takes its leading
    white space from the token it replaces.
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
        shared_tokens=len(begun) + shared,
        scored=False,
        second="",
    )


def _with_replacement(run: Run, replacement: TokenReplacement) -> tuple[tuple[int | str, ...], int]:
    """Return the kept tokens followed by the replacement, and the number of kept tokens."""
    kept_ids = tuple(token.id for token in run.tokens[: replacement.position])
    what = (
        replacement.value
        if isinstance(replacement.value, int)
        else _with_leading_space(replacement.value, run.tokens[replacement.position].piece)
    )
    return (*kept_ids, what), len(kept_ids)


def make_score_request(run: Run, comparison_model: str = "") -> RunRequest:
    """Create a request that scores a run's text, including its prompt where the model reads both as one text."""
    request = run.request
    if not request.scored:
        ids = (*(token.id for token in run.beginning), *(token.id for token in run.tokens))
        request = strip_for_scoring(replace(request, beginning=ids, parent=run.id, shared_tokens=0))
    return replace(request, second=comparison_model)


def strip_for_scoring(request: RunRequest) -> RunRequest:
    """Strip a request to the text to be scored. Settings do not affect scores, except those of watermark detection,
    which are kept.
    """
    return replace(
        request, strategy="greedy", config={}, options=core.watermark_settings(request.options), cache="dynamic",
        cache_options={}, draft_names=(), seed=0,
        prefix_budget=0, when_full="", scored=True,
    )  # fmt: skip


def _has_only_start_token(run: Run) -> bool:
    """Return whether only the model's own first token was not scored; an empty prompt starts with that token too."""
    return len(run.prompt) == 1 and bool(words.control_name(run.prompt[0].text, run.prompt[0].special))


def _with_leading_space(text: str, replaced: str) -> str:
    return text if text[:1].isspace() else replaced[: len(replaced) - len(replaced.lstrip())] + text
