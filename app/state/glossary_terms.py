"""What the glossary says of a part of the window, for tips and accessible descriptions. No Qt."""

from __future__ import annotations

from core import glossary
from resources.language import tr


def find_term(name: str) -> glossary.GlossaryTerm | None:
    """The term that explains what is called so (`param.top_k`), or the one of that id; None where there is none."""
    return glossary.term_for(name) or glossary.terms().get(name)


def tooltip_html(names: str) -> str:
    """“**temperature**: Below 1 …” for each of the names, as rich text, a line each; nothing where there is none."""
    import html  # the names of all its characters: not before a tip is asked for

    terms = [term for name in names.split() if (term := find_term(name)) is not None]
    return "<br>".join(
        tr("<b>{term}</b>: {sentence}").format(term=html.escape(term.title), sentence=html.escape(term.sentence))
        for term in terms
    )
