"""A round of speculation in plain words: what was drafted, what was kept, and why a token was accepted or refused."""

from __future__ import annotations

from collections.abc import Sequence

from core.events import DraftNode, DraftRound, ExtraKind
from core.explain.sentence import Sentence, fill, say, together
from core.explain.tokens import share
from core.explain.words import count, quote

_EXTRAS: dict[ExtraKind, str] = {
    "bonus": "Every drafted token on this path was accepted, and the same pass of the model gave one more for nothing.",
    "correction": "Here the model disagreed with the draft, and wrote its own token instead.",
    "none": "",
}


def explain_round(event: DraftRound) -> Sentence:
    """Two sentences on a round."""
    drafted, kept = len(event.nodes), len(event.accepted)
    return together(_drafted(event, drafted), say("{}{}", _kept(drafted, kept), _ending(event)))


def explain_draft(node: DraftNode, event: DraftRound, drafters: Sequence[str] = ()) -> Sentence:
    """Why this drafted token was accepted, refused or never looked at; ratio and die where dice decided.

    `drafters`: what they are called, in their order; without names they are told apart by letters.
    """
    opening = fill("{} gave {} {}{}", _drafter(node, event, drafters), quote(node.piece), share(node.draft_probability),
                   _others(node))  # fmt: skip
    if node.fate == "unreached":
        return say("{}. It was never compared: {}.", opening, _why_unreached(node, event))
    why = _dice(node) if node.ratio is not None else _choice(node, event)
    return together(say("{}, the model {}.", opening, share(node.target_probability)), why)


def explain_extra(event: DraftRound) -> Sentence:
    """Where the token that the target itself added comes from; empty where there is none."""
    return Sentence(_EXTRAS[event.extra_kind])


def _others(node: DraftNode) -> str:
    others = [_letter(number) for number in node.proposers if number != node.drafter]
    return f" ({' and '.join(others)} proposed it too)" if others else ""


def _drafted(event: DraftRound, drafted: int) -> str:
    if drafted == 1:
        return "1 token drafted, and checked in one pass of the model."
    depth = max((node.depth for node in event.nodes), default=0)
    branches = f" in a tree {depth} deep" if depth < drafted else ""
    return f"{count(drafted, 'token')} drafted{branches}, all checked in one pass of the model."


def _kept(drafted: int, kept: int) -> str:
    if kept == 0:
        return "It was not kept" if drafted == 1 else "None was kept"
    if kept == drafted:
        return "It was kept" if kept == 1 else f"All {kept} were kept"
    return f"{kept} {'was' if kept == 1 else 'were'} kept"


def _ending(event: DraftRound) -> str:
    if event.extra_kind == "bonus":
        return f", and {quote(event.extra_piece)} came as a bonus from the same pass."
    if event.extra_kind == "correction":
        return f"; the model put {quote(event.extra_piece)} in place of what it refused."
    return "; the text ended there."


def _drafter(node: DraftNode, event: DraftRound, names: Sequence[str]) -> str:
    name = names[node.drafter] if node.drafter < len(names) else ""
    if len(names) < 2 and len({other.drafter for other in event.nodes}) < 2:
        return f"The drafter {name}".strip()
    return f"Drafter {_letter(node.drafter)}{f', {name},' if name else ''}"


def _letter(drafter: int) -> str:
    return chr(ord("A") + drafter)


def _dice(node: DraftNode) -> str:
    ratio, die = node.ratio or 0.0, node.die or 0.0
    if ratio >= 1:
        return "The model likes it at least as much as the drafter, so it is accepted whatever the die says."
    digits = next((n for n in range(2, 6) if f"{ratio:.{n}f}" != f"{die:.{n}f}"), 6)
    rule = f"Accepted if the die is below {ratio:.{digits}f}; it showed {die:.{digits}f}"
    return f"{rule}, so it was {'accepted' if node.fate == 'accepted' else 'refused'}."


def _choice(node: DraftNode, event: DraftRound) -> str:
    if node.fate == "accepted":
        return "It is what the model alone would write here, so it was accepted."
    chosen = next((quote(other.piece) for other in event.nodes
                   if other.parent == node.parent and other.fate == "accepted"), None)  # fmt: skip
    if chosen is None and event.extra_kind == "correction" and _is_end(node.parent, event):
        chosen = quote(event.extra_piece)
    return f"The model alone would write {chosen or 'another token'} here, so it was refused."


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
