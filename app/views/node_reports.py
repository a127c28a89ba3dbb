"""Report for the inspector about something other than a token of the shown text. Plain data, no Qt."""

from __future__ import annotations

from typing import NamedTuple


class ReportRow(NamedTuple):
    """One row of a report's table."""

    cells: tuple[str, ...]
    """One cell per column of the report; the first is text, the others are figures."""
    strong: bool = False
    faint: bool = False


class NodeReport(NamedTuple):
    """A node of a tree, described in text and figures."""

    heading: str
    """The kind of node, such as “Beam node” or “Drafted node”."""
    token: str
    """The token with visible white space."""
    facts: str
    """One line of figures."""
    sentence: str
    """Why the node was kept or pruned."""
    verdict: str = ""
    """The first words of the sentence, in bold, such as “Pruned at step 4”."""
    so_far: str = ""
    """The text from the prompt to this node."""
    table_title: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[ReportRow, ...] = ()
    formula: str = ""
    """How its score is computed, with its own values; lines are separated by line breaks."""
    formula_title: str = ""
    """Title of the formula; empty for “Score”."""
    term: str = ""
    """Glossary term that explains this kind of node."""
