"""Contents of the inspector's bars, tables and funnel for one token. No Qt in here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from decodescope.app.views.text.token_wording import format_bits, is_remote_token, surprise_bits, token_text
from decodescope.app.widgets.bars import BarRow
from decodescope.app.widgets.funnel import FunnelStage
from decodescope.core import Sentence, explain_cut, explain_stage, stage_label, strategies, words
from decodescope.core import share as format_share
from decodescope.resources import depth
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.events import Alternative, LayerChoice, Method, Stage, TokenChosen, TokenCompared

SAME_TOLERANCE = 5e-4
"""Probabilities closer than this look the same."""
SMALL_PROBABILITY = 0.25
"""If even the likeliest candidate is below this, faint strokes show the candidates on their own scale."""
_HINT = mark("\nThe bar is relative to 100 %, the faint stroke to the likeliest token here")


def is_processed(token: TokenChosen) -> bool:
    """Return whether the settings changed any shown probability."""
    pairs = [(token.raw_probability, token.probability)]
    pairs += [(a.raw_probability, a.probability) for a in token.alternatives]
    return any(abs(raw - final) > SAME_TOLERANCE for raw, final in pairs)


def is_contrastive(token: TokenChosen) -> bool:
    """Return whether the candidates have contrastive search scores."""
    return any(a.score is not None for a in token.alternatives)


def token_facts(token: TokenChosen, vocabulary: int) -> str:
    """Return two lines of figures on a token, at the current level of detail; `a → b` where the settings changed a
    value.
    """
    if is_remote_token(token):
        return _remote_facts(token)
    return depth.pick(_plain_facts, _standard_facts, _exact_facts)(token, vocabulary)


def _remote_facts(token: TokenChosen) -> str:
    """Return `id 412 · rank 3`, and below it `31 % · surprise 1.7 bits`, as far as the engine reports them."""
    place = [tr("id {id}").format(id=f"{token.id:,}")] if token.id >= 0 else []
    place += [tr("rank {rank}").format(rank=words.rank(token.rank))] if token.rank else []
    if math.isnan(token.raw_probability):
        known = "" if math.isnan(token.probability) else words.percent(token.probability)
        return "\n".join((" · ".join(place), known or tr("probability not reported"))).strip()
    surprise = format_bits(surprise_bits(token.raw_log_probability))
    probability = words.percent(token.raw_probability)
    return "\n".join(
        (" · ".join(place), tr("{share} · surprise {surprise}").format(share=probability, surprise=surprise))
    )


def _plain_facts(token: TokenChosen, vocabulary: int) -> str:
    """Return `number 3 on its list of 2,048`, and below it `about 3 in 10`."""
    template = (
        tr("number {rank} of its {vocabulary:,} candidates") if vocabulary else tr("number {rank} of its candidates")
    )
    rank = _format_change(f"{token.rank:,}", f"{token.final_rank or token.rank:,}")
    chance = _format_change(format_share(token.raw_probability), words.final_share(token))
    return "\n".join((template.format(rank=rank, vocabulary=vocabulary), chance))


def _exact_facts(token: TokenChosen, vocabulary: int) -> str:
    """Return `id 412 · rank 3 → 2 of 2,048`, and below it `p 0.3142 → 0.4 · ln p −1.158 → −0.916`."""
    template = tr("id {id:,} · rank {rank} of {vocabulary:,}") if vocabulary else tr("id {id:,} · rank {rank}")
    rank = _format_change(f"{token.rank:,}", f"{token.final_rank or token.rank:,}")
    chance = _format_change(format_share(token.raw_probability), words.final_share(token))
    log = _format_change(words.decimal(token.raw_log_probability, 3), words.decimal(token.log_probability, 3))
    figures = tr("p {chance} · ln p {log}").format(chance=chance, log=log)
    return "\n".join((template.format(id=token.id, rank=rank, vocabulary=vocabulary), figures))


def _standard_facts(token: TokenChosen, vocabulary: int) -> str:
    """Return `id 412 · rank 3 of 2,048`, and below it `31 % · surprise 1.7 bits`."""
    chance = _format_change(words.percent(token.raw_probability), words.final_percent(token))
    rank = _format_change(f"{token.rank:,}", f"{token.final_rank or token.rank:,}")
    template = tr("id {id:,} · rank {rank} of {vocabulary:,}") if vocabulary else tr("id {id:,} · rank {rank}")
    surprise = format_bits(surprise_bits(token.raw_log_probability))
    place = template.format(id=token.id, rank=rank, vocabulary=vocabulary)
    return "\n".join((place, tr("{share} · surprise {surprise}").format(share=chance, surprise=surprise)))


def _format_change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def with_bold_figures(sentence: str) -> str:
    """Return the sentence as rich text with its figures (31 %, 14 of 2,048) in bold."""
    import html  # not before a step is shown

    text, position = "", 0
    for start, stop in sentence.figures if isinstance(sentence, Sentence) else ():
        figure = html.escape(sentence[start:stop], quote=False).replace(" ", "&nbsp;")
        text, position = f"{text}{html.escape(sentence[position:start], quote=False)}<b>{figure}</b>", stop
    return text + html.escape(sentence[position:], quote=False)


def alternative_columns(token: TokenChosen) -> tuple[str, ...]:
    """Return the titles of the figure columns."""
    return (tr("before"), tr("after")) if is_processed(token) else ()


def alternative_rows(token: TokenChosen) -> list[BarRow]:
    """Return a row per candidate: the upper bar is the model's probability, the lower one that after the settings."""
    both = is_processed(token)
    longest = max((max(_bar_lengths(a, both)) for a in token.alternatives), default=0.0)
    hint = 1 / longest if 0 < longest < SMALL_PROBABILITY else 0.0
    ranks = [item.rank for item in token.alternatives]
    skipped = [max(0, rank - before - 1) if rank and before else 0 for before, rank in pairwise([0, *ranks])]
    return [
        replace(_alternative_row(item, token, both, hint), skipped=count)
        for item, count in zip(token.alternatives, skipped, strict=True)
    ]


