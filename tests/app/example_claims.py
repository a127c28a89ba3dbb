"""The claims of the examples' captions as checks on their runs: `shows` in resources/examples.json.

Each claim is a function of its name; it takes the runs and the claim's own values and asserts what they say.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, pairwise
from typing import Any

import jsonschema

from decodescope import core
from decodescope.app.session.engine import CoreEngine
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.app.storage.examples import ExamplePrompt
from decodescope.core.events import (
    BeamsRanked,
    BeamStep,
    DraftNode,
    DraftRound,
    Event,
    Finished,
    RunStarted,
    TokenChosen,
)
from decodescope.core.strategies import registry

ODD = 1e-3
"""The model alone would write such a token less than once in a thousand times."""


class Runs:
    """The examples' runs as the window makes them, each once; an engine holds one model at a time."""

    def __init__(self, examples: Mapping[str, ExamplePrompt]) -> None:
        self.examples = examples
        self._engine = CoreEngine()
        self._known: dict[str, ExampleRun] = {}

    def of(self, name: str, **changes: Any) -> ExampleRun:
        """The run of an example; `strategy` and `seed` may differ."""
        key = f"{name} {changes}"
        if key not in self._known:
            self._known[key] = ExampleRun(self, self.examples[name], list(self._events(self.examples[name], **changes)))
        return self._known[key]

    def _events(self, example: ExamplePrompt, strategy: str = "", seed: int | None = None) -> Iterator[Event]:
        chosen = registry[strategy or example.strategy]
        own = dict(example.params) if not strategy else {"max_new_tokens": example.params["max_new_tokens"]}
        settings = {p.name: p.default for p in chosen.parameters if p.default is not None} | own
        request = RunRequest(
            tuple(example.messages) if example.is_chat else example.prompt, settings, chosen.name,
            load=LoadRequest(example.model), draft_names=() if strategy else example.drafters,
            seed=(example.seed or 0) if seed is None else seed, steady=True, media=example.files,
        )  # fmt: skip
        self._engine.load(request.load)
        return self._engine.stream(request, threading.Event())

    def parameters(self, model: str) -> int:
        """Return a model's parameter count."""
        return CoreEngine().load(LoadRequest(model)).parameters


class ExampleRun:
    """The texts and events of an example's run."""

    def __init__(self, runs: Runs, example: ExamplePrompt, events: list[Event]) -> None:
        self.runs, self.example, self.events = runs, example, events
        self.finished = next(event for event in events if isinstance(event, Finished))
        self.texts, self.text = self.finished.texts, self.finished.texts[0]
        self.tokens = [event for event in events if isinstance(event, TokenChosen)]
        self.rounds = [event for event in events if isinstance(event, DraftRound)]
        self.steps = [event for event in events if isinstance(event, BeamStep)]
        self.prompt = "".join(token.text for event in events if isinstance(event, RunStarted) for token in event.prompt)

    def other(self, **changes: Any) -> ExampleRun:
        """The same example, changed."""
        return self.runs.of(self.example.id, **changes)

    @property
    def sentences(self) -> list[str]:
        """The whole ones; their white space does not count."""
        return [sentence.strip() for sentence in re.findall(r"[^.!?。！？]+[.!?。！？]", self.text)]

    def tokens_of(self, text: str) -> list[list[TokenChosen]]:
        """Return the tokens of every occurrence of `text`."""
        starts = [0]
        for token in self.tokens:
            starts.append(starts[-1] + len(token.text))
        whole = "".join(token.text for token in self.tokens)
        spans = [match.span() for match in re.finditer(re.escape(text), whole)]
        placed = list(zip(self.tokens, pairwise(starts), strict=True))
        return [[token for token, (at, end) in placed if at < stop and end > start] for start, stop in spans]


CLAIMS: dict[str, Callable[..., None]] = {}


def claim(check: Callable[..., None]) -> Callable[..., None]:
    """Registers a claim by its name."""
    CLAIMS[check.__name__] = check
    return check


def words_of(text: str) -> list[str]:
    """Its words, without marks and capitals."""
    return re.findall(r"\w+", text.lower())


def repeats_at_the_end(sentences: list[str]) -> int:
    """Return how often the last sentence is repeated at the end."""
    return next((n for n, sentence in enumerate(reversed(sentences)) if sentence != sentences[-1]), len(sentences))


# Texts


@claim
def another_seed_another_text(run: ExampleRun) -> None:
    assert run.other(seed=(run.example.seed or 0) + 1).text != run.text


