"""A round of speculation in plain words: what was drafted, what was kept, and why a token was accepted or refused."""

from __future__ import annotations

from collections.abc import Sequence

from core.events import DraftNode, DraftRound
from core.explain.tokens import percent


def explain_round(event: DraftRound) -> str:
    """One or two sentences on a round."""
    drafted, kept = len(event.nodes), len(event.accepted)
    return f"{_drafted(event, drafted)} {_kept(drafted, kept)}{_ending(event)}".strip()


def explain_node(node: DraftNode, event: DraftRound, drafters: Sequence[str] = ()) -> str:
    """Why this drafted token was accepted, refused or never looked at; ratio and die where dice decided.

    `drafters`: what they are called, in their order; without names they are told apart by letters.
    """
    name = _quote(node.piece)
    opening = f"{_drafter(node, event, drafters)} gave {name} {percent(node.draft_probability)}"
    if others := [number for number in node.proposers if number != node.drafter]:
        opening += f" ({' and '.join(_letter(number) for number in others)} proposed it too)"
    if node.fate == "unreached":
        return f"{opening}. It was never compared: {_why_unreached(node, event)}."
    target = f"the model {percent(node.target_probability)}"
    if node.ratio is not None and node.die is not None:
        return f"{opening}, {target}. {_dice(node)}"
    return f"{opening}, {target}. {_choice(node, event)}"


def _drafted(event: DraftRound, drafted: int) -> str:
    shape = "tokens" if drafted != 1 else "token"
    depth = max((node.depth for node in event.nodes), default=0)
    branches = f" in a tree {depth} deep" if depth < drafted else ""
    return f"{drafted} {shape} drafted{branches}, all checked in one pass of the model."


def _kept(drafted: int, kept: int) -> str:
    if kept == 0:
        return "None was kept"
    if kept == drafted:
        return "It was kept" if kept == 1 else f"All {kept} were kept"
    return f"{kept} {'was' if kept == 1 else 'were'} kept"


def _ending(event: DraftRound) -> str:
    if event.extra_kind == "bonus":
        return f", and {_quote(event.extra_piece)} came as a bonus from the same pass."
    if event.extra_kind == "correction":
        return f"; the model put {_quote(event.extra_piece)} in place of what it refused."
    return "; the text ended there."


def _drafter(node: DraftNode, event: DraftRound, names: Sequence[str]) -> str:
    name = names[node.drafter] if node.drafter < len(names) else ""
    if len(names) < 2 and len({other.drafter for other in event.nodes}) < 2:
        return name or "The drafter"
    return f"Drafter {_letter(node.drafter)}{f', {name},' if name else ''}"


def _letter(drafter: int) -> str:
    return chr(ord("A") + drafter)


def _dice(node: DraftNode) -> str:
    assert node.ratio is not None
    assert node.die is not None
    if node.ratio >= 1:
        return "The model likes it at least as much as the drafter, so it is accepted whatever the die says."
    rule = f"Accepted if the die is below {node.ratio:.2f}; it showed {node.die:.2f}"
    return f"{rule}, so it was accepted." if node.fate == "accepted" else f"{rule}, so it was refused."


def _choice(node: DraftNode, event: DraftRound) -> str:
    if node.fate == "accepted":
        return "It is the model's own first choice here, so it was accepted."
    chosen = next((_quote(other.piece) for other in event.nodes
                   if other.parent == node.parent and other.fate == "accepted"), None)  # fmt: skip
    if chosen is None and event.extra_kind == "correction" and _is_end(node.parent, event):
        chosen = _quote(event.extra_piece)
    return f"The model's first choice here is {chosen or 'another token'}, so it was refused."


def _is_end(node: int, event: DraftRound) -> bool:
    return node == (event.accepted[-1] if event.accepted else 0)


def _why_unreached(node: DraftNode, event: DraftRound) -> str:
    fates = {other.node: other.fate for other in event.nodes}
    parent = fates.get(node.parent, "accepted")
    if parent == "accepted":
        if event.extra_kind == "none" and _is_end(node.parent, event):
            return "the text had ended"
        return "another token was accepted in its place"
    return "a token before it was not accepted"


def _quote(piece: str) -> str:
    """The token in quotation marks; white space by name."""
    word = piece.strip()
    if not word:
        return {"\n": "a line break", " ": "a space"}.get(piece, "white space" if piece else "an empty token")
    return f"“{word}”"
