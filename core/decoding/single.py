"""One token at a time: the loop that greedy decoding, sampling and DoLa share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch

from core.decoding.funnel import Heading
from core.decoding.growing import Growing, growing_ids
from core.decoding.run import DecodingRun
from core.decoding.tracks import Track
from core.decoding.writing import Writer
from core.events import Event, LayerChoice, Method


class Picker(Protocol):
    """How the next token is taken from processed scores."""

    method: Method

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Token ids [B] from scores [B, V]."""


class Greedy:
    """The best score."""

    method: Method = "greedy"

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """argmax; the lowest id among equals."""
        return scores.argmax(-1)


class Multinomial:
    """A draw from the distribution."""

    method: Method = "sampled"

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """One draw from softmax(scores) for each row."""
        return torch.multinomial(torch.softmax(scores, -1), 1, generator=generator).squeeze(1)


class SeededMultinomial:
    """A draw for each text with a generator of its own: text n draws what a run of its own with `seed + n` draws.

    The draws are those of that run exactly, given the same distribution; a batch may compute the distribution with
    other last bits than one row does.
    """

    method: Method = "sampled"

    def __init__(self, seed: int, rows: int, device: torch.device) -> None:
        self._generators = [torch.Generator(device).manual_seed(seed + row) for row in range(rows)]

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """One draw from softmax(scores) for each row, by the row's own generator."""
        shares = torch.softmax(scores, -1)
        drawn = [torch.multinomial(row, 1, generator=own) for row, own in zip(shares, self._generators, strict=True)]
        return torch.cat(drawn)

    def dice(self, rows: int) -> torch.Tensor:
        """A number of [0, 1) for each row, by the row's own generator."""
        return torch.cat([torch.rand(1, generator=own, device=own.device) for own in self._generators[:rows]])


class Contrast(Protocol):
    """Something that reads the layers before the funnel does (DoLa)."""

    heading: Heading

    def apply(self, logits: torch.Tensor, hidden: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, LayerChoice]:
        """Contrasted scores [B, V] and what was chosen."""


def decode_single(run: DecodingRun, picker: Picker, contrast: Contrast | None = None) -> Iterator[Event]:
    """Pick a token for every sequence, step by step, until all have ended."""
    rows = run.sequences
    tracks = [run.scribe.track(number) for number in range(rows)]
    ids = growing_ids(run.start_ids, rows, run.model.device)
    names = [stage.heading for stage in run.funnel.stages]
    if contrast:
        names.insert(0, contrast.heading)
    writer = Writer(run, tracks, names, picker.method)
    try:
        yield from _steps(run, tracks, ids, picker, contrast, writer)
    except Exception:
        yield from writer.flush()  # the text so far is shown, whatever went wrong
        raise
    yield from run.end(tracks)


def _steps(
    run: DecodingRun, tracks: list[Track], ids: Growing, picker: Picker, contrast: Contrast | None, writer: Writer
) -> Iterator[Event]:
    output, prefilled = run.prefill(len(tracks), hidden=contrast is not None)
    yield prefilled
    step = 0
    while True:
        raw, choice = run.repair(output.last), None
        scores = [raw]
        if contrast:
            assert output.hidden is not None
            contrasted, choice = contrast.apply(raw, output.hidden)
            scores.append(contrasted)
        scores += run.funnel.trace(ids.tensor, scores[-1])[1:]
        run.check_scores(scores[-1], raw, step)
        chosen = picker.pick(scores[-1], run.generator)
        yield from writer.write(step, scores, chosen, choice)
        column = chosen[:, None]
        ids.append(column)
        step += 1
        if all(track.stop for track in tracks) or run.is_cancelled():
            break
        output = run.forward(column, hidden=contrast is not None)
    yield from writer.flush()