@claim
def another_seed_same_text(run: ExampleRun) -> None:
    assert run.other(seed=(run.example.seed or 0) + 1).text == run.text


@claim
def same_text_as(run: ExampleRun, example: str) -> None:
    reference = run.runs.of(example).text
    assert reference.startswith(run.text)
    assert len(run.text) > 300


@claim
def writes(run: ExampleRun, text: str) -> None:
    assert run.text.strip() == text


@claim
def certain(run: ExampleRun, least: float, but: str = "") -> None:
    """Every word is certain, except one."""
    assert all(token.raw_probability >= least for token in run.tokens if token.text.strip() != but)


@claim
def comes_second(run: ExampleRun, word: str, other: str, least: float) -> None:
    """Require that `other` is the second choice, with at least this probability, where `word` is generated."""
    (chosen, *_) = [token for token in run.tokens if token.text.strip() == word]
    second = next(one for one in chosen.alternatives if one.id != chosen.id)
    assert second.text.strip() == other
    assert chosen.raw_probability > second.raw_probability >= least


@claim
def loops(run: ExampleRun, times: int) -> None:
    assert repeats_at_the_end(run.sentences) == len(run.sentences) >= times
    assert run.finished.metrics.new_tokens == run.example.params["max_new_tokens"]
    assert len(set(words_of(run.sentences[0])) ^ set(words_of(run.example.prompt))) == 2  # one word for another


@claim
def new_then_loop(run: ExampleRun, new: int, times: int) -> None:
    last = repeats_at_the_end(run.sentences)
    assert last >= times
    assert len(set(run.sentences[:-last])) >= new


@claim
def loops_later_than(run: ExampleRun, example: str) -> None:
    reference = run.runs.of(example).sentences
    at, before = (len(reported) - repeats_at_the_end(reported) for reported in (run.sentences, reference))
    assert at > before


@claim
def no_sentence_twice(run: ExampleRun) -> None:
    assert len(run.sentences) == len(set(run.sentences)) > 5


@claim
def contains(run: ExampleRun, text: str, times: int = 1) -> None:
    assert run.text.count(text) >= times


@claim
def text_is(run: ExampleRun, text: str) -> None:
    assert run.text.strip() == text


@claim
def copies(run: ExampleRun, text: str) -> None:
    """Words of the prompt, drafted and accepted."""
    assert text in run.prompt
    assert text in run.text
    assert any(entry.accepted for entry in run.rounds)
    drafted = {token.step for places in run.tokens_of(text) for token in places if token.origin == "draft"}
    assert drafted


@claim
def texts_differ(run: ExampleRun) -> None:
    assert len(set(run.texts)) == len(run.texts) == run.example.params["num_return_sequences"]


@claim
def first_words_differ(run: ExampleRun) -> None:
    assert len({text.split()[0] for text in run.texts}) == len(run.texts) == 4


@claim
def leaves_out(run: ExampleRun, word: str) -> None:
    assert word in run.example.prompt
    assert not any(word in words_of(text) or "courageux" in words_of(text) for text in run.texts)


@claim
def first_from_the_story(run: ExampleRun) -> None:
    reported = set(words_of(run.example.prompt))
    strange = [set(words_of(text)) - reported for text in run.texts]
    assert not strange[0]
    assert all(strange[1:])


# Tokens


@claim
def always_the_likeliest(run: ExampleRun) -> None:
    assert all((token.final_rank or token.rank) == 1 for token in run.tokens)


@claim
def fits_its_schema(run: ExampleRun) -> None:
    schema = run.example.params["grammar"]["json_schema"]
    jsonschema.validate(json.loads("".join(token.text for token in run.tokens if not token.special)), schema)


@claim
def overruled_at_every_step(run: ExampleRun) -> None:
    found = core.grammar_figures(run.tokens)
    assert found is not None
    assert found.overruled == found.steps == len(run.tokens)


@claim
def unsure_then_expected(run: ExampleRun, word: str, before: float, after: float = 0.0) -> None:
    first, *later = run.tokens_of(word)
    assert min(token.raw_probability for token in first) <= before
    assert all(min(token.raw_probability for token in tokens) >= after for tokens in later)
    assert later or not after


@claim
def sure_of(run: ExampleRun, text: str, share: float) -> None:
    (tokens,) = run.tokens_of(text)
    assert all(token.raw_probability >= share for token in tokens)


