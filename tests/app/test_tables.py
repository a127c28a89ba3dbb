"""Tables for files: a head, and a line for everything there is."""

from __future__ import annotations

import math

from app.views.base import Table
from app.views.shared.tables import of_candidates, of_rounds, of_tokens
from tests.app.test_rounds import ROUNDS
from tests.ui.beams import beam_run, beam_steps
from tests.ui.scripted import story


def rows(table: Table) -> list[dict[object, object]]:
    """Lines by the names in the head."""
    head, *lines = table
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_every_token_with_its_figures() -> None:
    tokens = story(5)
    found = rows(of_tokens(tokens))
    assert [row["text"] for row in found] == [token.piece for token in tokens]
    assert found[2]["token"] == 3
    assert found[2]["surprise_bits"] == -tokens[2].raw_log_probability / math.log(2)


def test_every_candidate_of_a_beam_search() -> None:
    tree = beam_run(beam_steps(4)).beams
    found = rows(of_candidates(tree))
    assert len(found) == sum(len(step.candidates) for step in tree.steps)
    assert {row["parent"] for row in found if row["step"] == 1} == {0}


def test_every_round() -> None:
    found = rows(of_rounds(ROUNDS))
    assert [(row["round"], row["drafted"], row["accepted"]) for row in found] == [(1, 4, 2), (2, 2, 2), (3, 2, 0)]
