"""Contents of the stage pictures as plain values. No Qt in here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope.app.state.run import Run
from decodescope.app.views.text.token_wording import format_bits, token_text
from decodescope.app.widgets.bars import BarRow
from decodescope.app.widgets.plots import PlotAxis, PlotBars, PlotLine, PlotSpec
from decodescope.app.widgets.repeat_arc import RepeatedPassage
from decodescope.app.widgets.scale import ScaleMark
from decodescope.core import WatermarkFound, explain_watermark, watermark_found, words
from decodescope.resources import depth
from decodescope.resources.language import tr, trn

if TYPE_CHECKING:
    from decodescope.core.events import (
        Likely,
        Repeat,
        ScoreSpread,
        StageDetail,
        StepTemperature,
        SurpriseAim,
        TokenChosen,
        TopCut,
    )  # fmt: skip

_MAX_PASSAGE_TOKENS = 24
"""Maximum number of tokens of a passage that are shown."""


def repeated_passage(repeat: Repeat, run: Run, token: TokenChosen) -> RepeatedPassage:
    """Return the passage at the end of the text before `token`, as displayed."""
    own = [*(prompt_token.text for prompt_token in run.before), *(each.text for each in run.tokens[: token.step])]
    passage = "".join(own[-min(repeat.length, _MAX_PASSAGE_TOKENS) :])
    shown = words.visible(passage).replace("\n", "↵")
    penalty = f"−{words.decimal(repeat.penalty)}"
    return RepeatedPassage(
        f"…{shown}", token_text(repeat.text, repeat.special), token_text(token.piece, token.is_special), penalty
    )


def repeat_rows(repeats: Sequence[Repeat], token: TokenChosen) -> list[BarRow]:
    """Return the penalized tokens, largest penalty first."""
    largest = max((repeat.penalty for repeat in repeats), default=1.0) or 1.0
    return [
        BarRow(
            token_text(repeat.text, repeat.special),
            (repeat.penalty / largest,),
            (f"{repeat.length:,}", words.decimal(repeat.penalty)),
            strong=repeat.id == token.id,
            tip=trn(
                "followed the same passage {back:,} token ago", "followed the same passage {back:,} tokens ago",
                repeat.back,
            ).format(back=repeat.back),
            bar_colors=("refused",),
        )
        for repeat in repeats
    ]  # fmt: skip


WIDEST_TOP_FIGURE = f"✕ {words.LONGEST_PERCENT}"
"""The widest figure of `top_rows`."""


def draw_marks(cut: TopCut) -> list[ScaleMark]:
    """Return the marks of the drawn number and of the cut-off."""
    return [
        ScaleMark(cut.die, words.decimal(cut.die), is_outcome=True),
        ScaleMark(cut.chance, tr("cuts below {chance:g}").format(chance=cut.chance)),
    ]


def top_rows(cut: TopCut, chosen: int) -> list[BarRow]:
    """Return the top tokens; removed ones are faint and marked."""
    largest = max((item.probability for item in cut.likely), default=1.0) or 1.0
    return [
        _top_row(item, place < cut.removed, item.id == chosen, largest) for place, item in enumerate(cut.likely)
    ]  # fmt: skip


def _top_row(item: Likely, is_removed: bool, chosen: bool, largest: float) -> BarRow:
    label = token_text(item.text, item.special)
    share, exact = words.brief_percent(item.probability), words.percent(item.probability)
    template = tr("{token} was removed: it had {share}") if is_removed else tr("{token} was kept: it had {share}")
    return BarRow(
        label,
        (item.probability / largest,),
        (f"✕ {share}" if is_removed else share,),
        strong=chosen,
        faint=is_removed,
        tip=template.format(token=label, share=exact),
        bar_colors=("refused" if is_removed else "accent",),
    )


def score_histogram(spread: ScoreSpread) -> PlotSpec:
    """Return a histogram of token counts by score: kept tokens are highlighted, and two lines mark the cut-off and the
    maximum.
    """
    count = len(spread.counts)
    width = (spread.best - spread.lowest) / count if count else 1.0
    tall = [math.log10(1 + number) for number in spread.counts]
    edges = [spread.lowest + width * n for n in range(count)]
    stays = [edge + width > spread.floor for edge in edges]
    tips = tuple(
        trn("{number:,} token, scores {low} to {high}", "{number:,} tokens, scores {low} to {high}", number).format(
            number=number, low=words.decimal(edge, 1), high=words.decimal(edge + width, 1)
        )
        for edge, number in zip(edges, spread.counts, strict=True)
    )
    top = max(tall, default=1.0) * 1.25
    gone = PlotBars(
        tr("cut"), "faint", tuple(0.0 if stay else n for n, stay in zip(tall, stays, strict=True)), tooltips=tips
    )
    passed = PlotBars(tr("kept"), "accent", tuple(n if stay else 0.0 for n, stay in zip(tall, stays, strict=True)),
                tooltips=("",) * count)  # fmt: skip
    place = (spread.floor - spread.lowest) / width - 0.5 if width else 0.0
    lines = (
        PlotLine(tr("max − nσ"), "refused", ((place, 0.0), (place, top)), (4.0, 3.0), shows_on_hover=False),
        PlotLine(tr("max"), "text", ((count - 0.5, 0.0), (count - 0.5, top)), shows_on_hover=False),
    )
    labels = tuple(words.decimal(round(edge + width / 2), 0) for edge in edges)
    counted = PlotAxis(tr("tokens"), lambda value: f"{10**value - 1:,.0f}", is_visible=False)
    return PlotSpec(
        PlotAxis(tr("score"), labels=labels), counted, lines=lines, bars=(gone, passed), top=top, is_stacked=True
    )


def surprise_marks(aim: SurpriseAim) -> list[ScaleMark]:
    """Return marks for the token's surprise, the target and the limit, in bits."""
    is_plain = depth.current_depth() == depth.PLAIN
    return [
        ScaleMark(aim.surprise, tr("this one") if is_plain else format_bits(aim.surprise), is_outcome=True),
        ScaleMark(aim.target, tr("target") if is_plain else f"τ {aim.target:g}"),
        ScaleMark(max(aim.limit, 0.0), tr("at most") if is_plain else f"μ {words.decimal(aim.limit, 1)}"),
    ]


