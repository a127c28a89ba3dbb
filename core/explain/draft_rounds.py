"""A round of speculation in words: what was drafted, what was kept, and why a token was accepted or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.explain.sentence import Saying, Sentence, together
from core.explain.words import format_share_pair, quote, share
from resources import depth
from resources.language import mark, tr, trn

if TYPE_CHECKING:
    from core.events import ChoiceReason, DraftNode, DraftRound, ExtraKind

_ONE_DRAFTED = Saying(
    mark("1 word piece was guessed ahead, and checked in one go."),
    mark("1 token drafted, and checked in one pass of the model."),
    mark("1 node drafted (length asked for: {length}), verified in one pass of the target."),
)
_DRAFTED = Saying(
    mark("{count} word pieces were guessed ahead, all checked in one go."),
    mark("{count} tokens drafted, all checked in one pass of the model."),
    mark("{count} nodes drafted in a chain (length asked for: {length}), verified in one pass of the target."),
)
_TREE_DRAFTED = Saying(
    mark("{count} word pieces were guessed ahead, in several versions, all checked in one go."),
    mark("{count} tokens drafted in a tree {depth} deep, all checked in one pass of the model."),
    mark("{count} nodes drafted in a tree {depth} deep (length asked for: {length}), verified in one pass of the "
         "target."),
)  # fmt: skip
_IT_WAS_NOT = Saying(mark("it was wrong"), mark("it was not kept"), mark("0 of 1 accepted"))
_NONE_WAS = Saying(mark("none was right"), mark("none was kept"), mark("0 of {count} accepted"))
_IT_WAS = Saying(mark("it was right"), mark("it was kept"), mark("1 of 1 accepted"))
_ALL_WERE = Saying(mark("all {kept} were right"), mark("all {kept} were kept"), mark("{kept} of {count} accepted"))
_ONE_WAS = Saying(mark("1 was right"), mark("1 was kept"), mark("1 of {count} accepted"))
_SOME_WERE = Saying(mark("{kept} were right"), mark("{kept} were kept"), mark("{kept} of {count} accepted"))
_ENDINGS: dict[ExtraKind, Saying] = {
    "bonus": Saying(
        mark("{outcome}, and {extra} came on top for nothing."),
        mark("{outcome}, and {extra} came as a bonus from the same pass."),
        mark("{outcome}; bonus {extra} from the same pass."),
    ),
    "correction": Saying(
        mark("{outcome}; where the guess went wrong, the model wrote {extra}."),
        mark("{outcome}; the model put {extra} in place of what it refused."),
        mark("{outcome}; correction {extra} at the first refusal."),
    ),
    "none": Saying(
        mark("{outcome}; the text ended there."),
        mark("{outcome}; the text ended there."),
        mark("{outcome}; the text ended there, without a token of the target's own."),
    ),
}
_EXTRAS: dict[ExtraKind, Saying] = {
    "bonus": Saying(
        mark("Everything guessed before it was right, and checking gave one more for nothing."),
        mark("Every drafted token on this path was accepted, and the same pass of the model gave one more for "
             "nothing."),
        mark("Every node of this path was accepted: the bonus comes from p behind its last node, in the same pass."),
    ),
    "correction": Saying(
        mark("Here the model would not have what was guessed, and wrote its own instead."),
        mark("Here the model disagreed with the draft, and wrote its own token instead."),
        mark("Here the draft was refused: the correction comes from the target's p, less what was refused where dice "
             "decide."),
    ),
}  # fmt: skip
_COMPARED = Saying(
    mark("{who} gave {name} {share}{others}, the model {target}."),
    mark("{who} gave {name} {share}{others}, the model {target}."),
    mark("{who} gave {name} q = {share}{others}, the target p = {target}."),
)
_UNREACHED = Saying(
    mark("{who} gave {name} {share}{others}. Nobody looked at it: {reason}."),
    mark("{who} gave {name} {share}{others}. It was never compared: {reason}."),
    mark("{who} gave {name} q = {share}{others}. It was never compared: {reason}."),
)
_TEXT_HAD_ENDED = mark("the text had ended")
_ANOTHER_TAKEN = mark("another token was accepted in its place")
_PARENT_OUT = mark("a token before it was not accepted")
_ANOTHER_TAKEN_PLAINLY = mark("another guess was taken in its place")
_PARENT_OUT_PLAINLY = mark("a guess before it was wrong")
_CERTAINLY_ACCEPTED = Saying(
    mark("The model likes it at least as much, so it may stay whatever the dice say."),
    mark("The model likes it at least as much as the drafter, so it is accepted whatever the die says."),
    mark("With p ≥ q, min(1, p ÷ q) = 1: accepted."),
)
_RANDOMLY_ACCEPTED = Saying(
    mark("Dice decided, with a chance of {chance}: it may stay."),
    mark("Accepted if the die is below {ratio}; it showed {die}, so it was accepted."),
    mark("The die u = {die} < {ratio} = min(1, p ÷ q): accepted."),
)
_RANDOMLY_REJECTED = Saying(
    mark("Dice decided, with a chance of {chance}: it had to go."),
    mark("Accepted if the die is below {ratio}; it showed {die}, so it was refused."),
    mark("The die u = {die} ≥ {ratio} = min(1, p ÷ q): refused."),
)
_SAME = Saying(
    mark("It is what the model itself would write here, so it may stay."),
    mark("It is what the model alone would write here, so it was accepted."),
    mark("It equals the target's own choice here: accepted."),
)
_OTHER = Saying(
    mark("The model itself would write {other} here, so it had to go."),
    mark("The model alone would write {other} here, so it was refused."),
    mark("The target's own choice here is {other}: refused."),
)
_ANOTHER = Saying(
    mark("The model itself would write something else here, so it had to go."),
    mark("The model alone would write another token here, so it was refused."),
    mark("The target's own choice here is another: refused."),
)
_FORBIDDEN = Saying(
    mark("The grammar forbids it here, so it had to go."),
    mark("The grammar forbids it here, so it was refused."),
    mark("Stage grammar set its logit to −∞: refused."),
)
_DRAFTER = Saying(mark("The quick guess"), mark("The drafter"), mark("The drafter"))
_NAMED_DRAFTER = Saying(mark("The quick guess of {model}"), mark("The drafter {model}"), mark("The drafter {model}"))
_LETTER = Saying(mark("Guess {letter}"), mark("Drafter {letter}"), mark("Drafter {letter}"))
_NAMED_LETTER = Saying(
    mark("Guess {letter}, of {model},"), mark("Drafter {letter}, {model},"), mark("Drafter {letter}, {model},")
)
_TOO = Saying(
    mark(" (so did {letters})"), mark(" ({letters} proposed it too)"), mark(" (proposed by {letters} as well)")
)

_POOL = Saying(
    mark("The model has {size} short phrases in store."),
    mark("The pool holds {size} n-grams; those that begin with the last token were checked."),
    mark("Pool: {size} n-grams, of which those behind the last token were verified as a prefix tree."),
)
_FOUND = Saying(
    mark("While it checked, it thought of {found}."),
    mark("The same pass brought {found}."),
    mark("New n-grams of this pass's window: {found}."),
)
_MAX_LISTED = 5
_LETTER_ONLY = Saying(mark("helper {letter}"), mark("drafter {letter}"), mark("drafter {letter}"))
_LETTER_AND_NAME = Saying(
    mark("helper {letter} ({name})"), mark("drafter {letter} ({name})"), mark("drafter {letter} ({name})")
)  # fmt: skip
_CHOSEN: dict[ChoiceReason, Saying] = {
    "best": Saying(
        mark("{who} was asked: it has saved the most time so far."),
        mark("{who} was asked: with it the text has grown {worth} times as fast as without drafts, the most so far."),
        mark("Asked: {who}, by what each has earned, speed ÷ plain decoding's ({how}): {worths}."),
    ),
    "untried": Saying(
        mark("{who} was asked: it has hardly been tried."),
        mark("{who} was asked, to see what it earns: it had drafted {times}."),
        mark("Asked: {who}, which had drafted {times}; each drafts twice before any is judged."),
    ),
    "retried": Saying(
        mark("{who} was asked again: it may have become better."),
        mark("{who} was asked again: so far {best} has earned more, but it was asked so seldom that it may earn more "
             "still."),
        mark("Asked: {who} ({times} so far), by discounted UCB over what each has earned, speed ÷ plain decoding's "
             "({how}): {worths}."),
    ),
    "silent": Saying(
        mark("{silent} had no guess, so {who} was asked."),
        mark("{silent} had no guess, so {who} was asked."),
        mark("{silent} proposed nothing; next by what each has earned, speed ÷ plain decoding's ({how}): {worths}."),
    ),
}  # fmt: skip


def explain_choice(event: DraftRound, drafters: Sequence[str] = ()) -> Sentence:
    """Which of several drafters was asked, and why; empty where there was no choice. `drafters`: their names."""
    choice = event.choice
    if choice is None:
        return Sentence()
    names = [_drafter_name(number, drafters) for number in range(len(choice.worths))]
    best = max(range(len(names)), key=choice.worths.__getitem__)
    times = choice.times[choice.asked]
    return _CHOSEN[choice.reason].say(
        who=names[choice.asked], worth=f"{choice.worths[choice.asked]:.2f}", best=names[best],
        times=trn("{count} time", "{count} times", times).format(count=times),
        how=tr("counted") if choice.is_counted else tr("measured"),
        worths=", ".join(f"{name} {worth:.2f}" for name, worth in zip(names, choice.worths, strict=True)),
        silent=tr(" and ").join(names[number] for number in choice.silent),
    )  # fmt: skip


def explain_pool(event: DraftRound) -> Sentence:
    """What lookahead decoding holds, and which n-grams the round's pass brought; empty for any other strategy."""
    pool = event.pool
    if pool is None:
        return Sentence()
    held = _POOL.say(size=f"{pool.size:,}")
    if not pool.found:
        return held
    told = ", ".join(quote("".join(ngram), False) for ngram in pool.found[:_MAX_LISTED])
    more = len(pool.found) - _MAX_LISTED
    told = tr("{found} and {more} more").format(found=told, more=more) if more > 0 else told
    return together(held, _FOUND.say(found=told))


