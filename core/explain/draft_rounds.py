"""Explain a round of speculation: what was drafted and accepted, and why a token was accepted or rejected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope.core.explain.sentence import Sentence, SentenceTemplate, together
from decodescope.core.explain.words import format_share_pair, quote, share
from decodescope.resources import depth
from decodescope.resources.language import join_names, mark, tr, trn

if TYPE_CHECKING:
    from decodescope.core.events import ChoiceReason, DraftNode, DraftRound, ExtraKind

_ONE_DRAFTED = SentenceTemplate(
    mark("1 word piece was guessed ahead, and checked in one go."),
    mark("1 token drafted, and verified in one pass of the model."),
    mark("1 node drafted (requested length: {length}), verified in one pass of the target."),
)
_DRAFTED = SentenceTemplate(
    mark("{count} word pieces were guessed ahead, all checked in one go."),
    mark("{count} tokens drafted, all verified in one pass of the model."),
    mark("{count} nodes drafted in a chain (requested length: {length}), verified in one pass of the target."),
)
_TREE_DRAFTED = SentenceTemplate(
    mark("{count} word pieces were guessed ahead, in several versions, all checked in one go."),
    mark("{count} tokens drafted in a tree of depth {depth}, all verified in one pass of the model."),
    mark("{count} nodes drafted in a tree of depth {depth} (requested length: {length}), verified in one "
        "pass of the target."),
)  # fmt: skip
_IT_WAS_NOT = SentenceTemplate(mark("it was wrong"), mark("it was rejected"), mark("0 of 1 accepted"))
_NONE_WAS = SentenceTemplate(mark("none was right"), mark("none was accepted"), mark("0 of {count} accepted"))
_IT_WAS = SentenceTemplate(mark("it was right"), mark("it was accepted"), mark("1 of 1 accepted"))
_ALL_WERE = SentenceTemplate(
    mark("all {kept} were right"), mark("all {kept} were accepted"), mark("{kept} of {count} accepted")
)
_ONE_WAS = SentenceTemplate(mark("1 was right"), mark("1 was accepted"), mark("1 of {count} accepted"))
_SOME_WERE = SentenceTemplate(
    mark("{kept} were right"), mark("{kept} were accepted"), mark("{kept} of {count} accepted")
)
_ENDINGS: dict[ExtraKind, SentenceTemplate] = {
    "bonus": SentenceTemplate(
        mark("{outcome}, and {extra} came free."),
        mark("{outcome}, and {extra} came as a bonus from the same pass."),
        mark("{outcome}; bonus {extra} from the same pass."),
    ),
    "correction": SentenceTemplate(
        mark("{outcome}; where the guess went wrong, the model wrote {extra}."),
        mark("{outcome}; the model replaced the first rejected one with {extra}."),
        mark("{outcome}; correction {extra} at the first rejection."),
    ),
    "none": SentenceTemplate(
        mark("{outcome}; the text ended there."),
        mark("{outcome}; the text ended there."),
        mark("{outcome}; the text ended there, without an extra token of the target."),
    ),
}
_EXTRAS: dict[ExtraKind, SentenceTemplate] = {
    "bonus": SentenceTemplate(
        mark("Every guess before it was right, and checking gave one more for free."),
        mark("Every drafted token on this path was accepted, and the same pass of the model gave one more "
            "for free."),
        mark("Every node of this path was accepted: the bonus is chosen from p after its last node, in the "
            "same pass."),
    ),
    "correction": SentenceTemplate(
        mark("Here the model rejected the guess and wrote its own choice."),
        mark("Here the model disagreed with the draft and wrote its own token."),
        mark("Here the draft was rejected: the correction is chosen from the target's p, minus the rejected "
            "part when sampling."),
    ),
}  # fmt: skip
_COMPARED = SentenceTemplate(
    mark("{who} gave {name} {share}{others}, the model {target}."),
    mark("{who} gave {name} {share}{others}, the model {target}."),
    mark("{who} gave {name} q = {share}{others}, the target p = {target}."),
)
_UNREACHED = SentenceTemplate(
    mark("{who} gave {name} {share}{others}. It was not checked: {reason}."),
    mark("{who} gave {name} {share}{others}. It was not compared: {reason}."),
    mark("{who} gave {name} q = {share}{others}. It was not compared: {reason}."),
)
_TEXT_HAD_ENDED = mark("the text had ended")
_ANOTHER_TAKEN = mark("another token was accepted in its place")
_PARENT_OUT = mark("a token before it was not accepted")
_ANOTHER_TAKEN_PLAINLY = mark("another guess was taken in its place")
_PARENT_OUT_PLAINLY = mark("a guess before it was wrong")
_CERTAINLY_ACCEPTED = SentenceTemplate(
    mark("The model rates it at least as likely, so it stays in any case."),
    mark("The model rates it at least as likely as the drafter, so it is always accepted."),
    mark("With p ≥ q, min(1, p ÷ q) = 1: accepted."),
)
_RANDOMLY_ACCEPTED = SentenceTemplate(
    mark("Chance decided, with odds of {chance}: it stays."),
    mark("Accepted if the random number is below {ratio}; it was {die}, so it was accepted."),
    mark("Random number u = {die} < {ratio} = min(1, p ÷ q): accepted."),
)
_RANDOMLY_REJECTED = SentenceTemplate(
    mark("Chance decided, with odds of {chance}: it was dropped."),
    mark("Accepted if the random number is below {ratio}; it was {die}, so it was rejected."),
    mark("Random number u = {die} ≥ {ratio} = min(1, p ÷ q): rejected."),
)
_CERTAINLY_LEFT = SentenceTemplate(
    mark("After what was tried before it, it has enough of the model's chances left to stay in any case."),
    mark("Of the probability that the tokens tried before it left, it has at least as much as the drafter gave it, so "
         "it is always accepted."),
    mark("With p′ the rest of p after the trials before it: p′ ≥ q, min(1, p′ ÷ q) = 1: accepted."),
)  # fmt: skip
_LEFT_ACCEPTED = SentenceTemplate(
    *_RANDOMLY_ACCEPTED[:2],
    mark("Random number u = {die} < {ratio} = min(1, p′ ÷ q), with p′ the rest of p after the trials before it: "
         "accepted."),
)  # fmt: skip
_LEFT_REJECTED = SentenceTemplate(
    *_RANDOMLY_REJECTED[:2],
    mark("Random number u = {die} ≥ {ratio} = min(1, p′ ÷ q), with p′ the rest of p after the trials before it: "
         "rejected."),
)  # fmt: skip
_SAME = SentenceTemplate(
    mark("The model itself would write it here, so it stays."),
    mark("The model alone would choose it here, so it was accepted."),
    mark("It equals the target's own choice: accepted."),
)
_OTHER = SentenceTemplate(
    mark("The model itself would write {other} here, so it was dropped."),
    mark("The model alone would choose {other} here, so it was rejected."),
    mark("The target's own choice is {other}: rejected."),
)
_ANOTHER = SentenceTemplate(
    mark("The model itself would write something else here, so it was dropped."),
    mark("The model alone would choose another token here, so it was rejected."),
    mark("The target's own choice is different: rejected."),
)
_FORBIDDEN = SentenceTemplate(
    mark("The grammar forbids it here, so it was dropped."),
    mark("The grammar forbids it here, so it was rejected."),
    mark("Stage grammar set its logit to −∞: rejected."),
)
_DRAFTER = SentenceTemplate(mark("The quick guess"), mark("The drafter"), mark("The drafter"))
_NAMED_DRAFTER = SentenceTemplate(
    mark("The quick guess of {model}"), mark("The drafter {model}"), mark("The drafter {model}")
)
_LETTER = SentenceTemplate(mark("Guess {letter}"), mark("Drafter {letter}"), mark("Drafter {letter}"))
_NAMED_LETTER = SentenceTemplate(
    mark("Guess {letter}, of {model},"), mark("Drafter {letter}, {model},"), mark("Drafter {letter}, {model},")
)
_TOO = SentenceTemplate(
    mark(" (so did {letters})"), mark(" ({letters} proposed it too)"), mark(" (proposed by {letters} as well)")
)

_POOL = SentenceTemplate(
    mark("The model has stored {size} short phrases."),
    mark("The pool has {size} n-grams; those that begin with the last token were verified."),
    mark("Pool: {size} n-grams, of which those after the last token were verified as a prefix tree."),
)
_FOUND = SentenceTemplate(
    mark("While checking, it found {found}."),
    mark("The same pass added {found}."),
    mark("New n-grams from this pass's window: {found}."),
)
_MAX_LISTED = 5
_LETTER_ONLY = SentenceTemplate(mark("helper {letter}"), mark("drafter {letter}"), mark("drafter {letter}"))
_LETTER_AND_NAME = SentenceTemplate(
    mark("helper {letter} ({name})"), mark("drafter {letter} ({name})"), mark("drafter {letter} ({name})")
)  # fmt: skip
_CHOSEN: dict[ChoiceReason, SentenceTemplate] = {
    "best": SentenceTemplate(
        mark("{who} was used: it has saved the most time so far."),
        mark("{who} was used: with it the text has grown {worth} times as fast as without drafts, the best "
            "so far."),
        mark("Used: {who}, by speed-up so far (speed ÷ plain decoding, {how}): {worths}."),
    ),
    "untried": SentenceTemplate(
        mark("{who} was used: it has hardly been tried."),
        mark("{who} was used to measure its speed-up: it had drafted {times}."),
        mark("Used: {who}, which had drafted {times}; each drafts twice before they are compared."),
    ),
    "retried": SentenceTemplate(
        mark("{who} was tried again: it may have improved."),
        mark("{who} was tried again: {best} has been faster so far, but too few rounds of {who} have been "
            "measured."),
        mark("Used: {who} ({times} so far), by discounted UCB over the speed-ups (speed ÷ plain decoding, "
            "{how}): {worths}."),
    ),
    "silent": SentenceTemplate(
        mark("{silent} proposed nothing, so {who} was used."),
        mark("{silent} proposed nothing, so {who} was used."),
        mark("{silent} proposed nothing; next by speed-up (speed ÷ plain decoding, {how}): {worths}."),
    ),
}  # fmt: skip


def explain_choice(event: DraftRound, drafters: Sequence[str] = ()) -> Sentence:
    """Explain which of several drafters a round used, and why; empty if there was only one. `drafters` are their
    names.
    """
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
    """Explain the n-gram pool of lookahead decoding and the n-grams added by the round's pass; empty for other
    strategies.
    """
    pool = event.pool
    if pool is None:
        return Sentence()
    held = _POOL.say(size=f"{pool.size:,}")
    if not pool.found:
        return held
    ngrams = join_names(quote("".join(ngram), False) for ngram in pool.found[:_MAX_LISTED])
    more = len(pool.found) - _MAX_LISTED
    ngrams = tr("{found} and {more} more").format(found=ngrams, more=more) if more > 0 else ngrams
    return together(held, _FOUND.say(found=ngrams))


def _drafter_name(number: int, names: Sequence[str]) -> str:
    known = number < len(names)
    return (_LETTER_AND_NAME if known else _LETTER_ONLY).words(
        letter=_letter(number), name=names[number] if known else ""
    )


def explain_round(event: DraftRound) -> Sentence:
    """Explain a round in two sentences, at the current level of detail and language."""
    deep = max((node.depth for node in event.nodes), default=0)
    drafted, accepted = len(event.nodes), len(event.accepted)
    facts = {"count": f"{drafted:,}", "depth": f"{deep}", "length": f"{event.length}", "kept": f"{accepted}"}
    first = _ONE_DRAFTED if drafted == 1 else _TREE_DRAFTED if deep < drafted else _DRAFTED
    outcome = _outcome_template(drafted, accepted).say(**facts)
    return together(
        first.say(**facts),
        _ENDINGS[event.extra_kind].say(outcome=outcome, extra=quote(event.extra_piece, event.extra_special)),
    )


def explain_draft(node: DraftNode, event: DraftRound, drafters: Sequence[str] = ()) -> Sentence:
    """Explain why a drafted token was accepted, rejected or not compared, with ratio and random number where sampling
    decided.

    `drafters` are their names, in order; unnamed ones are distinguished by letters.
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
    why = _explain_ratio(node, event) if node.ratio is not None else _explain_greedy(node, event)
    return together(_COMPARED.say(**facts, share=drafted, target=target), why)