@claim
def odd_tokens(run: ExampleRun, least: int = 0, most: int | None = None) -> None:
    odd = [token for token in run.tokens if token.raw_probability < ODD]
    assert least <= len(odd) <= (len(run.tokens) if most is None else most)


@claim
def same_temperature_as(run: ExampleRun, example: str) -> None:
    reference = run.runs.of(example).example
    assert (run.example.params["temperature"], run.example.seed) == (reference.params["temperature"], reference.seed)


@claim
def stage_holds(run: ExampleRun, stage: str, mass: float) -> None:
    found = [entry for token in run.tokens for entry in token.funnel if entry.name == stage]
    assert len(found) == len(run.tokens)
    assert all(entry.mass >= mass - 1e-4 for entry in found)
    assert sum(entry.mass < 0.97 for entry in found) > 10


@claim
def stage_cuts(run: ExampleRun, stage: str) -> None:
    cuts = [before.survivors - after.survivors for token in run.tokens for before, after in pairwise(token.funnel)
            if after.name == stage]  # fmt: skip
    assert sum(cut > 0 for cut in cuts) > 10


@claim
def no_ngram_twice(run: ExampleRun, size: int) -> None:
    prompt = [token.id for event in run.events if isinstance(event, RunStarted) for token in event.prompt]
    ids = [*prompt, *run.finished.sequences[0]]
    runs = [tuple(ids[at : at + size]) for at in range(len(ids) - size + 1)]
    assert len(runs) == len(set(runs))


@claim
def contrast_skipped_likelier(run: ExampleRun, least: int) -> None:
    """Steps at which a likelier token lost because it was too similar to the previous text."""
    assert sum((token.final_rank or token.rank) > 1 for token in run.tokens) >= least


@claim
def layers_named(run: ExampleRun) -> None:
    choices = [token.layer_choice for token in run.tokens]
    assert all(choice is not None and len(choice.divergences) > 1 for choice in choices)


@claim
def second_choice(run: ExampleRun, chosen: str, second: str) -> None:
    found = [token for token in run.tokens if token.piece == chosen]
    assert found
    assert all([item.text for item in token.alternatives[:2]] == [chosen, second] for token in found)


# Beams


@claim
def likelier_than_greedy(run: ExampleRun) -> None:
    greedy = run.other(strategy="greedy")
    reference = sum(token.raw_log_probability for token in greedy.tokens)
    ranked = next(event for event in run.events if isinstance(event, BeamsRanked))
    assert len(greedy.tokens) == ranked.hypotheses[0].length
    assert all(item.log_probability > reference for item in ranked.hypotheses)


@claim
def open_alike(run: ExampleRun, share: float) -> None:
    texts = run.texts
    same = next((n for n, letters in enumerate(zip(*texts, strict=False)) if len(set(letters)) > 1), len(texts[0]))
    assert same >= share * max(map(len, texts))


@claim
def few_words_differ(run: ExampleRun, most: int) -> None:
    for one, other in combinations(run.texts, 2):
        assert len(set(words_of(one)) ^ set(words_of(other))) <= most


@claim
def banks(run: ExampleRun) -> None:
    """Beams that satisfy all constraints and beams that satisfy none exist at the same time."""
    met = [{item.progress for item in step.candidates if item.fate == "kept"} for step in run.steps]
    required = run.steps[0].required
    assert required
    assert sum({0, required} <= progress for progress in met) > len(met) / 2


# Drafts


@claim
def small_draft(run: ExampleRun, share: float) -> None:
    (draft,) = run.example.drafters
    assert run.runs.parameters(draft) <= share * run.runs.parameters(run.example.model)


@claim
def drafts(run: ExampleRun, tokens: int) -> None:
    assert all(len(entry.nodes) == tokens for entry in run.rounds[:-1])


@claim
def fewer_passes(run: ExampleRun, share: float) -> None:
    assert run.finished.metrics.target_passes <= share * run.finished.metrics.new_tokens


@claim
def branches(run: ExampleRun) -> None:
    def branch(nodes: tuple[DraftNode, ...]) -> bool:
        parents = [node.parent for node in nodes]
        return len(parents) > len(set(parents))

    assert all(branch(entry.nodes) for entry in run.rounds[:-1])


@claim
def both_draft(run: ExampleRun) -> None:
    proposers = [{who for node in entry.nodes for who in (node.proposers or (node.drafter,))} for entry in run.rounds]
    assert all(who == {0, 1} for who in proposers)
