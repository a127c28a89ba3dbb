"""Random requests run, or are rejected with a clear error before anything is built for them."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from decodescope import core
from tests.core import tiny
from tests.fuzz.outcomes import CaseTally, check_cases, long, short
from tests.fuzz.requests import KINDS, Case, cases, request

EVENTS = 600
"""A text longer than this number of tokens counts as endless."""


@pytest.fixture(autouse=True, scope="module")
def _models() -> None:
    """Made before any case: what is imported for them has no limit of time."""
    for kind in KINDS:
        core.run(tiny.shared(kind), core.Request(tiny.prompt(), core.make_config({"max_new_tokens": 2})))


def use(case: Case) -> None:
    model = tiny.shared(case.kind)
    wanted = request(case, (tiny.shared("llama"),))
    for _ in islice(core.stream(model, wanted), EVENTS):
        pass
    core.estimate(model, wanted)


def found(kind: str, settings: dict[str, Any], strategy: str | None = None, prompt: Any = (53, 52, 56, 37)) -> Case:
    return Case(kind, settings, list(prompt), strategy, {}, "dynamic", {}, 1, 5, None, False)


FOUND = (
    found("mistral", {"num_return_sequences": 2, "cache_implementation": {"5": 0.5}}),
    found("t5", {"guidance_scale": 1.5, "constraints": 5}, prompt=[4]),
    found("mistral", {"num_beams": 3, "constraints": 0, "suppress_tokens": 3}),
    found("llama", {"forced_eos_token_id": 2}, "diverse_beam_search", [13, 45, 43, 49, 9, 41, 23, 7, 13, 27, 9]),
)
"""What ended raw once."""


@pytest.mark.parametrize("case", FOUND, ids=lambda case: str(case.settings))
def test_fixed_cases_stay_fixed(case: Case) -> None:
    tally = CaseTally()
    tally.attempt(case, lambda: use(case))
    tally.check()


def test_random_requests_run_or_raise_core_errors() -> None:
    check_cases(short(100), cases, use)


@pytest.mark.fuzz
def test_many_random_requests_run_or_raise_core_errors() -> None:
    check_cases(long(0.5), cases, use)
