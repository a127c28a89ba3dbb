"""What somebody may have meant who wrote a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable

from core.suggestions import near
from resources.language import mark, tr

KINDS = (
    mark("model"), mark("strategy"), mark("cache"), mark("view"), mark("tour"), mark("example"), mark("panel"),
    mark("colouring"), mark("choice"), mark("comparison"), mark("theme"), mark("language"),
    mark("preset"),
)  # fmt: skip
"""Of what a name can be."""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """`kind` is one of KINDS: `There is no view “tre”. Did you mean “tree”? There are: tokens, chat, tree.`"""
    names = list(known)
    return tr("There is no {kind} “{name}”.{near} There are: {names}.").format(
        kind=tr(kind), name=short(name), near=near(name, names), names=", ".join(names)
    )


def short(name: str) -> str:
    """The name, cut where nobody would read on."""
    return name if len(name) <= 60 else f"{name[:59]}…"