def _bar_lengths(item: Alternative, both: bool) -> tuple[float, ...]:
    """Return the probabilities shown as bars."""
    if math.isnan(item.probability) or math.isnan(
        item.raw_probability
    ):  # an engine may report only one of the two, or none
        known = item.raw_probability if math.isnan(item.probability) else item.probability
        return (0.0 if math.isnan(known) else known,)
    return (item.raw_probability, item.probability) if both else (item.probability,)


def _alternative_row(item: Alternative, token: TokenChosen, both: bool, hint: float) -> BarRow:
    """Return a candidate's row. `hint`: how many times longer the faint strokes are than the bars; 0 for none."""
    cut = item.probability == 0.0
    shares = _bar_lengths(item, both)
    is_exact = words.is_only_survivor(token)
    final = tr("cut") if cut else words.brief_percent(item.probability, is_exact)
    status = _chosen_word(token.method) if token.id == item.id else ""
    return BarRow(
        label=token_text(item.text, item.special),
        lengths=shares,
        hints=tuple(share * hint for share in shares) if hint else (),
        figures=_figures(item, final, both),
        strong=item.id == token.id,
        faint=cut,
        key=None if item.id == token.id else item.id,
        tip=_alternative_tip(item, status, is_exact) + (tr(_HINT) if hint else ""),
    )


def _figures(item: Alternative, final: str, both: bool) -> tuple[str, ...]:
    if math.isnan(item.probability):
        return (words.brief_percent(item.raw_probability),)
    return (words.brief_percent(item.raw_probability), final) if both else (final,)


def _chosen_word(method: Method) -> str:
    """Return the word for how the step's token was obtained."""
    if method in _SAMPLING_METHODS:
        return tr("drawn")
    return tr("given") if method == "scored" else tr("chosen")


_SAMPLING_METHODS: frozenset[Method] = frozenset({"sampled", "dola_sampled"})


def _alternative_tip(item: Alternative, status: str, is_exact: bool = False) -> str:
    place = tr("id {id:,} · rank {rank:,}").format(id=item.id, rank=item.rank)
    if item.id < 0 or not item.rank:  # the engine does not report it
        place = tr("rank {rank}").format(rank=words.rank(item.rank)) if item.rank else ""
    model = tr("{share} from the model alone (log-probability {log_probability})").format(
        share=words.percent(item.raw_probability), log_probability=words.decimal(item.raw_log_probability)
    )
    after = tr("{share} after the settings").format(share=words.percent(item.probability, is_exact=is_exact))
    if math.isnan(item.probability):
        after = tr("probability after the settings not reported")
    head = " · ".join(part for part in (token_text(item.text, item.special), place, status) if part)
    return "\n".join((head, model, after if item.probability else tr("cut by the settings")))