def explain_extra(event: DraftRound) -> Sentence:
    """Explain the token added by the target itself; empty if there is none."""
    return _EXTRAS[event.extra_kind].say() if event.extra_kind in _EXTRAS else Sentence()


def _outcome_template(drafted: int, accepted: int) -> SentenceTemplate:
    if accepted == 0:
        return _IT_WAS_NOT if drafted == 1 else _NONE_WAS
    if accepted == drafted:
        return _IT_WAS if accepted == 1 else _ALL_WERE
    return _ONE_WAS if accepted == 1 else _SOME_WERE


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


def _explain_ratio(node: DraftNode, event: DraftRound) -> Sentence:
    ratio, die = node.ratio or 0.0, node.die or 0.0
    is_rest = is_residual_ratio(node, event)
    if ratio >= 1:
        return (_CERTAINLY_LEFT if is_rest else _CERTAINLY_ACCEPTED).say()
    digits = next((n for n in range(depth.pick(2, 2, 4), 9) if f"{ratio:.{n}f}" != f"{die:.{n}f}"), 9)
    accepted, rejected = (_LEFT_ACCEPTED, _LEFT_REJECTED) if is_rest else (_RANDOMLY_ACCEPTED, _RANDOMLY_REJECTED)
    saying = accepted if node.fate == "accepted" else rejected
    return saying.say(chance=share(ratio, is_exact=True), ratio=f"{ratio:.{digits}f}", die=f"{die:.{digits}f}")


