"""Why this token, in one or two plain sentences made of the step's own figures."""

from __future__ import annotations

from itertools import pairwise

from core.events import Stage, TokenChosen

_CUTTERS = {
    "top_k": "Top-k", "top_p": "Top-p", "min_p": "Min-p", "typical_p": "Typical sampling", "epsilon_cutoff": "Epsilon",
    "eta_cutoff": "Eta", "top_h": "Top-H",
}  # fmt: skip
_ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth",
             9: "ninth", 10: "tenth"}  # fmt: skip


def explain(event: TokenChosen, vocabulary: int = 0) -> str:
    """Plain words for a step; `vocabulary` (the model's number of tokens) rounds the picture off when it is known."""
    setup = _setup(event, vocabulary)
    return f"{setup} {_choice(event)}".strip()


def _choice(event: TokenChosen) -> str:
    tell = _TELLERS.get(event.method, _sampled)
    return tell(event)


def _setup(event: TokenChosen, vocabulary: int) -> str:
    """What the filter that cut most did, or that nothing was cut."""
    total = vocabulary or (event.funnel[0].survivors if event.funnel else 0)
    if event.method in ("contrastive", "greedy"):
        return _bans(event)
    cut = _strongest_cut(event.funnel)
    if cut is None:
        return ""
    name = _CUTTERS.get(cut.name)
    if name is None:
        return _bans(event)
    value = cut.label.rsplit(" ", 1)[-1]
    last = event.funnel[-1].survivors
    rest = f", and in the end {last:,} were left" if last < cut.survivors else ""
    return f"{name} {value} kept {cut.survivors:,} of {total:,} tokens{rest}."


def _strongest_cut(funnel: tuple[Stage, ...]) -> Stage | None:
    """The stage that removed the largest share of what entered it."""
    best, share = None, 0.0
    for before, after in pairwise(funnel):
        removed = 1 - after.survivors / before.survivors if before.survivors else 0.0
        if removed > share:
            best, share = after, removed
    return best


def _bans(event: TokenChosen) -> str:
    """A sentence when a ban or penalty took the model's first choice away."""
    if event.rank == 1 or not event.alternatives or event.method not in ("greedy", "contrastive"):
        return ""
    first = event.alternatives[0]
    if first.probability == 0.0:
        return f"{_quote(first.text)} was the model's first choice, but a setting forbids it here."
    if event.method == "greedy":
        return f"{_quote(first.text)} was the model's first choice, but a penalty pushed it down."
    return ""


def _greedy(event: TokenChosen) -> str:
    share = percent(event.probability)
    if event.raw_probability > 0.95:
        return f"{_quote(event.piece)} had {share}: the model was nearly certain."
    if runner_up := _runner_up(event):
        return f"{_quote(event.piece)} had {share}, the most of all, ahead of {runner_up}."
    return f"{_quote(event.piece)} had {share}, the most of all, so greedy decoding took it."


def _runner_up(event: TokenChosen) -> str:
    others = [item for item in event.alternatives if item.id != event.id and item.probability > 0]
    if not others:
        return ""
    best = max(others, key=lambda item: item.probability)
    return f"{_quote(best.text)} with {percent(best.probability)}"


def _sampled(event: TokenChosen) -> str:
    share, name = percent(event.probability), _quote(event.piece)
    if event.funnel and event.funnel[-1].survivors == 1:
        return f"Only {name} was left, so no dice were needed."
    if event.probability > 0.9995:
        return f"{name} had nearly all of the probability: the dice could hardly choose another."
    if event.rank == 1:
        return f"{name} had {share}, the model's favourite, and the dice chose it."
    return f"{name} had {share}, the {ordinal(event.rank)} most likely, and the dice chose it."


def _contrastive(event: TokenChosen) -> str:
    mine = next((item for item in event.alternatives if item.id == event.id), None)
    if mine is None or mine.degeneration_penalty is None:
        return f"{_quote(event.piece)} had the best balance of likelihood ({percent(event.probability)}) and novelty."
    rivals = [item for item in event.alternatives if item.degeneration_penalty is not None and item.id != event.id]
    likelier = max((item for item in rivals if item.probability > mine.probability),
                   key=lambda item: item.probability, default=None)  # fmt: skip
    if likelier is None:
        return (
            f"{_quote(event.piece)} was the likeliest candidate ({percent(mine.probability)}) and not too much like "
            f"the text before it (resemblance {mine.degeneration_penalty:.2f})."
        )
    return (
        f"{_quote(likelier.text)} was likelier ({percent(likelier.probability)}), but resembled the text before it "
        f"more ({likelier.degeneration_penalty:.2f} against {mine.degeneration_penalty:.2f}), so "
        f"{_quote(event.piece)} with {percent(mine.probability)} had the better balance."
    )


def _dola(event: TokenChosen) -> str:
    if event.layer_choice is None:
        return _greedy(event)
    how = "and the dice chose it" if event.method == "dola_sampled" else "more than any other token"
    return (
        f"Layer {event.layer_choice.layer} still disagreed most with the last one; against its guess "
        f"{_quote(event.piece)} gained most weight: {percent(event.raw_probability)} became "
        f"{percent(event.probability)}, {how}."
    )


def _beam(event: TokenChosen) -> str:
    share, name = percent(event.probability), _quote(event.piece)
    if event.rank == 1:
        return f"{name} had {share}, the most of all here, and lies on the path of the best text."
    runner = _runner_up(event)
    return f"{name} had {share}, less than {runner}, but the text as a whole scores best with it."


_TELLERS = {
    "beam": _beam,
    "greedy": _greedy,
    "sampled": _sampled,
    "contrastive": _contrastive,
    "dola": _dola,
    "dola_sampled": _dola,
}


def percent(share: float) -> str:
    """A share as people say it: 31 %, 0.4 %, under 0.1 %."""
    value = 100 * share
    if value >= 99.95:
        return "100 %"
    if value >= 9.95:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.1 else "under 0.1 %"


def ordinal(number: int) -> str:
    """first, second, … tenth, 11th, 22nd."""
    if number in _ORDINALS:
        return _ORDINALS[number]
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{suffix}"


def _quote(piece: str) -> str:
    """The token in quotation marks, white space made visible where it is all there is."""
    word = piece.strip()
    if not word:
        return {"\n": "a line break", " ": "a space"}.get(piece, "white space" if piece else "an empty token")
    return f"“{word}”"
