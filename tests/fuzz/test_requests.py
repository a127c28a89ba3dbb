"""Requests of every kind run, or are refused with words, before anything is built that they would need."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given

import core
from tests.core import tiny
from tests.fuzz.outcomes import Tally, long, short
from tests.fuzz.requests import KINDS, Case, cases, request

EVENTS = 600
"""A text without an end is believed after so many."""


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


def test_requests_end_well_or_named() -> None:
    tally = Tally()

    @short(150)
    @given(cases)
    def run(case: Case) -> None:
        tally.attempt(case, lambda: use(case))

    run()
    tally.check()


@pytest.mark.fuzz
def test_many_requests_end_well_or_named() -> None:
    tally = Tally()

    @long(0.5)
    @given(cases)
    def run(case: Case) -> None:
        tally.attempt(case, lambda: use(case))

    run()
    tally.check()
