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
from core.trace.page.beams import beams
from core.trace.page.json_values import Plain
from core.trace.page.memory import memory
from core.trace.page.rounds import rounds
from core.trace.page.run_facts import SCORED, made, metrics, settings
from core.trace.page.steps import StageData, tokens
from core.trace.page.token_texts import TokenTexts
from resources.language import tr

_LONGEST_TITLE = 60


@dataclass(slots=True)
class _CollectedRun:
    """The events of a run by their kinds."""

    started: RunStarted | None = None
    finished: Finished | None = None
    ranking: BeamsRanked | None = None
    tokens: dict[int, list[TokenChosen]] = field(default_factory=dict)
    second: dict[int, TokenCompared] = field(default_factory=dict)
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
                self.second[event.step] = event
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


def collect(events: Iterable[Event], title: str = "") -> Plain:
    """Everything the page shows, as values that JSON can hold."""
    seen, run = list(events), _CollectedRun()
    for event in seen:
        run.add(event)
    names, stages = TokenTexts(), StageData()
    prompt, beginning = (run.started.prompt, run.started.beginning) if run.started else ((), ())
    is_scored = run.started is not None and run.started.strategy == SCORED
    plain = _plain((*prompt, *beginning), run)
    found: Plain = {
        "title": title or _title(_asked(prompt) or plain),
        "plain": plain,
        "made": made(run.started),
        "vocabulary": run.started.vocabulary if run.started else 0,
        "prompt": [_prompt_token(token) for token in prompt],
        "beginning": [_prompt_token(token) for token in beginning],
        "scored": is_scored,
        "second": run.started.second if run.started else "",
        "texts": _texts(run, names, stages),
        "beams": beams(run.steps, run.ranking, names),
        "rounds": rounds(run.rounds, names),
        "memory": memory(seen),
        "settings": settings(run.started),
        "metrics": metrics(run.finished, run.tokens.get(0, []) if is_scored else ()),
        "notices": run.notices,
    }
    return found | {"words": names.labels, "stages": stages.heads}


def _title(text: str) -> str:
    """The first words of what was asked, or of what was written."""
    text = " ".join(text.split())
    return cut_short(text, _LONGEST_TITLE + 1) or tr("A run")


def _prompt_token(token: PromptToken) -> list[object]:
    """[text, id], and behind them the name of a control token."""
    name = control_name(token.text, token.special)
    return [visible(token.text), token.id, *([name] if name else [])]


def _texts(run: _CollectedRun, names: TokenTexts, stages: StageData) -> list[Plain]:
    """Every text that was written; a search writes its own by its nodes, and only their endings stand here."""
    count = max([run.started.sequences if run.started else 1, *(number + 1 for number in run.tokens)])
    return [_text(run, number, names, stages) for number in range(count)]


def _text(run: _CollectedRun, number: int, names: TokenTexts, stages: StageData) -> Plain:
    ending = run.endings.get(number)
    return {
        "tokens": tokens(run.tokens.get(number, []), run.second, names, stages),
        "tail": visible(ending.tail) if ending else "",
        "ending": ending_brief(ending) if ending else tr("broken off"),
    }


def _plain(prompt: Sequence[PromptToken], run: _CollectedRun) -> str:
    """Prompt and first text, for a browser that runs no scripts."""
    written = run.finished.texts[0] if run.finished and run.finished.texts else ""
    return visible(_asked(prompt) + (written or "".join(token.text for token in run.tokens.get(0, []))))


def _asked(prompt: Sequence[PromptToken]) -> str:
    """Its text without control tokens."""
    return "".join(token.text for token in prompt if not control_name(token.text, token.special))
