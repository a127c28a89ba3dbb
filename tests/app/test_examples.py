"""Every example does what its caption says: each is run as in the window, and its claims are checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from decodescope import resources
from decodescope.app.storage.examples import load_examples
from tests.app.example_claims import CLAIMS, Runs
from tests.long import every

EXAMPLES = {example.id: example for example in load_examples()}
SHOWS: dict[str, list[Mapping[str, Any]]] = {
    entry["id"]: entry["shows"] for entry in json.loads(resources.path("examples.json").read_text(encoding="utf-8"))
}
BY_MODEL = sorted(EXAMPLES, key=lambda name: EXAMPLES[name].model)
"""One model is in memory at a time."""


@pytest.fixture(scope="module")
def runs() -> Runs:
    return Runs(EXAMPLES)


@pytest.mark.every(4)
@pytest.mark.parametrize("name", every(3, BY_MODEL))
def test_example_run_satisfies_its_claims(name: str, runs: Runs) -> None:
    assert SHOWS[name], "an example that claims nothing"
    for shown in SHOWS[name]:
        values = {key: value for key, value in shown.items() if key != "kind"}
        CLAIMS[shown["kind"]](runs.of(name), **values)


def test_every_claim_kind_is_used() -> None:
    assert {shown["kind"] for shows in SHOWS.values() for shown in shows} == set(CLAIMS)