def _drafter_name(number: int, names: Sequence[str]) -> str:
    known = number < len(names)
    return (_LETTER_AND_NAME if known else _LETTER_ONLY).words(
        letter=_letter(number), name=names[number] if known else ""
    )


def explain_round(event: DraftRound) -> Sentence:
    """Two sentences on a round, at the depth and in the language of now."""
    deep = max((node.depth for node in event.nodes), default=0)
    drafted, kept = len(event.nodes), len(event.accepted)
    facts = {"count": f"{drafted:,}", "depth": f"{deep}", "length": f"{event.length}", "kept": f"{kept}"}
    first = _ONE_DRAFTED if drafted == 1 else _TREE_DRAFTED if deep < drafted else _DRAFTED
    outcome = _outcome_template(drafted, kept).say(**facts)
    return together(
        first.say(**facts),
        _ENDINGS[event.extra_kind].say(outcome=outcome, extra=quote(event.extra_piece, event.extra_special)),
    )


def explain_draft(node: DraftNode, event: DraftRound, drafters: Sequence[str] = ()) -> Sentence:
    """Why this drafted token was accepted, refused or never looked at; ratio and die where dice decided.

    `drafters`: what they are called, in their order; without names they are told apart by letters.
    """
    facts = {
        "who": _drafter_phrase(node, event, drafters),
        "name": quote(node.piece, node.special),
        "others": _other_proposers(node),
    }
    if node.fate == "unreached":
        return _UNREACHED.say(**facts, share=share(node.draft_probability), reason=_unreached_reason(node, event))
    drafted, target = format_share_pair(node.draft_probability, node.target_probability)
    if node.cut_by == "grammar":
        return together(_COMPARED.say(**facts, share=drafted, target=target), _FORBIDDEN.say())
    why = _explain_ratio(node) if node.ratio is not None else _explain_greedy(node, event)
    return together(_COMPARED.say(**facts, share=drafted, target=target), why)


