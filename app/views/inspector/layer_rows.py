"""What was found inside a step, as rows and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from app.state.layer_queries import LayerAttention, LayerQuery, LayerView, PositionWeight, deciding_layer
from app.views.text.token_wording import token_text
from app.widgets.bars import BarRow
from core import cut_short, words
from resources import depth
from resources.depth import pick
from resources.language import join_sentences, mark, tr, trn

MAX_ROWS = 10
"""Parts of the text that are listed: those that matter most."""
MIN_WEIGHT = 0.005
"""Nats below which nothing is listed, where anything weighs more."""
EMBEDDING_LABEL = mark("words")
"""What stands for the number of a layer before the first one."""


_COMMON_TOKENS = (",", " the")
"""Tokens that say little in an English text."""


def replacements() -> list[tuple[str | None, str]]:
    """What may stand in the place of a part that is taken out: (`LayerQuery.instead`, its words)."""
    common = [(text, tr("Replaced by {word}").format(word=token_text(text))) for text in _COMMON_TOKENS]
    return [(None, tr("Left out")), ("", tr("Replaced by a token for nothing")), *common]


def layer_rows(layers: Sequence[LayerView]) -> list[BarRow]:
    """A row for each layer, the last one on top: its first choice, and how likely it finds that."""
    decided = deciding_layer(layers)
    return [_layer_row(view, decided) for view in reversed(layers)]


def _layer_row(view: LayerView, decided: int) -> BarRow:
    number = f"{view.layer}" if view.layer else tr(EMBEDDING_LABEL)
    tip = tr(
        "Layer {layer}: first choice {word} ({share}); the chosen token {chosen}, rank {rank:,}"
    ).format(
        layer=view.layer, word=token_text(view.word, view.special), share=words.percent(view.first_probability),
        chosen=words.percent(view.probability), rank=view.rank,
    )  # fmt: skip
    return BarRow(
        label=f"{number}  {token_text(view.word, view.special)}",
        lengths=(view.first_probability,),
        figures=(words.brief_percent(view.first_probability),),
        strong=view.layer == decided,
        faint=view.layer < decided,
        tip=tip,
    )


def layers_sentence(layers: Sequence[LayerView]) -> str:
    """Where it was decided."""
    return pick(
        tr("From layer {layer} of {last} on, the network would have written {word}."),
        tr("Decided at layer {layer} of {last}: from there on every layer's first choice is {word}."),
        tr("Decided at layer {layer} of {last}: from there on argmax head(norm(hₗ)) is {word} (a raw lens)."),
    ).format(layer=deciding_layer(layers), last=layers[-1].layer, word=words.quote(layers[-1].word, layers[-1].special))


def weight_rows(weights: Sequence[PositionWeight], texts: Sequence[str]) -> list[BarRow]:
    """The parts of the text that matter most, the largest first."""
    significant = [one for one in weights if abs(one.weight) >= MIN_WEIGHT] or weights
    ranked = sorted(significant, key=lambda one: -abs(one.weight))[:MAX_ROWS]
    largest = abs(ranked[0].weight) if ranked else 0.0
    return [_weight_row(one, texts, largest or 1.0) for one in ranked]


def _weight_row(weight: PositionWeight, texts: Sequence[str], largest: float) -> BarRow:
    part = "".join(texts[weight.start : weight.stop])
    template = tr("{part} helps: without it the choice loses {nats} nats of log-probability")
    if weight.weight < 0:
        template = tr("{part} hinders: without it the choice gains {nats} nats of log-probability")
    return BarRow(
        label=token_text(cut_short(part, 40)),
        lengths=(abs(weight.weight) / largest,),
        figures=(format_signed(weight.weight),),
        bar_colors=("accent" if weight.weight >= 0 else "refused",),
        tip=template.format(part=words.quote(part.strip()), nats=words.decimal(abs(weight.weight))),
    )


def format_signed(value: float) -> str:
    """`+1.23`, `−0.40`."""
    return f"{value:+.2f}".replace("-", "−")


def influence_sentence(
    weights: Sequence[PositionWeight],
    texts: Sequence[str],
    query: LayerQuery,
    chosen: str,
    other: str,
    progress: tuple[int, int],
) -> str:
    """What matters most, and of how many parts so far where that is not all: `progress` is (looked at, in all)."""
    if not weights:
        return tr("The text before is a single part: without it nothing would be left to read.")
    top = max(weights, key=lambda one: abs(one.weight))
    part, is_for = words.quote("".join(texts[top.start : top.stop]).strip()), top.weight >= 0
    template = (
        _contrast_template(is_for)
        if query.other_token is not None
        else _change_template(is_for, query.replacement is not None)
    )
    nats = format_signed(top.weight) if depth.current_depth() == depth.EXACT else words.decimal(abs(top.weight))
    sentence = template.format(part=part, chosen=chosen, other=other, nats=nats)
    done, total = progress
    if done >= total:
        return sentence
    return join_sentences(
        sentence,
        trn("{done:,} of {total:,} part was looked at.", "{done:,} of {total:,} parts were looked at.", total).format(
            done=done, total=total
        ),
    )


def _contrast_template(is_for: bool) -> str:
    """Why this and not that."""
    if is_for:
        return pick(
            tr("Most of all {part} speaks for {chosen} and against {other}."),
            tr("Most of all {part} speaks for {chosen} and against {other}, by {nats} nats."),
            tr("log p({chosen}) − log p({other}) hangs most on {part}: {nats} nats."),
        )
    return pick(
        tr("Most of all {part} speaks for {other} and against {chosen}."),
        tr("Most of all {part} speaks for {other} and against {chosen}, by {nats} nats."),
        tr("log p({chosen}) − log p({other}) hangs most on {part}: {nats} nats."),
    )


def _change_template(is_for: bool, is_replaced: bool) -> str:
    """What a choice hangs on, by what becomes of it without."""
    if is_replaced:
        return pick(
            tr("Each part of the text was replaced in turn: {part} matters most for {chosen}."),
            tr("With {part} replaced, log p of {chosen} changes most: it falls by {nats} nats.")
            if is_for
            else tr("With {part} replaced, log p of {chosen} changes most: it rises by {nats} nats."),
            tr("log p({chosen} | all) − log p({chosen} | replaced) is largest in size for {part}: {nats} nats."),
        )
    return pick(
        tr("Each part of the text was left out in turn: {part} matters most for {chosen}."),
        tr("Without {part}, log p of {chosen} changes most: it falls by {nats} nats.")
        if is_for
        else tr("Without {part}, log p of {chosen} changes most: it rises by {nats} nats."),
        tr("log p({chosen} | all) − log p({chosen} | without) is largest in size for {part}: {nats} nats."),
    )


def attention_weights(attention: LayerAttention) -> tuple[PositionWeight, ...]:
    """One layer's shares, place by place."""
    return tuple(PositionWeight(place, place + 1, share) for place, share in enumerate(attention.weights))


def attention_rows(weights: Sequence[PositionWeight], texts: Sequence[str]) -> list[BarRow]:
    """The places that were read most, the largest share first."""
    ranked = sorted(weights, key=lambda one: -one.weight)[:MAX_ROWS]
    largest = max((one.weight for one in ranked), default=0.0) or 1.0
    return [
        BarRow(
            label=token_text(texts[one.start]),
            lengths=(one.weight / largest,),
            figures=(words.brief_percent(one.weight),),
            tip=tr("{share} of the attention of this step, place {place:,} of the text").format(
                share=words.percent(one.weight), place=one.start + 1
            ),
        )
        for one in ranked
    ]


def attention_sentence() -> str:
    """What it is, and what it is not."""
    return pick(
        tr("Where the network looked, not why it chose."),
        tr("Where attention looked at this step, the mean of its heads: not why it chose."),
        tr("Mean over heads of the attention weights of the last position; attention is not explanation."),
    )
