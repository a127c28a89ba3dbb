"""What somebody may have meant who wrote a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable

from core.checks.name_suggestions import did_you_mean
from resources.language import mark, tr

KINDS = (
    mark("model"), mark("strategy"), mark("cache"), mark("view"), mark("tour"), mark("example"), mark("panel"),
    mark("colouring"), mark("choice"), mark("comparison"), mark("theme"), mark("language"),
    mark("preset"),
)  # fmt: skip
"""Of what a name can be."""


def unknown_name_message(kind: str, name: str, known: Iterable[str]) -> str:
    """`kind` is one of KINDS: `There is no view “tre”. Did you mean “tree”? There are: tokens, chat, tree.`"""
    names = list(known)
    return tr("There is no {kind} “{name}”.{near} There are: {names}.").format(
        kind=tr(kind), name=truncate_name(name), near=did_you_mean(name, names), names=", ".join(names)
    )


def truncate_name(name: str) -> str:
    """The name, cut where nobody would read on."""
    return name if len(name) <= 60 else f"{name[:59]}…"