def explain_extra(event: DraftRound) -> Sentence:
    """Where the token that the target itself added comes from; empty where there is none."""
    return _EXTRAS[event.extra_kind].say() if event.extra_kind in _EXTRAS else Sentence()


def _outcome_template(drafted: int, kept: int) -> Saying:
    if kept == 0:
        return _IT_WAS_NOT if drafted == 1 else _NONE_WAS
    if kept == drafted:
        return _IT_WAS if kept == 1 else _ALL_WERE
    return _ONE_WAS if kept == 1 else _SOME_WERE


def _other_proposers(node: DraftNode) -> str:
    others = [_letter(number) for number in node.proposers if number != node.drafter]
    return _TOO.words(letters=tr(" and ").join(others)) if others else ""


def _drafter_phrase(node: DraftNode, event: DraftRound, names: Sequence[str]) -> str:
    name = names[node.drafter] if node.drafter < len(names) else ""
    facts = {"letter": _letter(node.drafter), "model": name}
    if len(names) < 2 and len({other.drafter for other in event.nodes}) < 2:
        return (_NAMED_DRAFTER if name else _DRAFTER).words(**facts)
    return (_NAMED_LETTER if name else _LETTER).words(**facts)


def _letter(drafter: int) -> str:
    return chr(ord("A") + drafter)


