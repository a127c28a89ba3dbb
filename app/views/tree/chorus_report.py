"""Tells of a node of a chorus: how many texts pass, what the model made of it, where else they went. No Qt in here."""

from __future__ import annotations

from collections.abc import Sequence

from app.state.chorus import ROOT, Chorus, Node
from app.views.reports import NodeReport, ReportRow
from app.views.text.wording import texts_told, token_text
from core import words
from resources.language import sentences, tr, trn

MOST_ROWS = 12


def report_on(chorus: Chorus, number: int) -> NodeReport:
    """Everything the inspector says of a node. Raises KeyError for the prompt and for strangers."""
    node = chorus.node(number)
    siblings = chorus.children(node.parent)
    return NodeReport(
        heading=tr("Node of the chorus"),
        term="chorus",
        token=token_text(node.piece),
        facts=tr("token {depth} · {share} of the texts · rank {rank:,}").format(
            depth=node.depth, share=words.percent(chorus.share(number)), rank=node.rank
        ),
        sentence=_sentence(chorus, node),
        verdict=_came(node.count, chorus.total),
        so_far=chorus.text(number),
        table_title=tr("Token {depth} behind the same text").format(depth=node.depth),
        columns=_columns(),
        rows=_rows(chorus, siblings, node),
    )


def report_on_start(chorus: Chorus, last_word: str) -> NodeReport:
    """What the inspector says of the root: all texts begin here."""
    first = chorus.children(ROOT)
    return NodeReport(
        heading=tr("Start of the chorus"),
        term="chorus",
        token=last_word,
        facts=texts_told(chorus.total),
        sentence=_ways(len(first)),
        verdict=tr("Here the prompt ends, and every text begins."),
        table_title=tr("First token"),
        columns=_columns(),
        rows=_rows(chorus, first, None),
    )


def _columns() -> tuple[str, ...]:
    return tr("continuation"), tr("texts"), tr("drawn"), tr("model")


def _came(count: int, total: int) -> str:
    """`3 of 16 texts came this way.`"""
    template = trn("{count:,} of {total:,} text came this way.", "{count:,} of {total:,} texts came this way.", total)
    return template.format(count=count, total=total)


def _ways(first: int) -> str:
    if first > 1:
        return tr("Their first token is one of {count:,}.").format(count=first)
    return tr("All of them begin with the same token.") if first else ""


def tip(chorus: Chorus, number: int) -> str:
    """Two lines on a node for the pointer; nothing for the root."""
    if number not in chorus:
        return ""
    node = chorus.node(number)
    return tr("{piece}  {count:,} of {total:,} texts, {share}\nthe model gives it {probability} here").format(
        piece=token_text(node.piece),
        count=node.count,
        total=chorus.total,
        share=words.percent(chorus.share(number)),
        probability=words.percent(node.probability),
    )


def _sentence(chorus: Chorus, node: Node) -> str:
    came = chorus.passing(node.parent)
    model = tr("The model alone gives this token {probability} here, {settings} after the settings.").format(
        probability=words.percent(node.probability), settings=words.percent(node.drawn_with)
    )
    drawn = tr("The one text that came to this place drew it.")
    if came != 1:
        drawn = tr("Of the {came:,} texts that came to this place {count:,} drew it, {share}.").format(
            came=came, count=node.count, share=words.percent(node.count / came)
        )
    return sentences(model, drawn)


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
