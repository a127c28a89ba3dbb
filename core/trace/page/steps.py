"""Tokens that were chosen one at a time, as the page has them: figures, alternatives, funnel, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.events import Alternative, LayerChoice, Stage, TokenChosen, TokenCompared
from core.explain.remote_tokens import is_remote
from core.explain.stage_details import explain_stage
from core.explain.tokens import explain_token
from core.explain.words import visible
from core.processors.wording import stage_label
from core.trace.page.json_values import PageValues, rounded_number, sentence_parts
from core.trace.page.token_texts import TokenTextTable


class StageTable:
    """Heads of the funnel's stages, each once; a step then says which, and what they left over."""

    def __init__(self) -> None:
        self.headings: list[list[str]] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def __call__(self, stage: Stage) -> int:
        key = (stage.name, stage.label)
        if key not in self._numbers:
            self._numbers[key] = len(self.headings)
            self.headings.append([stage_label(stage), stage.kind])
        return self._numbers[key]


def token_values(
    chosen: Sequence[TokenChosen], second: Mapping[int, TokenCompared], names: TokenTextTable, stages: StageTable
) -> list[PageValues]:
    """All tokens of one text, with what a second model held of each, by step, where there is one."""
    made = [_token_value(token, names, stages) for token in chosen]
    for token, plain in zip(chosen, made, strict=True):
        if token.step in second:
            plain["second"] = _comparison_values(second[token.step], names)
    return made


def _comparison_values(other: TokenCompared, names: TokenTextTable) -> PageValues:
    return {
        "id": other.id,
        "raw": rounded_number(other.probability),
        "final": rounded_number(other.probability),
        "rank": other.rank,
        "entropy": rounded_number(other.entropy),
        "divergence": rounded_number(other.divergence),
        "others": [_alternative_values(item, names) for item in other.alternatives],
    }


def _token_value(token: TokenChosen, names: TokenTextTable, stages: StageTable) -> PageValues:
    why = explain_token(token)
    found: PageValues = {
        "id": token.id,
        "word": names(token.piece, token.is_special),
        "text": visible(token.text),
        "raw": rounded_number(token.raw_probability),
        "final": rounded_number(token.probability),
        "log": rounded_number(token.raw_log_probability),
        "rank": token.rank,
        "entropy": rounded_number(token.entropy),
        "seconds": rounded_number(token.seconds),
        "why": sentence_parts(why, why.figures),
        "others": [_alternative_values(item, names) for item in token.alternatives],
        "funnel": [[stages(stage), stage.survivors, rounded_number(stage.mass), rounded_number(stage.raw_mass)]
                   for stage in token.funnel],
    }  # fmt: skip
    return found | _optional_values(token)


def _optional_values(token: TokenChosen) -> PageValues:
    """What few tokens have; left out where it is as usual."""
    found: PageValues = {}
    if token.final_rank is not None and token.final_rank != token.rank:
        found["finalRank"] = token.final_rank
    if is_remote(token):
        found["untold"] = True
    if token.special:
        found["special"] = True
    if token.origin != "target":
        found["origin"] = token.origin
    if token.method in ("sampled", "dola_sampled"):
        found["drawn"] = True
    if token.layer_choice is not None:
        found["layers"] = _layer_values(token.layer_choice)
    if told := [explain_stage(stage) for stage in token.funnel if stage.detail is not None]:
        found["did"] = [sentence_parts(sentence, sentence.figures) for sentence in told]
    return found


def _alternative_values(item: Alternative, names: TokenTextTable) -> list[object]:
    """[id, word, by the model, after the settings, rank], and in contrastive search [penalty, score] behind them."""
    found: list[object] = [
        item.id,
        names(item.text, item.special),
        rounded_number(item.raw_probability),
        rounded_number(item.probability),
        item.rank,
    ]
    if item.score is not None:
        found += [rounded_number(item.degeneration_penalty), rounded_number(item.score)]
    return found


def _layer_values(choice: LayerChoice) -> list[object]:
    return [choice.layer, [[layer, rounded_number(divergence)] for layer, divergence in choice.divergences]]
