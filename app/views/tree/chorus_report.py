"""Tells of a node of a chorus: how many texts pass, what the model made of it, where else they went. No Qt in here."""

from __future__ import annotations

from collections.abc import Sequence

from app.state.chorus import ROOT, Chorus, Node
from app.views.reports import NodeReport, ReportRow
from app.views.text.wording import token_text
from core import words

MOST_ROWS = 12


def report_on(chorus: Chorus, number: int) -> NodeReport:
    """Everything the inspector says of a node. Raises KeyError for the prompt and for strangers."""
    node = chorus.node(number)
    siblings = chorus.children(node.parent)
    return NodeReport(
        heading="Node of the chorus",
        token=token_text(node.piece),
        facts=f"token {node.depth} · {words.percent(chorus.share(number))} of the texts · rank {node.rank:,}",
        sentence=_sentence(chorus, node),
        verdict=f"{node.count:,} of {words.count(chorus.total, 'text')} came this way.",
        so_far=chorus.text(number),
        table_title=f"Token {node.depth} behind the same text",
        columns=("continuation", "texts", "drawn", "model"),
        rows=_rows(chorus, siblings, node),
    )


def report_on_start(chorus: Chorus, last_word: str) -> NodeReport:
    """What the inspector says of the root: all texts begin here."""
    first = chorus.children(ROOT)
    ways = (
        ""
        if not first
        else f"Their first token is one of {len(first):,}."
        if len(first) > 1
        else ("All of them begin with the same token.")
    )
    return NodeReport(
        heading="Start of the chorus",
        token=last_word,
        facts=words.count(chorus.total, "text"),
        sentence=ways,
        verdict="Here the prompt ends, and every text begins.",
        table_title="First token",
        columns=("continuation", "texts", "drawn", "model"),
        rows=_rows(chorus, first, None),
    )


def tip(chorus: Chorus, number: int) -> str:
    """Two lines on a node for the pointer; nothing for the root."""
    if number not in chorus:
        return ""
    node = chorus.node(number)
    return (
        f"{token_text(node.piece)}  {node.count:,} of {chorus.total:,} texts, {words.percent(chorus.share(number))}\n"
        f"the model gives it {words.percent(node.probability)} here"
    )


def _sentence(chorus: Chorus, node: Node) -> str:
    came = chorus.passing(node.parent)
    settings = words.percent(node.drawn_with)
    model = f"The model alone gives this token {words.percent(node.probability)} here, {settings} after the settings."
    if came == 1:
        return f"{model} The one text that came to this place drew it."
    share = words.percent(node.count / came)
    return f"{model} Of the {came:,} texts that came to this place {node.count:,} drew it, {share}."


def _rows(chorus: Chorus, siblings: Sequence[Node], own: Node | None) -> tuple[ReportRow, ...]:
    """The continuations, the most frequent first; `own` is among them however rare it is."""
    shown = list(siblings[:MOST_ROWS])
    if own is not None and own not in shown:
        shown[-1] = own
    return tuple(
        ReportRow(
            (token_text(node.piece), f"{node.count:,}", words.brief_percent(node.count / chorus.passing(node.parent)),
             words.brief_percent(node.probability)),
            strong=node is own,
        )
        for node in shown
    )  # fmt: skip
