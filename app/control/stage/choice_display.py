"""What is seen of a choice on the stage: a bar with a ball, a ladder of beams, a stamped draft. One at a time."""

from __future__ import annotations

import math

from PySide6.QtWidgets import QVBoxLayout

from app.state.run import Run
from app.theme.theme import Theme
from app.views.text.token_wording import token_text
from app.widgets.animation.choice_bar import ChoiceBar, ChoiceDistribution
from app.widgets.animation.ladder import MOST, Ladder, Rung
from app.widgets.animation.motion import Animated
from app.widgets.animation.stamps import Chip, Stamps
from core import words
from core.events import Alternative, DraftRound, Stage, TokenChosen

SHARES = 10
"""Tokens that have a share of their own in the bar."""
BY_CHANCE = ("sampled", "dola_sampled")


class ChoiceDisplay:
    """Three widgets in one place; `show` brings up the one that fits."""

    def __init__(self, into: QVBoxLayout, theme: Theme) -> None:
        self.bar, self.ladder, self.stamps = ChoiceBar(theme), Ladder(theme), Stamps(theme)
        for widget in self.all:
            into.addWidget(widget)
            widget.hide()

    @property
    def all(self) -> tuple[Animated, ...]:
        """All three."""
        return self.bar, self.ladder, self.stamps

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        for widget in self.all:
            widget.set_theme(theme)

    def show(self, run: Run | None, token: TokenChosen | None, drafts: bool, moves: bool) -> None:
        """What was chosen at the run's cursor, of which `token` is told; `drafts`: rounds are spoken of."""
        shown = self._fill(run, token, drafts, moves)
        for widget in self.all:
            widget.setVisible(widget is shown)

    def _fill(self, run: Run | None, token: TokenChosen | None, drafts: bool, moves: bool) -> Animated | None:
        entry = _round(run) if run is not None and drafts else None
        if entry is not None:
            self.stamps.show_chips(chips_of(entry), moves)
            return self.stamps
        if run is not None and run.beams is not None:
            self.ladder.show_rungs(rungs_of(run), moves)
            return self.ladder if run.cursor else None
        if token is None or not token.alternatives or token.method == "scored":
            return None
        self.bar.show_choice(choice_of(token), moves)
        return self.bar


def _round(run: Run) -> DraftRound | None:
    """The round that wrote the token before the cursor."""
    count = run.rounds.shown(run.cursor)
    return run.rounds.rounds[count - 1] if count else None


def choice_of(token: TokenChosen) -> ChoiceDistribution:
    """The likeliest tokens after every processor, in their order, and how each stage of the funnel saw them."""
    kept = sorted(token.alternatives, key=lambda item: (-_final(item), item.rank))
    items = [item for item in kept if _final(item) > 0 or item.id == token.id][:SHARES]
    if all(item.id != token.id for item in items):
        items = [*items[:-1], next(item for item in kept if item.id == token.id)]
    stages = [tuple(_share(item, stage) for item in items) for stage in token.funnel[1:-1]]
    ends = (tuple(_raw(item) for item in items), tuple(_final(item) for item in items))
    return ChoiceDistribution(
        labels=tuple(token_text(item.text, item.special) for item in items),
        stages=(ends[0], *stages, ends[1]),
        chosen=next(place for place, item in enumerate(items) if item.id == token.id),
        by_chance=token.method in BY_CHANCE and (not token.funnel or token.funnel[-1].survivors > 1),
        told=tuple(words.brief_percent(share) for share in ends[1]),
    )


def _raw(item: Alternative) -> float:
    """By the model alone; an engine on another machine may tell only what the temperature made of it, or nothing."""
    told = item.probability if math.isnan(item.raw_probability) else item.raw_probability
    return 0.0 if math.isnan(told) else told


def _final(item: Alternative) -> float:
    """After every processor, as far as that is told."""
    return _raw(item) if math.isnan(item.probability) else item.probability


def _share(item: Alternative, stage: Stage) -> float:
    """What a stage left of a token."""
    return dict(stage.top).get(item.id, 0.0)


def rungs_of(run: Run) -> list[Rung]:
    """The best hypotheses at the cursor."""
    tree = run.beams
    assert tree is not None, "only a beam search has hypotheses"
    found = []
    for row in tree.hypotheses(run.cursor)[:MOST]:
        parent = tree.candidate(row.node).parent if row.node in tree else row.node
        figure = words.decimal(row.score)
        found.append(Rung(row.node, parent, row.text.strip().replace("\n", "↵"), figure))
    return found


def chips_of(entry: DraftRound) -> list[Chip]:
    """The drafted tokens, and what the model wrote behind them."""
    chips = [Chip(token_text(node.piece, node.special), node.fate) for node in entry.nodes]
    if entry.extra_kind != "none":
        chips.append(Chip(token_text(entry.extra_piece, entry.extra_special), entry.extra_kind))
    return chips
