"""Captions of the presentation and of demo films."""

from __future__ import annotations

import math
from typing import Protocol

from PySide6.QtWidgets import QVBoxLayout

from decodescope.app.state.run import Run
from decodescope.app.state.token_caption import TokenCaption
from decodescope.app.theme.theme import Theme
from decodescope.app.views.base import View
from decodescope.app.views.text.token_wording import token_text
from decodescope.app.widgets.animation.choice_animations import (
    MAX_ROWS,
    BeamLadder,
    BeamRow,
    ChoiceBar,
    ChoiceDistribution,
    DraftChip,
    DraftStamps,
)
from decodescope.app.widgets.animation.motion import AnimatedWidget
from decodescope.core import words
from decodescope.core.events import Alternative, DraftRound, Stage, TokenChosen
from decodescope.resources.language import tr, trn


def caption_title(now: TokenCaption | None) -> str:
    """Return the title of the chosen token."""
    return now.title if now is not None else ""


def caption_text(run: Run | None, view: View, now: TokenCaption | None) -> str:
    """Return the explanation of the choice by the view, or the initial caption before the first token."""
    return view.presentation_caption() or (now.sentence if now is not None else initial_caption(run))


def initial_caption(run: Run | None) -> str:
    """Return the caption before the first token."""
    if run is None:
        return tr("No run yet. Press Space to start.")
    if run.outcome is not None and run.outcome.error is not None:
        return run.outcome.error.cause
    if run.prompt and run.started is not None and not run.started.engine:
        count = len(run.before)
        text = trn("The model has read {count:,} token.", "The model has read {count:,} tokens.", count)
        return text.format(count=count)
    return tr("Reading the prompt…")


MAX_TOKENS = 10
"""Maximum number of tokens in the bar."""
RANDOM_METHODS = ("sampled", "dola_sampled")


class ChoiceDisplay:
    """Three widgets in one place; `show` displays the matching one."""

    def __init__(self, layout: QVBoxLayout, theme: Theme) -> None:
        self.bar, self.ladder, self.stamps = ChoiceBar(theme), BeamLadder(theme), DraftStamps(theme)
        for widget in self.all:
            layout.addWidget(widget)
            widget.hide()

    @property
    def all(self) -> tuple[AnimatedWidget, ...]:
        """All three widgets."""
        return self.bar, self.ladder, self.stamps

    def show(self, run: Run | None, token: TokenChosen | None, show_drafts: bool, animate: bool) -> None:
        """Show the choice at the run's cursor, made for `token`; `show_drafts`: show draft rounds."""
        shown = self._fill_widget(run, token, show_drafts, animate)
        for widget in self.all:
            widget.setVisible(widget is shown)

    def _fill_widget(
        self, run: Run | None, token: TokenChosen | None, drafts: bool, moves: bool
    ) -> AnimatedWidget | None:
        entry = _last_round(run) if run is not None and drafts else None
        if entry is not None:
            self.stamps.show_chips(draft_chips(entry), moves)
            return self.stamps
        if run is not None and run.beams is not None:
            self.ladder.show_beams(beam_rungs(run), moves)
            return self.ladder if run.cursor else None
        if token is None or not token.alternatives or token.method == "scored":
            return None
        self.bar.show_choice(choice_distribution(token), moves)
        return self.bar


def _last_round(run: Run) -> DraftRound | None:
    """Return the draft round that contains the token before the cursor."""
    count = run.rounds.count_started(run.cursor)
    return run.rounds.rounds[count - 1] if count else None


def choice_distribution(token: TokenChosen) -> ChoiceDistribution:
    """Return the likeliest tokens after all processors and their probabilities at each stage."""
    alternatives = sorted(token.alternatives, key=lambda item: (-_final_probability(item), item.rank))
    items = [item for item in alternatives if _final_probability(item) > 0 or item.id == token.id][:MAX_TOKENS]
    if all(item.id != token.id for item in items):
        items = [*items[:-1], next(item for item in alternatives if item.id == token.id)]
    chosen = next(index for index, item in enumerate(items) if item.id == token.id)
    has_gap = chosen == len(items) - 1 and (token.final_rank or token.rank) > len(items)
    stages = [tuple(_stage_probability(item, stage) for item in items) for stage in token.funnel[1:-1]]
    ends = (tuple(_raw_probability(item) for item in items), tuple(_final_probability(item) for item in items))
    return ChoiceDistribution(
        labels=tuple(token_text(item.text, item.special) for item in items),
        stages=(ends[0], *stages, ends[1]),
        chosen=chosen,
        is_sampled=token.method in RANDOM_METHODS and (not token.funnel or token.funnel[-1].survivors > 1),
        formatted_probabilities=tuple(words.brief_percent(one, words.is_only_survivor(token)) for one in ends[1]),
        has_gap=has_gap,
    )


def _raw_probability(item: Alternative) -> float:
    """Return the model's raw probability; remote engines may report only the one after temperature, or none."""
    probability = item.probability if math.isnan(item.raw_probability) else item.raw_probability
    return 0.0 if math.isnan(probability) else probability


def _final_probability(item: Alternative) -> float:
    """Return the probability after all processors, if known."""
    return _raw_probability(item) if math.isnan(item.probability) else item.probability


def _stage_probability(item: Alternative, stage: Stage) -> float:
    """Return the probability of a token after a stage."""
    return dict(stage.top).get(item.id, 0.0)


def beam_rungs(run: Run) -> list[BeamRow]:
    """Return the best hypotheses at the cursor."""
    tree = run.beams
    assert tree is not None, "only a beam search has hypotheses"
    rungs = []
    for row in tree.hypotheses(run.cursor)[:MAX_ROWS]:
        parent = tree.candidate(row.node).parent if row.node in tree else row.node
        figure = words.decimal(row.score)
        rungs.append(BeamRow(row.node, parent, row.text.strip().replace("\n", "↵"), figure))
    return rungs


def draft_chips(entry: DraftRound) -> list[DraftChip]:
    """Return the drafted tokens and the token that the model added."""
    chips = [DraftChip(token_text(node.piece, node.special), node.fate) for node in entry.nodes]
    if entry.extra_kind != "none":
        chips.append(DraftChip(token_text(entry.extra_piece, entry.extra_special), entry.extra_kind))
    return chips


class WindowAppearance(Protocol):
    """Appearance of the window."""

    @property
    def theme(self) -> Theme:
        """The current theme."""

    @property
    def settings_theme(self) -> Theme:
        """The theme of the settings, used outside the presentation."""

    def should_animate(self) -> bool:
        """Return whether choices may be animated."""