def is_residual_ratio(node: DraftNode, event: DraftRound) -> bool:
    """Return whether a node's ratio is not min(1, p ÷ q): proposals tried before it had taken a part of p."""
    if node.ratio is None or node.draft_probability <= 0:
        return False
    rivals = (one for one in event.nodes if one.parent == node.parent and one is not node and one.fate == "refused")
    if len(node.proposers) < 2 and not any(rivals):
        return False
    plain = min(1.0, node.target_probability / node.draft_probability)
    return not math.isclose(node.ratio, plain, rel_tol=1e-3, abs_tol=1e-6)


def _explain_greedy(node: DraftNode, event: DraftRound) -> Sentence:
    if node.fate == "accepted":
        return _SAME.say()
    chosen = next((quote(other.piece, other.special) for other in event.nodes
                   if other.parent == node.parent and other.fate == "accepted"), None)  # fmt: skip
    if chosen is None and event.extra_kind == "correction" and _is_last_accepted(node.parent, event):
        chosen = quote(event.extra_piece, event.extra_special)
    if chosen is None or chosen == quote(node.piece, node.special):  # another token may look the same
        return _ANOTHER.say()
    return _OTHER.say(other=chosen)


def _is_last_accepted(node: int, event: DraftRound) -> bool:
    return node == (event.accepted[-1] if event.accepted else 0)


def _unreached_reason(node: DraftNode, event: DraftRound) -> str:
    fates = {other.node: other.fate for other in event.nodes}
    if fates.get(node.parent, "accepted") != "accepted":
        return tr(depth.pick(_PARENT_OUT_PLAINLY, _PARENT_OUT, _PARENT_OUT))
    if event.extra_kind == "none" and _is_last_accepted(node.parent, event):
        return tr(_TEXT_HAD_ENDED)
    return tr(depth.pick(_ANOTHER_TAKEN_PLAINLY, _ANOTHER_TAKEN, _ANOTHER_TAKEN))
