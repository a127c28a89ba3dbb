"""Glossary entries for parts of the window, for tooltips and accessible descriptions. No Qt."""

from __future__ import annotations

from decodescope.core import glossary
from decodescope.resources.language import tr


def find_term(name: str) -> glossary.GlossaryTerm | None:
    """Return the term that explains a name (`param.top_k`), or the term with that id; None if there is none."""
    return glossary.term_for(name) or glossary.terms().get(name)


def tooltip_html(names: str) -> str:
    """Return “**temperature**: Below 1 …” for each of the names, as rich text with one line each; empty if there are no
    terms.
    """
    import html  # loads the table of character names: import only when a tooltip is requested

    terms = [term for name in names.split() if (term := find_term(name)) is not None]
    return "<br>".join(
        tr("<b>{term}</b>: {sentence}").format(term=html.escape(term.title), sentence=html.escape(term.sentence))
        for term in terms
    )
