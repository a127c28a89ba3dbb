"""Alternatives and funnels in columns are written to the same bytes as those created one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from decodescope import core
from decodescope.core.decoding import step_details
from decodescope.core.events import Event, TokenChosen
from decodescope.core.events.tokens import details_to_columns
from decodescope.core.trace import block_writer
from decodescope.core.trace.block_writer import BlockWriter
from tests.core import tiny

SAMPLED: dict[str, Any] = {"do_sample": True, "max_new_tokens": 12}
REQUESTS: dict[str, dict[str, Any]] = {
    "greedy": {"config": {"max_new_tokens": 12}},
    "no stage, sampled": {"config": {**SAMPLED, "top_k": 0}, "top_n": 2},
    "stages": {"config": {**SAMPLED, "temperature": 0.7, "top_k": 30, "top_p": 0.8, "repetition_penalty": 1.3}},
    "tokens come in": {"config": {**SAMPLED, "top_k": 8, "sequence_bias": [[[40], 50.0], [[7], 49.0]]}, "top_n": 3},
    "stages tell": {"config": {**SAMPLED, "top_k": 20}, "options": {"dry_multiplier": 0.8, "xtc_probability": 0.5}},
    "some are ruled out": {"config": {**SAMPLED, "suppress_tokens": list(range(8, 61)), "top_k": 0}, "top_n": 20},
    "several samples": {"config": {**SAMPLED, "num_return_sequences": 3, "top_p": 0.9}, "top_n": 4},
    "drafts": {"strategy": "prompt_lookup", "config": {**SAMPLED, "temperature": 1.2}},
    "layers": {"strategy": "dola", "config": {"max_new_tokens": 12}},
    "one alternative": {"config": {**SAMPLED, "top_k": 5}, "top_n": 1},
}  # fmt: skip


def tokens_of(asked: dict[str, Any]) -> list[TokenChosen]:
    request = core.Request([5, 6, 7, 5, 6], seed=1, **asked)
    return [event for event in core.stream(tiny.shared("llama"), request) if isinstance(event, TokenChosen)]


@pytest.fixture(params=["built", "torch"])
def way(request: pytest.FixtureRequest) -> None:
    """Run with torch and with the compiled kernels, which tests do not use by default."""
    if request.param == "built":
        request.getfixturevalue("built")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list with an item for each created alternative."""
    made, alternative = list[int](), step_details.build_alternative

    def counting(*figures: Any) -> Any:
        made.append(1)
        return alternative(*figures)

    monkeypatch.setattr(step_details, "build_alternative", counting)
    return made


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("asked", REQUESTS.values(), ids=REQUESTS)
def test_columnar_block_is_identical_to_the_row_block(asked: dict[str, Any]) -> None:
    unread = tokens_of(asked)
    assert details_to_columns(unread)
    laid = BlockWriter().encode_block(unread)
    made: list[Event] = [replace(token) for token in unread]  # a copy has nothing that it could be laid out from
    assert details_to_columns([replace(token) for token in unread]) == {}
    assert laid == BlockWriter().encode_block(made)


def test_writing_a_block_creates_hardly_any_alternatives(counted: list[int]) -> None:
    tokens = tokens_of({"config": {**SAMPLED, "top_k": 10, "max_new_tokens": 40}})
    BlockWriter().encode_block(tokens)
    assert not counted, "with the ten that top-k leaves, each chosen token is among the ten likeliest"
    assert len(tokens[0].alternatives) == len(counted) == 10


def test_block_after_reading_details_is_identical() -> None:
    tokens, others = (tokens_of(REQUESTS["stages tell"]) for _ in range(2))
    for token in (*tokens, *others):
        object.__setattr__(token, "seconds", 0.5)  # the clock's figure is no two runs' own
    assert tokens[0].alternatives
    assert tokens[2].funnel
    assert BlockWriter().encode_block(tokens) == BlockWriter().encode_block(others)


def mixed() -> list[TokenChosen]:
    return [*tokens_of(REQUESTS["stages"]), *tokens_of(REQUESTS["stages tell"])]


def without() -> list[TokenChosen]:
    return tokens_of({"config": {"max_new_tokens": 3}, "top_n": 0})


def partly() -> list[TokenChosen]:
    first, *rest = tokens_of(REQUESTS["stages"])
    return [first, replace(rest[0]), *rest[1:]]


@pytest.mark.parametrize("tokens", [mixed, without, partly, list])
def test_mixed_tokens_are_written_one_by_one(tokens: Callable[[], list[TokenChosen]]) -> None:
    found = tokens()
    assert details_to_columns(found) == {}
    if found:
        assert BlockWriter().encode_block(found) == BlockWriter().encode_block([replace(token) for token in found])


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([3], (0, 1, b"\3")),
        ([-1, 255], (-1, 2, bytes([0, 0, 0, 1]))),
        ([-(2**63), 2**63 - 1], (-(2**63), 8, bytes([0, 255] * 8))),
        ([0, 2**32], (0, 8, bytes([0, 0] * 4 + [0, 1] + [0, 0] * 3))),
    ],
)
def test_integers_are_packed_in_the_narrowest_type(values: list[int], found: tuple[int, int, bytes]) -> None:
    assert block_writer.pack_ints(np.array(values)) == found


def test_differences_that_overflow_are_not_used() -> None:
    climbing = np.arange(0, 3000, 7)
    differences = block_writer.small_differences(climbing)
    assert differences is not None
    assert set(differences.tolist()) == {7}
    climbing[20:22] = 2**63 - 1, -(2**63)  # their difference, -2^64 + 1, is 1 in 64 bits
    assert block_writer.small_differences(climbing) is None


def test_nan_is_not_exact_in_float32() -> None:
    short, exact = block_writer.to_float32(np.array([0.5, 0.1, float("nan"), float("inf"), 1e300]))
    assert exact.tolist() == [True, False, False, True, False]
    assert short[0] == 0.5
