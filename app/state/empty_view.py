"""Runs that fill an empty view: suitable strategies, or why the model supports none. No Qt."""

from __future__ import annotations

from collections.abc import Iterator

from decodescope.app.state.worker_messages import ModelInfo
from decodescope.core import strategies
from decodescope.core.strategies import Strategy
from decodescope.resources.language import tr

AS_SET, TREE, DRAFT, CHAT, BRANCH = "as it is set", "tree", "draft", "chat", "branch"
"""Kinds of content that a view can request."""


def strategies_for(content: str) -> Iterator[Strategy]:
    """Yield the strategies whose runs fill such a view, the simplest first; for drafting, those with a draft model
    first.
    """
    ways = strategies.registry.values()
    if content == TREE:
        yield from (way for way in ways if "num_beams" in way.parameter_names)
    elif content == DRAFT:
        yield from sorted((way for way in ways if way.speculates), key=lambda way: not way.takes_drafters)


def fill_unsupported_reason(content: str, info: ModelInfo | None) -> str:
    """Return why the loaded model cannot fill such a view; empty if it can or if no model is known yet."""
    if info is None:
        return ""
    if content == CHAT and not info.has_chat:
        return tr("{model} has no chat template.").format(model=info.title or info.name)
    ways = list(strategies_for(content))
    if ways and all(way.name in info.unsupported_strategies for way in ways):
        return info.unsupported_strategies[ways[0].name]
    return ""
