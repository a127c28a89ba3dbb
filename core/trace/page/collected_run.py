"""The run gathered from its events, as the plain values that a page is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from core.events import (
    BeamsRanked,
    BeamStep,
    DraftRound,
    Event,
    Finished,
    Notice,
    PromptToken,
    RunStarted,
    SequenceFinished,
    TokenChosen,
    TokenCompared,
)
from core.explain.words import control_name, ending_brief, visible
from core.text_truncation import cut_short
from core.trace.page.beams import beam_values
from core.trace.page.json_values import PageValues
from core.trace.page.memory import memory_values
from core.trace.page.rounds import round_values
from core.trace.page.run_facts import SCORED, metric_rows, run_summary, setting_rows
from core.trace.page.steps import StageTable, token_values
from core.trace.page.token_texts import TokenTextTable
from resources.language import tr

_MAX_TITLE_LENGTH = 60


@dataclass(slots=True)
class _CollectedRun:
    """The events of a run by their kinds."""

    started: RunStarted | None = None
    finished: Finished | None = None
    ranking: BeamsRanked | None = None
    tokens: dict[int, list[TokenChosen]] = field(default_factory=dict)
    comparisons: dict[int, TokenCompared] = field(default_factory=dict)
    """What a second model held of the tokens of the first text, by their steps."""
    endings: dict[int, SequenceFinished] = field(default_factory=dict)
    steps: list[BeamStep] = field(default_factory=list)
    rounds: list[DraftRound] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Sort it in."""
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
    """Everything the page shows, as values that JSON can hold."""
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
        "beams": beam_values(run.steps, run.ranking, names),
        "rounds": round_values(run.rounds, names),
        "memory": memory_values(seen),
        "settings": setting_rows(run.started),
        "metrics": metric_rows(run.finished, run.tokens.get(0, []) if is_scored else ()),
        "notices": run.notices,
    }
    return found | {"words": names.labels, "stages": stages.headings}


def _default_title(text: str) -> str:
    """The first words of what was asked, or of what was written."""
    text = " ".join(text.split())
    return cut_short(text, _MAX_TITLE_LENGTH + 1) or tr("A run")


def _prompt_token(token: PromptToken) -> list[object]:
    """[text, id], and behind them the name of a control token."""
    name = control_name(token.text, token.special)
    return [visible(token.text), token.id, *([name] if name else [])]


def _all_text_values(run: _CollectedRun, names: TokenTextTable, stages: StageTable) -> list[PageValues]:
    """Every text that was written; a search writes its own by its nodes, and only their endings stand here."""
    count = max([run.started.sequences if run.started else 1, *(number + 1 for number in run.tokens)])
    return [_text_values(run, number, names, stages) for number in range(count)]


def _text_values(run: _CollectedRun, number: int, names: TokenTextTable, stages: StageTable) -> PageValues:
    ending = run.endings.get(number)
    return {
        "tokens": token_values(run.tokens.get(number, []), run.comparisons, names, stages),
        "tail": visible(ending.tail) if ending else "",
        "ending": ending_brief(ending) if ending else tr("broken off"),
    }


def _plain_text(prompt: Sequence[PromptToken], run: _CollectedRun) -> str:
    """Prompt and first text, for a browser that runs no scripts."""
    written = run.finished.texts[0] if run.finished and run.finished.texts else ""
    return visible(_prompt_text(prompt) + (written or "".join(token.text for token in run.tokens.get(0, []))))


def _prompt_text(prompt: Sequence[PromptToken]) -> str:
    """Its text without control tokens."""
    return "".join(token.text for token in prompt if not control_name(token.text, token.special))
