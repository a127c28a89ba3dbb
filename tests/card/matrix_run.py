"""Run the matrix of the card, or the part of it that a number of seconds allows: `python -m tests.card.matrix_run`.

It ends with an error if a run differs on the pretend card. A part begins at a place that depends on the commit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch

from tests.card.matrix import MODELS, CellComparison, MatrixCell, rounds

ROOT = Path(__file__).parents[2]
RESULTS = ("same", "refused", "different", "not reached")


def main(arguments: list[str] | None = None) -> int:
    """Compare cells, print every difference and the totals by model. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.card.matrix_run", description=__doc__)
    parser.add_argument("--seconds", type=float, help="begin no further cell after this time")
    parser.add_argument("--start", type=int, help="number of the first round; default: depends on the commit")
    parser.add_argument(
        "--only", nargs="+", default=[], help="cells with all of these words: t5 bfloat16 'sampling ×3'"
    )
    options = parser.parse_args(arguments)
    began, words = time.monotonic(), set(options.only)
    start = _start_of_commit() if options.start is None else options.start
    cells = [cell for cell in _ordered(start) if words <= set(cell.words)]
    totals = {kind: Counter[str]() for kind in MODELS}
    with tempfile.TemporaryDirectory() as folder:
        comparison = CellComparison(Path(folder))
        for cell in cells:
            if options.seconds is not None and time.monotonic() - began > options.seconds:
                totals[cell.kind]["not reached"] += 1
                continue
            result, found = comparison.compare(cell)
            totals[cell.kind][result] += 1
            if found:
                print("\n".join(found[:3]), flush=True)
    print(f"{len(cells)} cells from round {start}, {time.monotonic() - began:.0f} s")
    print(f"{'':12}" + "".join(f"{result:>13}" for result in RESULTS))
    for name, counts in (*totals.items(), ("all", sum(totals.values(), Counter()))):
        print(f"{name:12}" + "".join(f"{counts[result]:13}" for result in RESULTS))
    return 1 if any(counts["different"] for counts in totals.values()) else 0


def _ordered(start: int) -> Iterator[MatrixCell]:
    found = rounds()
    start %= len(found)
    for cells in found[start:] + found[:start]:
        yield from cells


def _start_of_commit() -> int:
    command = ["git", "-c", "safe.directory=*", "rev-parse", "HEAD"]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0  # not a checkout
    return int(found.strip(), 16) % len(rounds())


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # transformers on settings that a strategy does not use
    torch.set_num_threads(1)
    sys.exit(main())
