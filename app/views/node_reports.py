"""What the inspector is to say of something that is not a token of the shown text. Plain data, no Qt."""

from __future__ import annotations

from typing import NamedTuple


class ReportRow(NamedTuple):
    """One line of a report's table."""

    cells: tuple[str, ...]
    """As many as the report has columns; the first one is text, the others are figures."""
    strong: bool = False
    faint: bool = False


class NodeReport(NamedTuple):
    """A node of a tree, in words and figures."""

    heading: str
    """What kind of thing it is: Beam node, Drafted node."""
    token: str
    """The token, white space made visible."""
    facts: str
    """One line of figures."""
    sentence: str
    """Why it lived or died."""
    verdict: str = ""
    """The first words of the sentence, said in bold: Pruned at step 4."""
    so_far: str = ""
    """The text from the prompt to this node."""
    table_title: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[ReportRow, ...] = ()
    formula: str = ""
    """How its score comes about, with its own figures; lines parted by line breaks."""
    formula_title: str = ""
    """Empty: Score."""
    term: str = ""
    """The term of the glossary that explains what kind of thing it is."""