def comparison_facts(second: TokenCompared) -> str:
    """Return `0.4 % · rank 212 · 11.8 bits apart`: the comparison model's figures for the token."""
    share = words.percent(second.probability)
    return tr("{share} · rank {rank:,} · divergence between the models: {divergence} bits").format(
        share=share, rank=second.rank, divergence=words.decimal(second.divergence)
    )


def compared_model_rows(second: TokenCompared) -> list[BarRow]:
    """Return the comparison model's own likeliest tokens."""
    return [
        BarRow(
            label=token_text(item.text, item.special),
            lengths=(item.raw_probability,),
            figures=(words.brief_percent(item.raw_probability),),
            strong=item.id == second.id,
            tip=_alternative_tip(item, tr("given") if item.id == second.id else ""),
        )
        for item in second.alternatives
    ]


CONTRASTIVE_HEAD = (mark("confidence"), mark("penalty"), mark("score"))


def contrastive_rows(token: TokenChosen) -> list[BarRow]:
    """Return candidates by score: the model's confidence, and the similarity to the text so far."""
    scored = [a for a in token.alternatives if a.score is not None]
    scored.sort(key=lambda a: -(a.score or 0.0))
    return [_contrastive_row(a, token.id) for a in scored]


def _contrastive_row(item: Alternative, chosen: int) -> BarRow:
    penalty, score = item.degeneration_penalty or 0.0, item.score or 0.0
    return BarRow(
        label=token_text(item.text, item.special),
        lengths=(item.probability, penalty),
        figures=(f"{item.probability:.2f}", f"{penalty:.2f}", f"{score:.2f}".replace("-", "−")),
        strong=item.id == chosen,
        key=None if item.id == chosen else item.id,
        tip=_contrastive_tip(item, item.id == chosen),
        bar_colors=("accent", "refused"),
    )


def _contrastive_tip(item: Alternative, is_chosen: bool) -> str:
    identity = tr("id {id:,}").format(id=item.id)
    head = f"{token_text(item.text, item.special)} · {identity}"
    figures = tr(
        "confidence {confidence:.3f}\ndegeneration penalty {penalty:.3f}: greatest similarity to any "
        "earlier token\nscore {score}"
    ).format(
        confidence=item.probability,
        penalty=item.degeneration_penalty or 0.0,
        score=words.decimal(item.score or 0.0, 3),
    )
    return f"{head} · {tr('chosen')}\n{figures}" if is_chosen else f"{head}\n{figures}"


def dola_layer_rows(choice: LayerChoice) -> list[BarRow]:
    """Return DoLa's candidate layers with their divergence from the last layer."""
    largest = max((divergence for _, divergence in choice.divergences), default=0.0) or 1.0
    return [
        BarRow(
            label=tr("layer {layer}").format(layer=layer),
            lengths=(divergence / largest,),
            figures=(f"{divergence:.3f}" if divergence >= 0.001 else f"{divergence:.1e}",),
            strong=layer == choice.layer,
            tip=_layer_tip(layer == choice.layer).format(layer=layer, divergence=divergence),
        )
        for layer, divergence in choice.divergences
    ]


def _layer_tip(is_chosen: bool) -> str:
    if is_chosen:
        return tr(
            "Jensen–Shannon divergence of layer {layer} from the last one: {divergence:.5f} (the "
            "largest, so this layer was contrasted)"
        )
    return tr("Jensen–Shannon divergence of layer {layer} from the last one: {divergence:.5f}")


def funnel_stages(token: TokenChosen, before: TokenChosen | None = None) -> list[FunnelStage]:
    """Return the stages of the funnel and the resulting token. `before`: the original step, if `token` is a what-if
    result.
    """
    can_move = strategies.movable()
    was = {stage.name: stage.survivors for stage in before.funnel} if before is not None else {}
    stages = [
        FunnelStage(
            stage.survivors, stage_label(stage), _stage_tip(stage, ahead),
            name=stage.name if stage.name in can_move else "",
            original_survivors=was.get(stage.name, stage.survivors) if before is not None else None,
            top_removed=_top_removed(stage),
        )
        for ahead, stage in zip((None, *token.funnel), token.funnel, strict=False)
    ]  # fmt: skip
    if stages:
        tip = _chosen_tip(token.method).format(piece=token_text(token.piece, token.is_special))
        stages.append(
            FunnelStage(
                1, _chosen_word(token.method), tip, is_outcome=True, original_survivors=None if before is None else 1
            )
        )
    return stages


