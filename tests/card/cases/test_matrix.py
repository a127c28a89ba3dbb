"""Same tokens, probabilities and events on the card as on the CPU, or a refusal for the same reason.

The whole matrix: `python -m tests.card.matrix_run`.
"""

from __future__ import annotations

import warnings
from typing import Any
from unittest import mock

import pytest

from decodescope import core
from decodescope.core.caches import registry as caches
from decodescope.core.strategies import registry as strategies
from tests.card import matrix, matrix_run
from tests.card.matrix import MatrixCell
from tests.card.pretend_card import PretendCard
from tests.core import tiny

SHORT = [
    MatrixCell("llama", "float32", True, "greedy", "static"),
    MatrixCell("llama", "float32", False, "sampling ×3", "offloaded"),
    MatrixCell("llama", "float32", True, "beam_search", "dynamic", "cuda:1"),
    MatrixCell("llama", "float32", True, "assisted, sampled", "dynamic", "mps"),
    MatrixCell("t5", "bfloat16", True, "greedy", "encoder_decoder"),
    MatrixCell("mistral", "float32", False, "dola", "quantized"),
    MatrixCell("whisper", "float32", True, "assisted", "dynamic"),
]
"""The short form."""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> matrix.CellComparison:
    return matrix.CellComparison(tmp_path_factory.mktemp("media"))


@pytest.mark.parametrize("cell", SHORT, ids=str)
def test_short_matrix_cells_match_the_cpu(cell: MatrixCell, comparison: matrix.CellComparison) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers on settings that a strategy does not use
        result, differences = comparison.compare(cell)
    assert not differences
    assert result in ("same", "refused")


def test_the_rounds_have_every_strategy_cache_and_cell_once() -> None:
    cells = [cell for part in matrix.rounds() for cell in part]
    on_one_card = [cell for cell in cells if cell.device == "cuda"]
    count = len(matrix.MODELS) * len(matrix.DTYPES) * 2 * len(matrix.SETTINGS) * len(caches)
    assert len(set(cells)) == len(cells)
    assert len(on_one_card) == count
    assert {matrix.SETTINGS[cell.row].strategy for cell in matrix.rounds()[0]} == set(strategies)
    assert len({(cell.row, cell.cache_name) for cell in matrix.rounds()[0]}) == len(matrix.SETTINGS) * len(caches)
    assert {cell.kind for cell in matrix.rounds()[0]} == set(matrix.MODELS)


def test_differences_ignore_the_order_of_equal_values_only() -> None:
    host = {"top": [[4, 0.5], [5, 0.2], [6, 0.2], [7, 0.05]]}
    assert not list(matrix.differences(host, {"top": [[4, 0.5], [6, 0.2], [5, 0.2], [8, 0.05]]}))
    assert list(matrix.differences(host, {"top": [[5, 0.5], [4, 0.2], [6, 0.2], [7, 0.05]]}))
    assert list(matrix.differences(host, {"top": [[4, 0.5], [5, 0.2], [6, 0.2], [8, 0.03]]}))


def test_matrix_run_with_a_difference_exits_with_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def plain(event: Any) -> Any:
        number["of events"] += 1
        return {"number": number["of events"]}

    number = {"of events": 0}
    with mock.patch.object(matrix, "plain", plain):
        assert matrix_run.main(["--only", "llama", "float32", "untraced", "greedy", "dynamic", "cuda"]) == 1
    assert "on the card" in capsys.readouterr().out


def test_greedy_equals_generate(card: PretendCard) -> None:
    """The CPU's own reference: not only the same on both, but right."""
    host = matrix.host_model("llama")
    asked = matrix.request(matrix.SETTINGS["greedy"], "dynamic", True, None)
    result = core.run(matrix.on_card(host), asked)
    assert result.sequences == tiny.reference(host, tiny.prompt(), asked.config)
