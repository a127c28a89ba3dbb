"""Remote engines with invalid responses: a run finishes, or fails with a clear error."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import strategies as st

from decodescope import core
from decodescope.core.errors import EngineError
from decodescope.core.remote.http_stream import Timeouts
from decodescope.core.remote.remote_model import connect
from tests import fake_remote_engine
from tests.fuzz.outcomes import check_cases, long, short
from tests.fuzz.values import JSON_ODD

HASTY = Timeouts(connect=1, first_byte=5, between_chunks=5, max_attempts=1, pause=0.01)
KINDS = ("vllm", "sglang", "llama.cpp", "transformers", "llama-cpp-python", "other")
OWN_FACES = ("whole", "pieces", "both")
REQUESTS = (
    core.Request("Once upon a time", {"max_new_tokens": 5}, top_n=3),
    core.Request("Once", {"max_new_tokens": 4, "do_sample": True, "num_return_sequences": 2}, top_n=3),
    core.Request("Once", {"max_new_tokens": 4, "stop_strings": ["."]}, beginning=" upon a"),
    core.Request([{"role": "user", "content": "Tell me a story"}], {"max_new_tokens": 4}),  # type: ignore[arg-type]
)
BYTES = (b"", b"[" * 100_000, b'{"choices": ' * 50_000, b"null", b"5", b"\xff\xfe", b"[]", b"9" * 5000, b"[DONE]")
Case = tuple[str, str, int, float, int]
"""Which engine, how its own face tells, which request, how often it answers otherwise, and the seed of that."""
cases = st.tuples(
    st.sampled_from(KINDS), st.sampled_from(OWN_FACES), st.integers(0, len(REQUESTS)),
    st.sampled_from((0.05, 0.3, 1.0)), st.integers(0, 2**31),
)  # fmt: skip


class ResponseMutator:
    """Some of its messages are changed in some places, or are something else altogether."""

    def __init__(self, often: float, seed: int) -> None:
        self._often, self._luck = often, random.Random(seed)

    def __call__(self, value: Any) -> object:
        if self._luck.random() >= self._often:
            return value
        if self._luck.random() < 0.1:
            return self._luck.choice(BYTES)
        whole = {"it": json.loads(json.dumps(value))}
        for _ in range(self._luck.randint(1, 3)):
            group, key = self._luck.choice(list(_places(whole)))
            if isinstance(group, dict) and self._luck.random() < 0.3:
                group.pop(key, None)
            else:
                group[key] = deepcopy(self._luck.choice(JSON_ODD))
        return whole.get("it")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def ask(case: Case) -> None:
    kind, face, number, often, seed = case
    with fake_remote_engine.running(kind, own_face=face) as machine:
        model = connect(machine.name(), timeouts=HASTY)
        machine.bend = ResponseMutator(often, seed)
        with suppress(EngineError):
            model = connect(machine.name(), timeouts=HASTY)
        if number < len(REQUESTS):
            core.run(model, REQUESTS[number])
        else:
            core.score(model, "Once upon a time", 3)


@pytest.mark.slow
def test_invalid_answers_raise_core_errors_or_finish() -> None:
    check_cases(short(60), cases, ask)


@pytest.mark.fuzz
def test_many_invalid_answers_raise_core_errors_or_finish() -> None:
    check_cases(long(0.1), cases, ask)
