"""Compare how long two programs take to start, in alternation:

    python packaging/installer_parts/start_time.py --rounds 5 -- INSTALLED -- CHECKOUT

Each is a command, such as `/opt/decodescope/decodescope` and `.venv/bin/python -P -m decodescope`. Two things are
timed: a picture of the window with the default model loaded, and one with a run in it. The ratio is that of the
medians.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

CASES = {
    "window with a model": [],
    "first run": ["--model", "storyteller", "--prompt", "Once upon a time", "--run"],
}


def main(arguments: list[str]) -> int:
    """Print the medians and ratios; return 1 if a program failed."""
    parser = argparse.ArgumentParser(description="Compare how long two programs take to start.")
    parser.add_argument("--rounds", type=int, default=5)
    split = arguments.index("--") if "--" in arguments else len(arguments)
    rounds = parser.parse_args(arguments[:split]).rounds
    rest = arguments[split + 1 :]
    if "--" not in rest:
        parser.error("name two commands, each after --")
    middle = rest.index("--")
    programs = {"installed": rest[:middle], "checkout": rest[middle + 1 :]}
    for case, options in CASES.items():
        times: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(rounds + 1):  # the first round fills the system's cache of files
            for name, command in programs.items():
                times[name].append(seconds([*command, *options]))
        medians = {name: median(values[1:]) for name, values in times.items()}
        summary = ", ".join(f"{name} {value:.2f} s" for name, value in medians.items())
        print(f"{case}: {summary}, ratio {medians['installed'] / medians['checkout']:.2f}", flush=True)
    return 0


def seconds(command: list[str]) -> float:
    """Return how long a program takes to write a picture. Raises CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder, "window.png")
        began = time.perf_counter()
        variables = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
        subprocess.run([*command, "--screenshot", str(picture)], check=True, env=variables, capture_output=True)
        taken = time.perf_counter() - began
        if not picture.is_file():
            raise FileNotFoundError(f"{command[0]} wrote no picture.")
        return taken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
