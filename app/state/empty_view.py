"""What fills an empty view: which run, by which strategy, or why a model can do none of that. No Qt."""

from __future__ import annotations

from collections.abc import Iterator

from app.state.worker_messages import ModelInfo
from core import strategies
from core.strategies import Strategy
from resources.language import tr

AS_SET, TREE, DRAFT, CHAT, BRANCH = "as it is set", "tree", "draft", "chat", "branch"
"""What can be asked for."""


def strategies_for(content: str) -> Iterator[Strategy]:
    """Those whose runs fill such a view, the plainest first; of those that draft, with a model of their own first."""
    ways = strategies.registry.values()
    if content == TREE:
        yield from (way for way in ways if "num_beams" in way.parameter_names)
    elif content == DRAFT:
        yield from sorted((way for way in ways if way.speculates), key=lambda way: not way.takes_drafters)


def fill_unsupported_reason(content: str, info: ModelInfo | None) -> str:
    """Why the loaded model can fill no such view; empty where it can, or where that is not known yet."""
    if info is None:
        return ""
    if content == CHAT and not info.has_chat:
        return tr("{model} has no chat template.").format(model=info.title or info.name)
    ways = list(strategies_for(content))
    if ways and all(way.name in info.unsupported_strategies for way in ways):
        return info.unsupported_strategies[ways[0].name]
    return ""
