"""The complete answer of the server to a call, without HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from decodescope.core.events import Event
from decodescope.core.request import Request
from decodescope.core.server.call_fields import Json
from decodescope.core.server.openai_api import ApiResponse, CompletionCall


def write_answer(call: CompletionCall, events: Callable[[Request], Iterator[Event]]) -> Json:
    """Return the answer to a call, from a function that runs a request."""
    answer = ApiResponse(call)
    for request in call.requests():
        answer.begin()
        for event in events(request):
            for _ in answer.feed(event):
                pass
    return answer.body