def _explain_ratio(node: DraftNode) -> Sentence:
    ratio, die = node.ratio or 0.0, node.die or 0.0
    if ratio >= 1:
        return _CERTAINLY_ACCEPTED.say()
    digits = next((n for n in range(depth.pick(2, 2, 4), 9) if f"{ratio:.{n}f}" != f"{die:.{n}f}"), 9)
    saying = _RANDOMLY_ACCEPTED if node.fate == "accepted" else _RANDOMLY_REJECTED
    return saying.say(chance=share(ratio), ratio=f"{ratio:.{digits}f}", die=f"{die:.{digits}f}")


def _explain_greedy(node: DraftNode, event: DraftRound) -> Sentence:
    if node.fate == "accepted":
        return _SAME.say()
    chosen = next((quote(other.piece, other.special) for other in event.nodes
                   if other.parent == node.parent and other.fate == "accepted"), None)  # fmt: skip
    if chosen is None and event.extra_kind == "correction" and _is_last_accepted(node.parent, event):
        chosen = quote(event.extra_piece, event.extra_special)
    return _OTHER.say(other=chosen) if chosen else _ANOTHER.say()


def _is_last_accepted(node: int, event: DraftRound) -> bool:
    return node == (event.accepted[-1] if event.accepted else 0)


def _unreached_reason(node: DraftNode, event: DraftRound) -> str:
    fates = {other.node: other.fate for other in event.nodes}
    if fates.get(node.parent, "accepted") != "accepted":
        return tr(depth.pick(_PARENT_OUT_PLAINLY, _PARENT_OUT, _PARENT_OUT))
    if event.extra_kind == "none" and _is_last_accepted(node.parent, event):
        return tr(_TEXT_HAD_ENDED)
    return tr(depth.pick(_ANOTHER_TAKEN_PLAINLY, _ANOTHER_TAKEN, _ANOTHER_TAKEN))
