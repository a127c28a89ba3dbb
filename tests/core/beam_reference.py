"""Plain reference implementations of beam search: every hypothesis is read from its first token at every step,
without a cache.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from decodescope import core

Text = tuple[int, ...]
Scored = tuple[Text, float]


def log_probabilities(model: core.LoadedModel, prompt: Sequence[int], texts: Sequence[Text]) -> list[list[float]]:
    """Return log-probabilities of the next token after each of `texts` (all of one length), [n][V]."""
    with torch.inference_mode():
        if model.is_encoder_decoder:
            start = model.generation_config.decoder_start_token_id
            rows = torch.tensor([[start, *text] for text in texts])
            logits = model.model(input_ids=torch.tensor([list(prompt)] * len(texts)), decoder_input_ids=rows).logits
        else:
            logits = model.model(torch.tensor([[*prompt, *text] for text in texts])).logits
    return torch.log_softmax(logits[:, -1].float(), -1).tolist()


def exhaustive(model: core.LoadedModel, prompt: Sequence[int], steps: int, eos: int, penalty: float) -> list[Scored]:
    """Every text of at most `steps` tokens that ends with `eos` or at the limit, best first."""
    found: list[Scored] = []
    running: list[Scored] = [((), 0.0)]
    for step in range(1, steps + 1):
        tables = log_probabilities(model, prompt, [text for text, _ in running])
        longer = [
            ((*text, token), score + value)
            for (text, score), table in zip(running, tables, strict=True)
            for token, value in enumerate(table)
        ]
        found += [(text, score / step**penalty) for text, score in longer if text[-1] == eos or step == steps]
        running = [(text, score) for text, score in longer if text[-1] != eos]
    return sorted(found, key=lambda item: -item[1])


class FinishedTexts:
    """The best `size` finished texts, with the stopping rule of early_stopping False or True."""

    def __init__(self, size: int, penalty: float, early: bool) -> None:
        self.size, self.penalty, self.early = size, penalty, early
        self.items: list[Scored] = []

    def add(self, text: Text, score: float) -> None:
        self.items.append((text, score / len(text) ** self.penalty))
        self.items = sorted(self.items, key=lambda item: -item[1])[: self.size]

    def is_done(self, best: float, length: int) -> bool:
        if len(self.items) < self.size:
            return False
        return self.early or self.items[-1][1] >= best / length**self.penalty


def diverse(
    model: core.LoadedModel, prompt: Sequence[int], groups: int, width: int, diversity: float, steps: int,
    eos: set[int], penalty: float = 1.0, early: bool = False,
) -> list[Scored]:  # fmt: skip
    """Group beam search with Hamming diversity (Vijayakumar et al. 2018; transformers 4)."""
    beams: list[list[Scored]] = [[((), 0.0)] for _ in range(groups)]
    finished = [FinishedTexts(width, penalty, early) for _ in range(groups)]
    done = [False] * groups
    for step in range(1, steps + 1):
        chosen: list[int] = []
        for group in range(groups):
            if done[group]:
                continue
            tables = log_probabilities(model, prompt, [text for text, _ in beams[group]])
            candidates = sorted(
                (
                    ((*text, token), score + value - diversity * chosen.count(token))
                    for (text, score), table in zip(beams[group], tables, strict=True)
                    for token, value in enumerate(table)
                ),
                key=lambda item: -item[1],
            )[: max(2, 1 + len(eos)) * width]
            for rank, (text, score) in enumerate(candidates):
                if text[-1] in eos and rank < width:
                    finished[group].add(text, score)
            beams[group] = [item for item in candidates if item[0][-1] not in eos][:width]
            chosen += [text[-1] for text, _ in beams[group]]
            done[group] = finished[group].is_done(candidates[0][1], step)
    for group in range(groups):
        for text, score in [] if done[group] else beams[group]:
            finished[group].add(text, score)
    return sorted((item for group in finished for item in group.items), key=lambda item: -item[1])


def contains(text: Text, phrase: Sequence[int]) -> bool:
    """Return whether the text contains the phrase."""
    return any(text[i : i + len(phrase)] == tuple(phrase) for i in range(len(text) - len(phrase) + 1))


class Walk:
    """transformers 4's way through a list of phrases, each a list of alternatives, replayed from the first token."""

    def __init__(self, phrases: list[list[list[int]]], text: Text) -> None:
        self.open, self.met, self.current, self.seen = list(phrases), 0, None, []
        self.weight = max(len(alternative) for phrase in phrases for alternative in phrase)
        for token in text:
            self.feed(token)

    @property
    def complete(self) -> bool:
        return not self.open and self.current is None

    def feed(self, token: int) -> None:
        if self.complete:
            return
        if self.current is not None:
            self.seen.append(token)
            if not self.begins(self.current):
                self.open.append(self.current)
                self.current, self.seen = None, []
            elif self.seen in self.current:
                self.met, self.current, self.seen = self.met + 1, None, []
            return
        self.seen = [token]
        for phrase in self.open:
            if self.begins(phrase):
                self.open.remove(phrase)
                if self.seen in phrase:
                    self.met += 1
                else:
                    self.current = phrase
                    return
                break
        self.seen = []

    def begins(self, phrase: list[list[int]]) -> bool:
        return any(alternative[: len(self.seen)] == self.seen for alternative in phrase)

    def advance(self) -> list[int]:
        places = [self.current] if self.current is not None else self.open
        found = [a[len(self.seen)] for phrase in places for a in phrase if a[: len(self.seen)] == self.seen]
        return list(dict.fromkeys(found))

    def bank(self) -> int:
        left = max(map(len, self.current)) - len(self.seen) if self.current is not None else self.weight
        return self.met * self.weight + (self.weight - left)