def _top_removed(stage: Stage) -> float:
    """Return the fraction of the incoming probability mass that was cut from the top."""
    cut = stage.detail.top_cut if stage.detail is not None else None
    return 1 - stage.mass if cut is not None and cut.removed else 0.0


def _chosen_tip(method: Method) -> str:
    if method in _SAMPLING_METHODS:
        return tr("{piece} was drawn.")
    return tr("{piece} was given.") if method == "scored" else tr("{piece} was chosen.")


def _stage_tip(stage: Stage, before: Stage | None) -> str:
    """Return what the stage cut, and the details that it reports."""
    return "\n".join(filter(None, (explain_cut(stage, before), explain_stage(stage))))


def step_figures(token: TokenChosen) -> list[tuple[str, str]]:
    """Return named figures of the step, at the current level of detail."""
    doubt = (
        _unknown_uncertainty
        if is_remote_token(token)
        else depth.pick(_plain_uncertainty, _standard_uncertainty, _exact_uncertainty)
    )
    rows = doubt(token) + _stage_figures(token)
    if token.seconds:  # reproducible pictures show no times
        rows.append((tr("Time"), tr("{seconds:,.1f} ms").format(seconds=token.seconds * 1000)))
    return rows


def _stage_figures(token: TokenChosen) -> list[tuple[str, str]]:
    """Return figures of this step's stages: its temperature, and its surprise relative to the target."""
    rows, digits = [], depth.pick(1, 2, 4)
    for detail in token.details:
        if detail.heat is not None:
            name = depth.pick(tr("Temperature"), tr("Temperature"), tr("Temperature T"))
            rows.append((name, words.decimal(detail.heat.temperature, digits)))
        if detail.aim is not None and depth.current_depth() != depth.PLAIN:
            template = tr("{surprise} bits, target {target:g}")
            surprise = words.decimal(detail.aim.surprise, digits)
            rows.append((tr("Surprise"), template.format(surprise=surprise, target=detail.aim.target)))
    return rows


def _unknown_uncertainty(token: TokenChosen) -> list[tuple[str, str]]:
    """Report that the entropy is unknown: it needs the complete distribution."""
    return [(tr("Entropy"), tr("not reported by the engine"))]


def _plain_uncertainty(token: TokenChosen) -> list[tuple[str, str]]:
    choices = math.exp(token.entropy)
    words = tr("like {choices:,} equally likely choices") if choices >= 1.5 else tr("almost none")
    return [(tr("Uncertainty"), words.format(choices=round(choices)))]


def _exact_uncertainty(token: TokenChosen) -> list[tuple[str, str]]:
    entropy = tr("{nats:.4f} nats, {bits:.4f} bits").format(nats=token.entropy, bits=token.entropy / math.log(2))
    return [(tr("Entropy H"), entropy), (tr("Perplexity exp H"), f"{math.exp(token.entropy):,.4f}")]


def _standard_uncertainty(token: TokenChosen) -> list[tuple[str, str]]:
    choices = math.exp(token.entropy)
    likeness = (
        tr("{perplexity:,.1f}, like {choices:,} equally likely choices")
        if choices >= 1.5
        else tr("{perplexity:,.1f}, almost no uncertainty")
    )
    return [
        (tr("Entropy"), tr("{entropy:.2f} bits").format(entropy=token.entropy / math.log(2))),
        (tr("Perplexity"), likeness.format(perplexity=choices, choices=round(choices))),
    ]


def figures_table(rows: Sequence[tuple[str, str]]) -> str:
    """Return the rows as a small rich-text table."""
    import html  # not before a step is shown

    cells = "".join(f"<tr><td style='padding-right:12px'>{html.escape(a)}</td><td>{html.escape(b)}</td></tr>"
                    for a, b in rows)  # fmt: skip
    return f"<table cellspacing='0' cellpadding='1'>{cells}</table>"
