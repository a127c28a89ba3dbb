"""Description of a registry entry for the glossary and the guide."""

from __future__ import annotations

from typing import NamedTuple


class EntryDescription(NamedTuple):
    """A sentence for each level of detail, and the source. The sentences are marked for translation."""

    plain: str
    """In words that need no knowledge of the field."""
    usual: str
    """In the terms of the field."""
    exact: str
    """The formula or the exact rule, as a sentence."""
    source: str
    """Author, title and year."""
    address: str
    """URL of the source, https."""
    also: tuple[str, ...] = ()
    """Other names, by which the glossary is searched."""
