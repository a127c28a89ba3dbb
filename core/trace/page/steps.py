"""Tokens that were chosen one at a time, as the page has them: figures, alternatives, funnel, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.events import Alternative, LayerChoice, Stage, TokenChosen, TokenCompared
from core.explain.remote_tokens import is_elsewhere
from core.explain.stage_details import explain_stage
from core.explain.tokens import explain_token
from core.explain.words import visible
from core.processors.wording import stage_label
from core.trace.page.json_values import Plain, number, parts
from core.trace.page.token_texts import TokenTexts


class StageData:
    """Heads of the funnel's stages, each once; a step then says which, and what they left over."""

    def __init__(self) -> None:
        self.heads: list[list[str]] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def __call__(self, stage: Stage) -> int:
        key = (stage.name, stage.label)
        if key not in self._numbers:
            self._numbers[key] = len(self.heads)
            self.heads.append([stage_label(stage), stage.kind])
        return self._numbers[key]


def tokens(
    chosen: Sequence[TokenChosen], second: Mapping[int, TokenCompared], names: TokenTexts, stages: StageData
) -> list[Plain]:
    """All tokens of one text, with what a second model held of each, by step, where there is one."""
    made = [_token(token, names, stages) for token in chosen]
    for token, plain in zip(chosen, made, strict=True):
        if token.step in second:
            plain["second"] = _compared(second[token.step], names)
    return made


def _compared(other: TokenCompared, names: TokenTexts) -> Plain:
    return {
        "id": other.id,
        "raw": number(other.probability),
        "final": number(other.probability),
        "rank": other.rank,
        "entropy": number(other.entropy),
        "divergence": number(other.divergence),
        "others": [_alternative(item, names) for item in other.alternatives],
    }


def _token(token: TokenChosen, names: TokenTexts, stages: StageData) -> Plain:
    why = explain_token(token)
    found: Plain = {
        "id": token.id,
        "word": names(token.piece, token.is_special),
        "text": visible(token.text),
        "raw": number(token.raw_probability),
        "final": number(token.probability),
        "log": number(token.raw_log_probability),
        "rank": token.rank,
        "entropy": number(token.entropy),
        "seconds": number(token.seconds),
        "why": parts(why, why.figures),
        "others": [_alternative(item, names) for item in token.alternatives],
        "funnel": [[stages(stage), stage.survivors, number(stage.mass), number(stage.raw_mass)]
                   for stage in token.funnel],
    }  # fmt: skip
    return found | _particular(token)


def _particular(token: TokenChosen) -> Plain:
    """What few tokens have; left out where it is as usual."""
    found: Plain = {}
    if token.final_rank is not None and token.final_rank != token.rank:
        found["finalRank"] = token.final_rank
    if is_elsewhere(token):
        found["untold"] = True
    if token.special:
        found["special"] = True
    if token.origin != "target":
        found["origin"] = token.origin
    if token.method in ("sampled", "dola_sampled"):
        found["drawn"] = True
    if token.layer_choice is not None:
        found["layers"] = _layers(token.layer_choice)
    if told := [explain_stage(stage) for stage in token.funnel if stage.detail is not None]:
        found["did"] = [parts(sentence, sentence.figures) for sentence in told]
    return found


def _alternative(item: Alternative, names: TokenTexts) -> list[object]:
    """[id, word, by the model, after the settings, rank], and in contrastive search [penalty, score] behind them."""
    found: list[object] = [
        item.id,
        names(item.text, item.special),
        number(item.raw_probability),
        number(item.probability),
        item.rank,
    ]
    if item.score is not None:
        found += [number(item.degeneration_penalty), number(item.score)]
    return found


def _layers(choice: LayerChoice) -> list[object]:
    return [choice.layer, [[layer, number(divergence)] for layer, divergence in choice.divergences]]
