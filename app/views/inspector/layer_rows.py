"""Rows and sentences about the inside of a step: layers, influences, attention."""

from __future__ import annotations

from collections.abc import Sequence

from decodescope.app.state.layer_queries import (
    AdapterFinding,
    LayerAttention,
    LayerQuery,
    LayerView,
    PositionWeight,
    deciding_layer,
)
from decodescope.app.views.text.token_wording import token_text
from decodescope.app.widgets.bars import BarRow
from decodescope.core import cut_short, words
from decodescope.resources import depth
from decodescope.resources.depth import pick
from decodescope.resources.language import join_sentences, mark, tr, trn

MAX_ROWS = 10
"""Maximum number of text parts listed, by weight."""
MIN_WEIGHT = 0.005
"""Minimum weight in nats of a listed part, unless all are below."""
EMBEDDING_LABEL = mark("words")
"""Label of layer 0, the embeddings."""


_COMMON_TOKENS = (",", " the")
"""Tokens that carry little meaning in an English text."""


def replacements() -> list[tuple[str | None, str]]:
    """Return the options for replacing a removed part: (`LayerQuery.instead`, label)."""
    common = [(text, tr("Replaced by {word}").format(word=token_text(text))) for text in _COMMON_TOKENS]
    return [(None, tr("Left out")), ("", tr("Replaced by a neutral token")), *common]


def layer_rows(layers: Sequence[LayerView]) -> list[BarRow]:
    """Return one row per layer, the last one on top: its first choice and that token's probability."""
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
    """Return a sentence on the layer at which the choice was decided."""
    return pick(
        tr("From layer {layer} of {last} on, the network would have chosen {word}."),
        tr("Decided at layer {layer} of {last}: from there on, the first choice of every layer is {word}."),
        tr("Decided at layer {layer} of {last}: from there on argmax head(norm(hₗ)) is {word} (raw logit lens)."),
    ).format(layer=deciding_layer(layers), last=layers[-1].layer, word=words.quote(layers[-1].word, layers[-1].special))


def weight_rows(weights: Sequence[PositionWeight], texts: Sequence[str]) -> list[BarRow]:
    """Return the most influential parts of the text, largest first."""
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


def adapter_rows(finding: AdapterFinding) -> list[BarRow]:
    """Return the likeliest tokens of both sides: probability without the adapters, and with them."""
    return [
        BarRow(
            label=token_text(one.word, one.special),
            lengths=(one.before, one.after),
            figures=(words.brief_percent(one.before), words.brief_percent(one.after)),
            strong=one.is_chosen,
            tip=tr("{word}: without the adapter {before}, rank {rank_before:,}; with it {after}, rank {rank_after:,}")
            .format(
                word=token_text(one.word, one.special), before=words.percent(one.before), rank_before=one.rank_before,
                after=words.percent(one.after), rank_after=one.rank_after,
            ),
        )
        for one in finding.changes
    ]  # fmt: skip


def adapter_sentence(finding: AdapterFinding) -> str:
    """Name the first choice of both sides and how far apart they are."""
    before = min(finding.changes, key=lambda one: one.rank_before)
    after = min(finding.changes, key=lambda one: one.rank_after)
    same = pick(
        tr("The adapter did not change the first choice: it is {after} with and without it."),
        tr("First choice with and without the adapter: {after}. Difference: {nats} nats."),
        tr("argmax is {after} with and without the adapter; KL(with ‖ without) = {nats} nats."),
    )
    different = pick(
        tr("Without the adapter, the first choice would have been {before}; with it, it is {after}."),
        tr("First choice without the adapter: {before}; with it: {after}. Difference: {nats} nats."),
        tr("argmax: {before} without the adapter, {after} with it; KL(with ‖ without) = {nats} nats."),
    )
    return (same if before is after else different).format(
        before=words.quote(before.word, before.special), after=words.quote(after.word, after.special),
        nats=words.decimal(finding.divergence),
    )  # fmt: skip


def format_signed(value: float) -> str:
    """Format with a sign: `+1.23`, `−0.40`."""
    return f"{value:+.2f}".replace("-", "−")


def influence_sentence(
    weights: Sequence[PositionWeight],
    texts: Sequence[str],
    query: LayerQuery,
    chosen: str,
    other: str,
    progress: tuple[int, int],
) -> str:
    """Name the most influential part and, while the analysis is running, its progress: `progress` is (examined,
    total).
    """
    if not weights:
        return tr("The preceding text has only one part, so it cannot be removed.")
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
        trn("{done:,} of {total:,} part examined.", "{done:,} of {total:,} parts examined.", total).format(
            done=done, total=total
        ),
    )


def _contrast_template(is_for: bool) -> str:
    """Return the template for contrasting the chosen token with another one."""
    if is_for:
        return pick(
            tr("{part} most strongly supports {chosen} over {other}."),
            tr("{part} most strongly supports {chosen} over {other}, by {nats} nats."),
            tr("log p({chosen}) − log p({other}) depends most on {part}: {nats} nats."),
        )
    return pick(
        tr("The largest influence is {part}, which supports {other} over {chosen}."),
        tr("The largest influence is {part}, which supports {other} over {chosen}, by {nats} nats."),
        tr("log p({chosen}) − log p({other}) depends most on {part}: {nats} nats."),
    )


def _change_template(is_for: bool, is_replaced: bool) -> str:
    """Return the template for the effect of removing or replacing a part."""
    if is_replaced:
        return pick(
            tr("Each part of the text was replaced in turn: {part} matters most for {chosen}."),
            tr("With {part} replaced, log p of {chosen} changes most: it falls by {nats} nats.")
            if is_for
            else tr("With {part} replaced, log p of {chosen} changes most: it rises by {nats} nats."),
            tr("log p({chosen} | all) − log p({chosen} | replaced) has the largest magnitude for {part}: {nats} nats."),
        )
    return pick(
        tr("Each part of the text was left out in turn: {part} matters most for {chosen}."),
        tr("Without {part}, log p of {chosen} changes most: it falls by {nats} nats.")
        if is_for
        else tr("Without {part}, log p of {chosen} changes most: it rises by {nats} nats."),
        tr("log p({chosen} | all) − log p({chosen} | without) has the largest magnitude for {part}: {nats} nats."),
    )


def attention_weights(attention: LayerAttention) -> tuple[PositionWeight, ...]:
    """Return one layer's attention per position."""
    return tuple(PositionWeight(place, place + 1, share) for place, share in enumerate(attention.weights))


def attention_rows(weights: Sequence[PositionWeight], texts: Sequence[str]) -> list[BarRow]:
    """Return the positions with the most attention, largest first."""
    ranked = sorted(weights, key=lambda one: -one.weight)[:MAX_ROWS]
    largest = max((one.weight for one in ranked), default=0.0) or 1.0
    return [
        BarRow(
            label=token_text(texts[one.start]),
            lengths=(one.weight / largest,),
            figures=(words.brief_percent(one.weight),),
            tip=tr("{share} of this step's attention, position {place:,} of the text").format(
                share=words.percent(one.weight), place=one.start + 1
            ),
        )
        for one in ranked
    ]


def attention_sentence() -> str:
    """Explain what attention shows and what it does not."""
    return pick(
        tr("Where the network looked, not why it chose."),
        tr("Where attention looked at this step, averaged over heads: not why it chose."),
        tr("Attention weights of the last position, averaged over heads; attention is not explanation."),
    )