def by_banks(candidates: list[Scored], banks: list[int], size: int) -> list[Scored]:
    """One from each bank in turn, the highest bank first."""
    piles: dict[int, list[Scored]] = {}
    for item, bank in sorted(zip(candidates, banks, strict=True), key=lambda pair: -pair[0][1]):
        piles.setdefault(bank, []).append(item)
    layers = itertools.zip_longest(*(piles[bank] for bank in sorted(piles, reverse=True)))
    return [item for layer in layers for item in layer if item is not None][:size]


def constrained(
    model: core.LoadedModel, prompt: Sequence[int], phrases: list[list[list[int]]], beams: int, steps: int,
    eos: set[int], penalty: float = 1.0,
) -> list[Scored]:  # fmt: skip
    """Constrained beam search as transformers 4 did it, except that the prompt's tokens do not count."""
    running: list[Scored] = [((), 0.0)]
    finished, done = FinishedTexts(beams, penalty, False), False
    for step in range(1, steps + 1):
        tables = log_probabilities(model, prompt, [text for text, _ in running])
        total: dict[Text, float] = {
            (*text, token): score + value
            for (text, score), table in zip(running, tables, strict=True)
            for token, value in enumerate(table)
        }
        usual = sorted(total.items(), key=lambda item: -item[1])[: max(2, 1 + len(eos)) * beams]
        for rank, (text, score) in enumerate(usual):
            if text[-1] in eos and rank < beams and Walk(phrases, text).complete:
                finished.add(text, score)
        pool = [item for item in usual if item[0][-1] not in eos][:beams]
        for text, _ in running:
            walk = Walk(phrases, text)
            for token in [] if walk.complete else walk.advance():
                if all((*text, token) != known for known, _ in pool):
                    pool.append(((*text, token), total[(*text, token)]))
        running = by_banks(pool, [Walk(phrases, text).bank() for text, _ in pool], beams)
        done = finished.is_done(usual[0][1], step)
        if done:
            break
    for text, score in [] if done else running:
        if Walk(phrases, text).complete:
            finished.add(text, score)
    return finished.items


def run(model: core.LoadedModel, ids: Sequence[int], strategy: str | None = None, **settings: Any) -> core.Result:
    """A run of the core with these settings; `options` are passed on."""
    from transformers import GenerationConfig

    options = settings.pop("options", {})
    seed = settings.pop("seed", 0)
    config = GenerationConfig(**{"max_new_tokens": 12, **settings})
    return core.run(model, core.Request(list(ids), config, strategy=strategy, options=options, seed=seed))
