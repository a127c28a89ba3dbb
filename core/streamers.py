"""Feeding transformers' streamer protocol (`put` and `end`) from a stream of events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch

from core.events import Event, Finished, RunStarted, TokenChosen


@runtime_checkable
class Streamer(Protocol):
    """transformers' protocol."""

    def put(self, value: torch.Tensor) -> None:
        """Token ids: the prompt [1, T] first, then [1] each."""

    def end(self) -> None:
        """Nothing more comes."""


def feed_streamer(streamer: Streamer, events: Iterator[Event]) -> Iterator[Event]:
    """Pass events through, handing the prompt [1, T] and then every token of the first sequence [1] to `streamer`.

    A strategy that only knows its text at the end (beams) hands it over there. `end` is called in any case.
    """
    streamed = 0
    try:
        for event in events:
            if isinstance(event, RunStarted):
                streamer.put(torch.tensor([[token.id for token in (*event.prompt, *event.beginning)]]))
            elif isinstance(event, TokenChosen) and event.sequence == 0:
                streamed += 1
                streamer.put(torch.tensor([event.id]))
            elif isinstance(event, Finished) and not streamed and event.sequences:
                for token in event.sequences[0]:
                    streamer.put(torch.tensor([token]))
            yield event
    finally:
        streamer.end()
