"""The inspector's report on a node of the sample tree: sample count, model probability, alternatives. No Qt in here."""

from __future__ import annotations

from collections.abc import Sequence

from decodescope.app.state.sample_tree import ROOT, SampleNode, SampleTree
from decodescope.app.views.node_reports import NodeReport, ReportRow
from decodescope.app.views.text.token_wording import format_text_count, token_text
from decodescope.core import Sentence, SentenceTemplate, share, together, words
from decodescope.resources.language import mark, tr, trn

MAX_ROWS = 12
_MODEL = SentenceTemplate(
    mark("The model gives this word piece {probability} here, and {settings} after the settings are applied."),
    mark("The model gives this token {probability} here, and {settings} after the settings."),
    mark("Raw p = {probability}, raw rank {rank}; p = {settings} after the settings."),
)
_SINGLE = SentenceTemplate(
    mark("One sample reached this position, and it was drawn at random there."),
    mark("The only sample that reached this position drew it."),
    mark("Drawn by the only sample that reached this position."),
)
_COUNTS = SentenceTemplate(
    mark("{came} samples reached this position, and it was drawn in {count} of them: {share}."),
    mark("Of the {came} samples that reached this position, {count} drew it ({share})."),
    mark("Drawn by {count} of the {came} samples that reached this position: {share}, compared with p = {settings}."),
)
_FACTS = SentenceTemplate(
    mark("word piece {depth} · {count} of {total} samples · number {rank} on the model's list"),
    mark("token {depth} · {share} of the samples · rank {rank}"),
    mark("token {depth} · id {id} · {count} of {total} samples = {share} · raw rank {rank}"),
)
_TIP = SentenceTemplate(
    mark("{piece}  {count} of {total} samples\nthe model gives it {probability} here"),
    mark("{piece}  {count} of {total} samples, {share}\nthe model gives it {probability} here"),
    mark("{piece}  {count} of {total} samples = {share}\nraw p = {probability}, p = {settings} after the settings"),
)


def sample_node_report(tree: SampleTree, number: int) -> NodeReport:
    """Return the report on a node. Raises KeyError for the root and for unknown nodes."""
    node = tree.node(number)
    siblings = tree.children(node.parent)
    return NodeReport(
        heading=tr("Sample tree node"),
        term="several_samples",
        token=token_text(node.piece, node.special),
        facts=_facts(tree, node),
        sentence=_sentence(tree, node),
        verdict=_count_text(node.count, tree.total),
        so_far=tree.text(number),
        table_title=tr("Token {depth} after the same text").format(depth=node.depth),
        columns=_columns(),
        rows=_rows(tree, siblings, node),
    )


def sample_root_report(tree: SampleTree, last_word: str) -> NodeReport:
    """Return the report on the root, where all samples start."""
    first = tree.children(ROOT)
    return NodeReport(
        heading=tr("Start of the samples"),
        term="several_samples",
        token=last_word,
        facts=format_text_count(tree.total),
        sentence=_first_tokens_text(len(first)),
        verdict=tr("The prompt ends here; all samples start here."),
        table_title=tr("First token"),
        columns=_columns(),
        rows=_rows(tree, first, None),
    )


def _columns() -> tuple[str, ...]:
    return tr("continuation"), tr("samples"), tr("drawn"), tr("model")


def _count_text(count: int, total: int) -> str:
    """Return a sentence such as `3 of 16 samples came this way.` for a node's counts."""
    template = trn(
        "{count:,} of {total:,} sample came this way.", "{count:,} of {total:,} samples came this way.", total
    )
    return template.format(count=count, total=total)


def _first_tokens_text(first: int) -> str:
    if first > 1:
        return tr("There are {count:,} different first tokens.").format(count=first)
    return tr("All start with the same token.") if first else ""


def sample_node_tooltip(tree: SampleTree, number: int) -> str:
    """Return the tooltip of a node; empty for the root."""
    if number not in tree:
        return ""
    return str(_TIP.words(**_figures(tree, tree.node(number))))


def _facts(tree: SampleTree, node: SampleNode) -> str:
    return str(_FACTS.words(**_figures(tree, node)))


def _figures(tree: SampleTree, node: SampleNode) -> dict[str, str]:
    """Return the placeholders for a node's sentences at the current level of detail; `share` is the fraction of all
    samples.
    """
    return {
        "piece": token_text(node.piece, node.special),
        "depth": f"{node.depth:,}",
        "id": f"{node.token:,}",
        "rank": f"{node.rank:,}",
        "count": f"{node.count:,}",
        "total": f"{tree.total:,}",
        "share": share(tree.fraction(node.id), is_exact=True),
        "probability": share(node.probability),
        "settings": share(node.sampling_probability),
    }


def _sentence(tree: SampleTree, node: SampleNode) -> Sentence:
    arrived = tree.count_samples(node.parent)
    figures = _figures(tree, node) | {"came": f"{arrived:,}", "share": share(node.count / arrived, is_exact=True)}
    return together(_MODEL.say(**figures), (_SINGLE if arrived == 1 else _COUNTS).say(**figures))


def _rows(tree: SampleTree, siblings: Sequence[SampleNode], own: SampleNode | None) -> tuple[ReportRow, ...]:
    """Return rows of the continuations, most frequent first; `own` is always included."""
    shown = list(siblings[:MAX_ROWS])
    if own is not None and own not in shown:
        shown[-1] = own
    return tuple(
        ReportRow(
            (token_text(node.piece, node.special), f"{node.count:,}",
             words.brief_percent(node.count / tree.count_samples(node.parent), is_exact=True),
             words.brief_percent(node.probability)),
            strong=node is own,
        )
        for node in shown
    )  # fmt: skip
