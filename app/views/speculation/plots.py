"""The speculation view's plots as plain values: what was kept by place, lengths by round, what checking costs."""

from __future__ import annotations

from collections.abc import Sequence

from app.state.rounds import DraftRounds
from app.widgets.plots import PlotAxis, PlotBars, PlotLine, PlotSpec
from core import words
from core.events import DraftRound
from resources.language import tr


def format_ratio(ratio: float) -> str:
    """`×1.5`, for an axis."""
    return f"×{ratio:g}"


def acceptance_by_position(rounds: DraftRounds) -> PlotSpec:
    """Share accepted at each place of the draft."""
    kept = rounds.acceptance_by_depth()
    tips = tuple(
        tr("place {depth} of the draft: {share} accepted").format(depth=depth, share=words.percent(share))
        for depth, share in kept
    )
    bars = PlotBars("", "accent", tuple(share for _, share in kept), tooltips=tips)
    places = PlotAxis(tr("place"), labels=tuple(str(depth) for depth, _ in kept))
    return PlotSpec(places, PlotAxis(tr("accepted"), words.whole_percent), bars=(bars,), top=1.0)


def length_by_round(rounds: Sequence[DraftRound], chosen: int) -> PlotSpec:
    """How many tokens each round was to draft, and how many of them were accepted."""
    accepted = tuple(float(len(entry.accepted)) for entry in rounds)
    rest = tuple(float(max(0, entry.length - len(entry.accepted))) for entry in rounds)
    tips = tuple(_round_tip(number, entry) for number, entry in enumerate(rounds, 1))
    labels = tuple(str(number) for number in range(1, len(rounds) + 1))
    bars = (PlotBars(tr("accepted"), "kept", accepted, tooltips=tips, marked=chosen),
            PlotBars(tr("the rest of the draft"), "faint", rest, tooltips=("",) * len(tips), marked=chosen))  # fmt: skip
    return PlotSpec(
        PlotAxis(tr("round"), labels=labels), PlotAxis(tr("tokens"), integers_only=True), bars=bars, is_stacked=True
    )


def _round_tip(number: int, entry: DraftRound) -> str:
    return tr(
        "round {number}: drafts of up to {length}, {accepted} accepted\n"
        "{drafting:.1f} ms drafting, {checking:.1f} ms checking"
    ).format(
        number=number,
        length=entry.length,
        accepted=len(entry.accepted),
        drafting=entry.draft_seconds * 1000,
        checking=entry.verify_seconds * 1000,
    )


def verification_cost(curve: Sequence[tuple[int, float]]) -> PlotSpec:
    """What one pass over several tokens costs, the cost of one token being the line."""
    tips = tuple(tr("{size} at once cost ×{ratio:.2f} of one").format(size=size, ratio=ratio) for size, ratio in curve)
    bars = (PlotBars("", "accent", tuple(ratio for _, ratio in curve), tooltips=tips),) if curve else ()
    level = (
        (PlotLine("", "muted", ((-0.5, 1.0), (len(curve) - 0.5, 1.0)), (4.0, 3.0), shows_on_hover=False),)
        if curve
        else ()
    )
    sizes = PlotAxis(tr("tokens at once"), labels=tuple(str(size) for size, _ in curve))
    return PlotSpec(sizes, PlotAxis(tr("cost"), format_ratio), lines=level, bars=bars)
