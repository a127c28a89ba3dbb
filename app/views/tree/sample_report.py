"""Tells of a node of a chorus: how many texts pass, what the model made of it, where else they went. No Qt in here."""

from __future__ import annotations

from collections.abc import Sequence

from app.state.sample_tree import ROOT, SampleNode, SampleTree
from app.views.node_reports import NodeReport, ReportRow
from app.views.text.token_wording import format_text_count, token_text
from core import Saying, Sentence, share, together, words
from resources.language import mark, tr, trn

MAX_ROWS = 12
_MODEL = Saying(
    mark("The model gives this word piece {probability} here, and {settings} once the settings have had their say."),
    mark("The model alone gives this token {probability} here, {settings} after the settings."),
    mark("Raw p = {probability}, raw rank {rank}; p = {settings} after the settings."),
)
_SINGLE = Saying(
    mark("One text came to this place, and the dice chose it there."),
    mark("The one text that came to this place drew it."),
    mark("Drawn by 1 of the 1 text that came to this place."),
)
_COUNTS = Saying(
    mark("{came} texts came to this place, and in {count} of them the dice chose it: {share}."),
    mark("Of the {came} texts that came to this place {count} drew it, {share}."),
    mark("Drawn by {count} of the {came} texts that came to this place: a share of {share} beside p = {settings}."),
)
_FACTS = Saying(
    mark("word piece {depth} · {count} of {total} texts · number {rank} on the model's list"),
    mark("token {depth} · {share} of the texts · rank {rank}"),
    mark("token {depth} · id {id} · {count} of {total} texts = {share} · raw rank {rank}"),
)
_TIP = Saying(
    mark("{piece}  {count} of {total} texts\nthe model gives it {probability} here"),
    mark("{piece}  {count} of {total} texts, {share}\nthe model gives it {probability} here"),
    mark("{piece}  {count} of {total} texts = {share}\nraw p = {probability}, p = {settings} after the settings"),
)


def sample_node_report(tree: SampleTree, number: int) -> NodeReport:
    """Everything the inspector says of a node. Raises KeyError for the prompt and for strangers."""
    node = tree.node(number)
    siblings = tree.children(node.parent)
    return NodeReport(
        heading=tr("Node of the chorus"),
        term="chorus",
        token=token_text(node.piece, node.special),
        facts=_facts(tree, node),
        sentence=_sentence(tree, node),
        verdict=_count_text(node.count, tree.total),
        so_far=tree.text(number),
        table_title=tr("Token {depth} behind the same text").format(depth=node.depth),
        columns=_columns(),
        rows=_rows(tree, siblings, node),
    )


def sample_root_report(tree: SampleTree, last_word: str) -> NodeReport:
    """What the inspector says of the root: all texts begin here."""
    first = tree.children(ROOT)
    return NodeReport(
        heading=tr("Start of the chorus"),
        term="chorus",
        token=last_word,
        facts=format_text_count(tree.total),
        sentence=_first_tokens_text(len(first)),
        verdict=tr("Here the prompt ends, and every text begins."),
        table_title=tr("First token"),
        columns=_columns(),
        rows=_rows(tree, first, None),
    )


def _columns() -> tuple[str, ...]:
    return tr("continuation"), tr("texts"), tr("drawn"), tr("model")


def _count_text(count: int, total: int) -> str:
    """`3 of 16 texts came this way.`"""
    template = trn("{count:,} of {total:,} text came this way.", "{count:,} of {total:,} texts came this way.", total)
    return template.format(count=count, total=total)


def _first_tokens_text(first: int) -> str:
    if first > 1:
        return tr("Their first token is one of {count:,}.").format(count=first)
    return tr("All of them begin with the same token.") if first else ""


def sample_node_tooltip(tree: SampleTree, number: int) -> str:
    """Two lines on a node for the pointer; nothing for the root."""
    if number not in tree:
        return ""
    return str(_TIP.words(**_figures(tree, tree.node(number))))


def _facts(tree: SampleTree, node: SampleNode) -> str:
    return str(_FACTS.words(**_figures(tree, node)))


def _figures(tree: SampleTree, node: SampleNode) -> dict[str, str]:
    """What the sentences on a node may say, at the depth of now; `share` is of all texts."""
    return {
        "piece": token_text(node.piece, node.special),
        "depth": f"{node.depth:,}",
        "id": f"{node.token:,}",
        "rank": f"{node.rank:,}",
        "count": f"{node.count:,}",
        "total": f"{tree.total:,}",
        "share": share(tree.fraction(node.id)),
        "probability": share(node.probability),
        "settings": share(node.sampling_probability),
    }


def _sentence(tree: SampleTree, node: SampleNode) -> Sentence:
    arrived = tree.count_samples(node.parent)
    figures = _figures(tree, node) | {"came": f"{arrived:,}", "share": share(node.count / arrived)}
    return together(_MODEL.say(**figures), (_SINGLE if arrived == 1 else _COUNTS).say(**figures))


def _rows(tree: SampleTree, siblings: Sequence[SampleNode], own: SampleNode | None) -> tuple[ReportRow, ...]:
    """The continuations, the most frequent first; `own` is among them however rare it is."""
    shown = list(siblings[:MAX_ROWS])
    if own is not None and own not in shown:
        shown[-1] = own
    return tuple(
        ReportRow(
            (token_text(node.piece, node.special), f"{node.count:,}",
             words.brief_percent(node.count / tree.count_samples(node.parent)),
             words.brief_percent(node.probability)),
            strong=node is own,
        )
        for node in shown
    )  # fmt: skip
