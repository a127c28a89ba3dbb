"""Suggest similar names for an unknown name."""

from __future__ import annotations

from collections.abc import Iterable

from decodescope.core.errors import ParameterError
from decodescope.resources.language import join_names, tr

MAX_LISTED = 20
"""Number of names up to which a message lists all of them."""
MAX_COMPARED = 60
"""Characters of an unknown name that are compared."""


def closest_name(name: str, known_names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name most similar to `name`, ignoring case; None if none is similar."""
    from difflib import get_close_matches  # most names are known, so this is not needed at startup

    by_lower = {word.lower(): word for word in known_names}
    found = get_close_matches(str(name).lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """Return `Did you mean “sampling”?` preceded by a space; empty if no known name is similar."""
    found = closest_name(name, known_names)
    return tr(" Did you mean “{name}”?").format(name=found) if found is not None else ""


def nearest_names(name: str, known_names: Iterable[str], count: int = 5) -> list[str]:
    """Return the known names that are most similar to `name`, the most similar first, ignoring case."""
    from difflib import SequenceMatcher

    words = SequenceMatcher(b=str(name).lower()[:MAX_COMPARED])

    def similarity(known: str) -> float:
        words.set_seq1(known.lower())
        return words.ratio()

    return sorted(known_names, key=similarity, reverse=True)[:count]


def known_names_sentence(name: str, known_names: Iterable[str]) -> str:
    """Return a sentence with the known names for the unknown `name`; with those nearest to it if there are many."""
    names = list(known_names)
    if len(names) <= MAX_LISTED:
        return tr("Available: {names}.").format(names=join_names(names) or tr("none"))
    nearest = join_names(nearest_names(name, names))
    return tr("The nearest of {count} names: {names}.").format(count=len(names), names=nearest)


def unknown_name_error(cause: str, name: str, known_names: Iterable[str]) -> ParameterError:
    """Return the error for an unknown name; `cause` is a whole sentence."""
    names = sorted(known_names)
    return ParameterError(f"{cause}{did_you_mean(name, names)}", known_names_sentence(name, names), name)
