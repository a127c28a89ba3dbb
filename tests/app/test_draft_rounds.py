"""Rounds of speculation: hand-computed values, trees for the canvas, texts for the inspector."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from decodescope.app.state.draft_rounds import DraftRounds, written_count
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.views.speculation.cards import acceptance_by_position, length_by_round, verification_cost
from decodescope.app.views.speculation.round_report import (
    EXTRA_NODE,
    describe_round,
    drafter_names,
    node_report,
    round_tree,
    speed_rows,
)
from decodescope.app.widgets.plots.plot_descriptions import describe_plot, describe_position
from decodescope.core.events import CostCurve, DrafterChoice, DraftNode, DraftRound, Finished, Metrics


def node(number: int, parent: int, depth: int, fate: str, **more: float) -> DraftNode:
    return DraftNode(number, parent, 40 + number, f" w{number}", depth, 0, 0.6, 0.7, fate, **more)


def entry(number: int, step: int, fates: list[str], extra: str) -> DraftRound:
    """A chain with these fates."""
    nodes = tuple(node(i + 1, i, i + 1, fate) for i, fate in enumerate(fates))
    accepted = tuple(n.node for n in nodes if n.fate == "accepted")
    return DraftRound(number, step, nodes, accepted, 9, " end", extra, 0.002, 0.01, 0.001, len(fates))


ROUNDS = [
    entry(0, 0, ["accepted", "accepted", "refused", "unreached"], "correction"),
    entry(1, 3, ["accepted", "accepted"], "bonus"),
    entry(2, 6, ["refused", "unreached"], "correction"),
]


@pytest.fixture
def rounds() -> DraftRounds:
    rounds = DraftRounds()
    rounds.append([*ROUNDS, CostCurve(((1, 1.0), (4, 1.2)))])
    return rounds


def test_round_of_each_token(rounds: DraftRounds) -> None:
    assert [written_count(r) for r in ROUNDS] == [3, 3, 1]
    assert [rounds.round_of(token) for token in range(8)] == [0, 0, 0, 1, 1, 1, 2, None]
    assert [rounds.count_started(tokens) for tokens in (0, 1, 3, 4, 7)] == [0, 1, 1, 2, 3]


def test_acceptance_rates_match_hand_computed_values(rounds: DraftRounds) -> None:
    assert rounds.acceptance_rate() == pytest.approx(4 / 6)
    assert rounds.acceptance_by_depth() == [(1, pytest.approx(2 / 3)), (2, 1.0), (3, 0.0)]
    assert rounds.curve == ((1, 1.0), (4, 1.2))
    assert DraftRounds().acceptance_rate() is None


def test_plots_of_rounds_match_hand_computed_values(rounds: DraftRounds) -> None:
    lengths = length_by_round(rounds.rounds, 1)
    assert [bars.values for bars in lengths.bars] == [(2, 2, 0), (2, 0, 2)]
    assert lengths.highest == 4, "one stands on the other"
    assert (
        describe_position(lengths, 0)
        == "round 1: 4 drafted of at most 4, 2 accepted\n2.0 ms drafting, 10.0 ms verification"
    )
    assert [bars.marked for bars in lengths.bars] == [1, 1]
    assert acceptance_by_position(rounds).bars[0].values == pytest.approx((2 / 3, 1.0, 0.0))
    assert acceptance_by_position(rounds).height == 1.0
    cost = verification_cost(rounds.curve)
    assert (cost.x.labels, cost.bars[0].values) == (("1", "4"), (1.0, 1.2))
    assert describe_plot(cost) == "Tokens at once 1: ×1, tokens at once 4: ×1.2."
    assert all(
        figure.is_empty
        for figure in (length_by_round([], -1), verification_cost(()), acceptance_by_position(DraftRounds()))
    )


def test_round_tree_has_node_states() -> None:
    nodes = round_tree(ROUNDS[0], "…and")
    assert [(n.id, n.parent, n.state) for n in nodes] == [
        (0, None, "root"), (1, 0, "accepted"), (2, 1, "accepted"), (3, 2, "refused"), (4, 3, "unreached"),
        (EXTRA_NODE, 2, "correction"),
    ]  # fmt: skip
    assert nodes[1].value == ".60"
    assert round_tree(ROUNDS[1], "x")[-1].state == "bonus"


def test_node_report_describes_drafted_tokens() -> None:
    report = node_report(ROUNDS[0], 3)
    assert report.verdict == "Rejected."
    assert "draft 60 %" in report.facts
    assert node_report(ROUNDS[1], EXTRA_NODE).heading == "Bonus token"
    dice = DraftRound(0, 0, (node(1, 0, 1, "accepted", ratio=0.8, die=0.35),), (1,), 9, "x", "bonus", 0, 0, 0, 1)
    assert node_report(dice, 1).formula == "min(1, p ÷ q) = 0.80\nrandom 0.35 < 0.80"
    with pytest.raises(KeyError):
        node_report(ROUNDS[0], 0)
    assert describe_round(ROUNDS[1]).startswith("Round 2:")


def test_speed_rows_compare_with_and_without_drafts() -> None:
    def end(speed: float, **more: float) -> Finished:
        return Finished("completed", ((),), ("",), Metrics(decode_tokens_per_second=speed, **more))

    rows = speed_rows(end(231.0, tokens_per_target_pass=4.6, acceptance_rate=0.75, predicted_speedup=2.04), end(118.0))
    assert rows[0] == ("tokens / s", "118", "231")
    assert rows[2] == ("accepted", "–", "75 %")
    assert rows[3][2] == "×1.96"
    assert rows[4][2] == "×2.04"
    assert {cell for row in speed_rows(None, None) for cell in row[1:]} <= {"–", ""}


def shared(number: int, parent: int, fate: str, drafter: int, *proposers: int) -> DraftNode:
    return DraftNode(number, parent, number, f" w{number}", 1, drafter, 0.6, 0.7, fate, proposers=proposers)


MERGED = DraftRound(
    0, 0, (shared(1, 0, "accepted", 0, 0, 1), shared(2, 0, "refused", 0), shared(3, 0, "refused", 1)), (1,), 9, " end",
    "bonus", 0, 0, 0, 1,
)  # fmt: skip


def test_nodes_and_reports_name_their_drafters() -> None:
    names = ("small", "tiny")
    assert [n.drafters for n in round_tree(MERGED, "x", 2)] == [(), (0, 1), (0,), (1,), ()]
    assert all(n.drafters == () for n in round_tree(MERGED, "x"))
    report = node_report(MERGED, 3, names)
    assert report.sentence.startswith("Drafter B, tiny, gave “w3” 60 %")
    assert report.facts.startswith("by B · ")
    assert [row.cells[0][-2:].strip() for row in report.rows] == ["AB", "A", "B"]
    assert "by A and B" in node_report(MERGED, 1, names).facts
    assert "(B proposed it too)" in node_report(MERGED, 1, names).sentence
    assert node_report(ROUNDS[0], 1, ("small",)).sentence.startswith("The drafter small gave")


def test_counts_by_drafter() -> None:
    rounds = DraftRounds()
    rounds.append([MERGED])
    assert rounds.counts_by_drafter(2) == [(1, 2), (1, 2)]


def test_drafter_names_of_request() -> None:
    def names(strategy: str, *drafters: str) -> tuple[str, ...]:
        return drafter_names(RunRequest("", strategy=strategy, draft_names=drafters))

    assert names("token_tree", "a", str(Path("folder", "b"))) == ("a", "b")
    assert names("early_exit") == ("The lower layers",)
    assert names("greedy") == ()


def test_describe_round_names_chosen_drafter_and_prompt_lookup() -> None:
    request = RunRequest("m", draft_names=("small",), strategy="assisted", options={"with_lookup": True})
    names = drafter_names(request)
    assert names == ("small", "The text so far")
    choice = DrafterChoice(1, "silent", (2.0, 1.5), (4, 2), (0,))
    requested = replace(ROUNDS[0], choice=choice)
    assert "Drafter A (small) proposed nothing, so drafter B (The text so far) was used." in describe_round(
        requested, names
    )
    assert "drafter A" not in describe_round(ROUNDS[0], names)
