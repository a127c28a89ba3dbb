"""Requests of five tokens to a remote engine, with short timeouts."""

from __future__ import annotations

from decodescope import core
from decodescope.core.events import TokenChosen
from decodescope.core.remote.http_stream import Timeouts
from decodescope.core.remote.remote_model import RemoteModel, connect
from tests.fake_remote_engine import FakeEngine

HASTY = Timeouts(connect=1, first_byte=20, between_chunks=20, max_attempts=3, pause=0.01)
GREEDY = " there was the dog."


def model_of(machine: FakeEngine) -> RemoteModel:
    return connect(machine.name(), timeouts=HASTY)


def make_request(**settings: object) -> core.Request:
    return core.Request("Once upon a time", {"max_new_tokens": 5, **settings}, top_n=3)


def chosen_tokens(events: list[core.events.Event]) -> list[TokenChosen]:
    return [event for event in events if isinstance(event, TokenChosen)]