def temperature_marks(step_temperature: StepTemperature) -> list[ScaleMark]:
    """Return marks for the step's temperature and its limits."""
    return [
        ScaleMark(step_temperature.temperature, f"T {words.decimal(step_temperature.temperature)}", is_outcome=True),
        ScaleMark(step_temperature.low, f"{step_temperature.low:g}"),
        ScaleMark(step_temperature.high, f"{step_temperature.high:g}"),
    ]


WATERMARK_THRESHOLD = 3.0
"""Standard deviations above chance from which a text counts as watermarked."""


def stage_name(detail: StageDetail, token: TokenChosen) -> str:
    """Return the name of the stage that this detail belongs to."""
    return next((stage.name for stage in token.funnel if stage.detail is detail), "")


def watermark_up_to(stage_name: str, run: Run, token: TokenChosen) -> WatermarkFound | None:
    """Return the watermark evidence of that stage in the text up to a token."""
    stages = (stage for each in run.tokens[: token.step + 1] for stage in each.funnel if stage.name == stage_name)
    signs = [stage.detail.sign for stage in stages if stage.detail is not None and stage.detail.sign is not None]
    return watermark_found(signs)[-1] if signs else None


def watermark_sentence(stage_name: str, run: Run, token: TokenChosen) -> str:
    """Return the watermark evidence as a sentence; empty without any."""
    found = watermark_up_to(stage_name, run, token)
    return explain_watermark(found) if found is not None else ""


def watermark_marks(watermark: WatermarkFound) -> list[ScaleMark]:
    """Return marks for the statistic, for chance, and for the threshold."""
    is_plain = depth.current_depth() == depth.PLAIN
    return [
        ScaleMark(watermark.z, tr("this text") if is_plain else f"z {words.decimal(watermark.z)}", is_outcome=True),
        ScaleMark(0.0, tr("chance")),
        ScaleMark(WATERMARK_THRESHOLD, tr("watermark threshold")),
    ]
