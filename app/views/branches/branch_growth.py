"""From a family of runs to the nodes of a tree, and what is said of each. No Qt in here but the canvas's own model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.state.run_tree import Member
from app.views.node_reports import NodeReport
from app.views.text.token_wording import tokens_told
from app.widgets.tree_canvas.tree_model import NodeState, TreeNode
from core import cut_short
from resources.language import tr


def nodes_of(members: Sequence[Member], shown: str) -> list[TreeNode]:
    """A node for each run, in the order given; a run whose parent is not there is a root of its own."""
    numbers = {member.id: number for number, member in enumerate(members)}
    roots = [member for member in members if member.parent not in numbers]
    return [_node(member, numbers, roots, member.id == shown) for member in members]


def _node(member: Member, numbers: Mapping[str, int], roots: Sequence[Member], is_shown: bool) -> TreeNode:
    state: NodeState = "root" if member in roots else "unreached" if member.is_scored else "kept"
    return TreeNode(
        numbers[member.id], numbers.get(member.parent), _label(member), note=_short_note(member),
        weight=0.3, state="best" if is_shown else state,
    )  # fmt: skip


def _label(member: Member) -> str:
    if member.is_scored:
        return tr("scored")
    return member.words or "…"


def _short_note(member: Member) -> str:
    """As much as a box has room for."""
    if member.is_scored:
        return tokens_told(member.tokens)
    return tr("at token {number:,}").format(number=member.place + 1) if member.parent else tr("the first run")


def _note(member: Member) -> str:
    if not member.parent or member.is_scored:
        return member.about
    return f"{tr('at token {number:,}').format(number=member.place + 1)} · {member.about}"


def tip(member: Member) -> str:
    """What stands over a node."""
    return f"{_label(member)}\n{_note(member)}\n{_opening(member.text, 160)}".strip()


def report_on(member: Member, parent: Member | None) -> NodeReport:
    """A run of the family in the inspector."""
    if member.is_scored:
        sentence = tr("The text of the run before it, scored: nothing was chosen.")
    elif parent is None:
        sentence = tr("The run that the others branched from.")
    else:
        sentence = tr("Its text is that of the run before it up to token {number:,}, then “{words}”.").format(
            number=member.place, words=member.words
        )
    return NodeReport(
        tr("Run of the family"), _label(member), _note(member), sentence, so_far=_opening(member.text, 1200),
        term="branch",
    )  # fmt: skip


def _opening(text: str, most: int) -> str:
    return cut_short(text.strip(), most)
