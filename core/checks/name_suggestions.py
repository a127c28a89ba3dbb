"""Suggest similar names for an unknown name."""

from __future__ import annotations

from collections.abc import Iterable

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import known_names_sentence
from decodescope.resources.language import tr


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


def unknown_name_error(cause: str, name: str, known_names: Iterable[str]) -> ParameterError:
    """Return the error for an unknown name; `cause` is a whole sentence."""
    names = sorted(known_names)
    return ParameterError(f"{cause}{did_you_mean(name, names)}", known_names_sentence(names), name)
