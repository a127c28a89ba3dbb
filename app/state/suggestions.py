"""“Did you mean …?” suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Iterable

from decodescope.core.checks.name_suggestions import did_you_mean, known_names_sentence
from decodescope.resources.language import mark, tr

KINDS = (
    mark("model"), mark("strategy"), mark("cache"), mark("view"), mark("tour"), mark("example"), mark("panel"),
    mark("colouring"), mark("choice"), mark("comparison"), mark("theme"), mark("language"),
    mark("preset"),
)  # fmt: skip
"""Kinds of names."""


def unknown_name_message(kind: str, name: str, known_names: Iterable[str]) -> str:
    """Return an error for an unknown name; `kind` is one of KINDS: `Unknown view “tre”. Did you mean “tree”? Available:
    tokens, chat, tree.`.
    """
    names = list(known_names)
    return tr("Unknown {kind} “{name}”.{near} {names}").format(
        kind=tr(kind), name=truncate_name(name), near=did_you_mean(name, names), names=known_names_sentence(name, names)
    )


def truncate_name(name: str) -> str:
    """Truncate a long name."""
    return name if len(name) <= 60 else f"{name[:59]}…"
