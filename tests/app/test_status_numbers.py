"""Numbers of the status line."""

from __future__ import annotations

import pytest

from decodescope.app.state import run_status
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest
from decodescope.core.events import CacheMeasured, Finished, Metrics, Prefilled
from tests.ui.fake_engine import chosen


def test_new_run_has_no_status_numbers() -> None:
    assert run_status.compute_status_numbers(Run(RunRequest(""))) == run_status.StatusNumbers()


def test_status_numbers_of_active_run() -> None:
    run = Run(RunRequest(""))
    run.apply([Prefilled(10, 0.02), chosen(0, " a", seconds=0.01)])
    assert run_status.compute_status_numbers(run).decode is None
    run.apply([chosen(1, " b", seconds=0.01), chosen(2, " c", seconds=0.03), CacheMeasured(2, 13, 4096, 4096)])
    known = run_status.compute_status_numbers(run)
    assert known.first_token == pytest.approx(0.03)
    assert known.prefill == pytest.approx(500)
    assert known.decode == pytest.approx(2 / 0.04)
    assert known.cache == 4096


def test_decode_speed_sums_over_sequences() -> None:
    run = Run(RunRequest(""))
    run.apply([chosen(step, " a", sequence, 0.01) for step in range(3) for sequence in range(4)])
    assert run_status.compute_status_numbers(run).decode == pytest.approx(4 * 2 / 0.02)


def test_final_metrics_override_estimates() -> None:
    run = Run(RunRequest(""))
    metrics = Metrics(time_to_first_token=0.5, prefill_tokens_per_second=7, decode_tokens_per_second=9, cache_bytes=3)
    run.apply([Prefilled(10, 0.02), Finished("completed", ((),), ("",), metrics)])
    assert run_status.compute_status_numbers(run) == run_status.StatusNumbers(0.5, 7, 9, 3, None)
