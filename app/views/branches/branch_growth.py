"""From a family of runs to the nodes of a tree, and what is said of each. No Qt in here but the canvas's own model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.state.run_tree import RunTreeEntry
from app.views.node_reports import NodeReport
from app.views.text.token_wording import format_token_count
from app.widgets.tree_canvas.tree_model import NodeState, TreeNode
from core import cut_short
from resources.language import tr


def tree_nodes(members: Sequence[RunTreeEntry], shown: str) -> list[TreeNode]:
    """A node for each run, in the order given; a run whose parent is not there is a root of its own."""
    numbers = {member.id: number for number, member in enumerate(members)}
    roots = [member for member in members if member.parent not in numbers]
    return [_node(member, numbers, roots, member.id == shown) for member in members]


def _node(member: RunTreeEntry, numbers: Mapping[str, int], roots: Sequence[RunTreeEntry], is_shown: bool) -> TreeNode:
    state: NodeState = "root" if member in roots else "unreached" if member.is_scored else "kept"
    return TreeNode(
        numbers[member.id], numbers.get(member.parent), _label(member), note=_short_note(member),
        weight=0.3, state="best" if is_shown else state,
    )  # fmt: skip


def _label(member: RunTreeEntry) -> str:
    if member.is_scored:
        return tr("scored")
    return member.excerpt or "…"


def _short_note(member: RunTreeEntry) -> str:
    """As much as a box has room for."""
    if member.is_scored:
        return format_token_count(member.tokens)
    return tr("at token {number:,}").format(number=member.shared_tokens + 1) if member.parent else tr("the first run")


def _note(member: RunTreeEntry) -> str:
    if not member.parent or member.is_scored:
        return member.summary
    return f"{tr('at token {number:,}').format(number=member.shared_tokens + 1)} · {member.summary}"


def node_tooltip(member: RunTreeEntry) -> str:
    """What stands over a node."""
    return f"{_label(member)}\n{_note(member)}\n{_text_start(member.text, 160)}".strip()


def report_on(member: RunTreeEntry, parent: RunTreeEntry | None) -> NodeReport:
    """A run of the family in the inspector."""
    if member.is_scored:
        sentence = tr("The text of the run before it, scored: nothing was chosen.")
    elif parent is None:
        sentence = tr("The run that the others branched from.")
    else:
        sentence = tr("Its text is that of the run before it up to token {number:,}, then “{words}”.").format(
            number=member.shared_tokens, words=member.excerpt
        )
    return NodeReport(
        tr("Run of the family"), _label(member), _note(member), sentence, so_far=_text_start(member.text, 1200),
        term="branch",
    )  # fmt: skip


def _text_start(text: str, max_length: int) -> str:
    return cut_short(text.strip(), max_length)
