"""Collect the events of a run into the plain values that a page is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from decodescope.core.common.text import cut_short
from decodescope.core.events import (
    Alternative,
    BeamsRanked,
    BeamStep,
    DraftRound,
    Event,
    Finished,
    LayerChoice,
    Notice,
    PromptToken,
    RunStarted,
    SequenceFinished,
    TokenChosen,
    TokenCompared,
)
from decodescope.core.explain.settings import explain_stage
from decodescope.core.explain.tokens import explain_token, is_remote
from decodescope.core.explain.words import control_name, ending_brief, thinking_share, visible
from decodescope.core.thinking import find_thinking
from decodescope.core.trace.page.json_values import (
    PageValues,
    StageTable,
    TokenTextTable,
    rounded_number,
    sentence_parts,
)
from decodescope.core.trace.page.run_facts import SCORED, memory_values, metric_rows, run_summary, setting_rows
from decodescope.core.trace.page.search_values import beam_values, funnel_values, round_values
from decodescope.resources.language import tr


def token_values(
    chosen: Sequence[TokenChosen], second: Mapping[int, TokenCompared], names: TokenTextTable, stages: StageTable
) -> list[PageValues]:
    """Return the data of one text's tokens, with the comparison model's ratings by step, if any."""
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
        "funnel": funnel_values(token.funnel, stages),
    }
    return found | _optional_values(token)


def _optional_values(token: TokenChosen) -> PageValues:
    """Return values that few tokens have; defaults are omitted."""
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
    if explanations := [explain_stage(stage) for stage in token.funnel if stage.detail is not None]:
        found["did"] = [sentence_parts(sentence, sentence.figures) for sentence in explanations]
    return found


def _alternative_values(item: Alternative, names: TokenTextTable) -> list[object]:
    """Return [id, word, raw probability, final probability, rank], and for contrastive search also [penalty, score]."""
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


_MAX_TITLE_LENGTH = 60


@dataclass(slots=True)
class _CollectedRun:
    """The events of a run by class."""

    started: RunStarted | None = None
    finished: Finished | None = None
    ranking: BeamsRanked | None = None
    tokens: dict[int, list[TokenChosen]] = field(default_factory=dict)
    comparisons: dict[int, TokenCompared] = field(default_factory=dict)
    """Ratings of the first text's tokens by a comparison model, by step."""
    endings: dict[int, SequenceFinished] = field(default_factory=dict)
    steps: list[BeamStep] = field(default_factory=list)
    rounds: list[DraftRound] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Add an event."""
        match event:
            case TokenChosen():
                self.tokens.setdefault(event.sequence, []).append(event)
            case TokenCompared():
                self.comparisons[event.step] = event
            case BeamStep():
                self.steps.append(event)
            case DraftRound():
                self.rounds.append(event)
            case SequenceFinished():
                self.endings[event.sequence] = event
            case Notice():
                self.notices.append(event.message)
            case RunStarted():
                self.started = event
            case BeamsRanked():
                self.ranking = event
            case Finished():
                self.finished = event


def collect_page_data(events: Iterable[Event], title: str = "") -> PageValues:
    """Return everything the page shows, as JSON-compatible values."""
    seen, run = list(events), _CollectedRun()
    for event in seen:
        run.add(event)
    names, stages = TokenTextTable(), StageTable()
    prompt, beginning = (run.started.prompt, run.started.beginning) if run.started else ((), ())
    is_scored = run.started is not None and run.started.strategy == SCORED
    plain = _plain_text((*prompt, *beginning), run)
    found: PageValues = {
        "title": title or _default_title(_prompt_text(prompt) or plain),
        "plain": plain,
        "made": run_summary(run.started),
        "vocabulary": run.started.vocabulary if run.started else 0,
        "prompt": [_prompt_token(token) for token in prompt],
        "beginning": [_prompt_token(token) for token in beginning],
        "scored": is_scored,
        "second": run.started.second if run.started else "",
        "texts": _all_text_values(run, names, stages),
        "beams": beam_values(run.steps, run.ranking, names, stages),
        "rounds": round_values(run.rounds, names),
        "memory": memory_values(seen),
        "settings": setting_rows(run.started),
        "metrics": metric_rows(run.finished, run.tokens.get(0, []) if is_scored else ()),
        "notices": run.notices,
    }
    return found | {"words": names.labels, "stages": stages.headings}


def _default_title(text: str) -> str:
    """Return the first words of the prompt or of the text."""
    text = " ".join(text.split())
    return cut_short(text, _MAX_TITLE_LENGTH + 1) or tr("Run")


def _prompt_token(token: PromptToken) -> list[object]:
    """Return [text, id], followed by the name if it is a control token."""
    name = control_name(token.text, token.special)
    return [visible(token.text), token.id, *([name] if name else [])]


def _all_text_values(run: _CollectedRun, names: TokenTextTable, stages: StageTable) -> list[PageValues]:
    """Return every text; for beam search, which is shown by its nodes, only the endings."""
    count = max([run.started.sequences if run.started else 1, *(number + 1 for number in run.tokens)])
    return [_text_values(run, number, names, stages) for number in range(count)]


def _text_values(run: _CollectedRun, number: int, names: TokenTextTable, stages: StageTable) -> PageValues:
    ending = run.endings.get(number)
    tokens = run.tokens.get(number, [])
    values = token_values(tokens, run.comparisons, names, stages)
    thinking = find_thinking(run.started, tokens)
    for start, stop in thinking.ranges:
        for value in values[start:stop]:
            value["thinking"] = True
    return {
        "tokens": values,
        "thinking": thinking_share(thinking.token_count, len(tokens)) if thinking.ranges else "",
        "tail": visible(ending.tail) if ending else "",
        "ending": ending_brief(ending) if ending else tr("interrupted"),
    }


def _plain_text(prompt: Sequence[PromptToken], run: _CollectedRun) -> str:
    """Return prompt and first text, for browsers without scripts."""
    written = run.finished.texts[0] if run.finished and run.finished.texts else ""
    return visible(_prompt_text(prompt) + (written or "".join(token.text for token in run.tokens.get(0, []))))


def _prompt_text(prompt: Sequence[PromptToken]) -> str:
    """Return the prompt's text without control tokens."""
    return "".join(token.text for token in prompt if not control_name(token.text, token.special))
