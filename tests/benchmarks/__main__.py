"""python -m tests.benchmarks [NAME …]: print each ratio with its target.

`--compare tests/benchmarks/baseline.json` lists changes beyond their noise; `--save FILE --times 3` makes
such a file again, on an idle machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from decodescope import core
from tests.benchmarks import baseline

TARGETS: dict[str, str] = {
    "offloaded to disk ÷ dynamic, 1,024 tokens": "≥ 0.30",
    "static, compiled ÷ dynamic, 1,024 tokens": "≥ 1.00",
    "prefill with 1,900 of 2,000 tokens kept ÷ without": "≥ 8",
    "measuring ÷ not measuring": "≥ 0.97",
    "sink: cache after 5,000 tokens ÷ after 300": "≤ 1.00",
    "int4 bytes ÷ float16, 1,024 tokens": "≤ 0.33",
    "int2 bytes ÷ float16, 1,024 tokens": "≤ 0.21",
    "decode ÷ generate, storyteller": "≥ 1.10",
    "tracing on ÷ off, storyteller": "≥ 0.97",
    "decode ÷ generate, 97 M Llama": "≥ 1.00",
    "beam search ÷ generate, storyteller": "≥ 1.00",
    "beam search ÷ generate, 97 M Llama": "≥ 1.00",
    "events of 16 beams, 200 steps (MB)": "≤ 50",
    "decode ÷ bandwidth, 1 B, cuda": "≥ 0.75",
    "decode ÷ bandwidth, 8 B, cuda": "≥ 0.85",
    "draft acceptance, greedy": "≥ 0.75",
    "tree ⟨3 3 2 2 1 1 1 1⟩ ÷ chain of 8 (tokens a pass)": "≥ 1.15",
    "assisted ÷ greedy": "≥ 1.70",
    "assisted ÷ transformers' (5, constant)": "≥ 1.20",
    "assisted ÷ sampling, T 0.8": "≥ 1.70",
    "tree ÷ chain, auto": "≥ 1.00",
    "useless draft ÷ greedy, auto": "≥ 0.98",
    "prompt lookup ÷ greedy, auto": "≥ 0.98",
    "early exit ÷ greedy, auto": "≥ 0.97",
    "storyteller, decode ÷ generate": "≥ 2.5",
    "int8 ÷ float32, 97 M Llama": "≥ 2.3",
    "int8 ÷ float32, 400 M Llama": "≥ 2.3",
    "int4 ÷ float32, 97 M Llama": "≥ 1.0",
    "bfloat16 ÷ float32, 97 M Llama": "≥ 1.0",
    "auto ÷ float32, 97 M Llama": "≥ 1.0",
    "peak memory while loading ÷ weights kept, float32": "≤ 1.15",
    "peak memory while loading ÷ weights kept, int8": "≤ 1.15",
    "peak memory while loading ÷ weights kept, int4": "≤ 1.15",
    "storyteller float32 ÷ llama.cpp": "≥ 0.7",
    "storyteller int8 ÷ llama.cpp": "≥ 0.8",
    "97 M Llama float32 ÷ llama.cpp": "≥ 0.95",
    "97 M Llama int8 ÷ llama.cpp": "≥ 0.8",
    "400 M Llama float32 ÷ llama.cpp": "≥ 0.95",
    "400 M Llama int8 ÷ llama.cpp": "≥ 0.8",
    "SmolLM2-135M float32 ÷ CTranslate2, greedy": "≥ 1.0",
    "SmolLM2-135M float32 ÷ CTranslate2, 4 beams": "≥ 1.5",
    "SmolLM2-135M int8 ÷ CTranslate2, greedy": "≥ 1.0",
    "SmolLM2-135M int8 ÷ CTranslate2, 4 beams": "≥ 1.2",
    "DRY on ÷ off": "≥ 0.95",
    "XTC on ÷ off": "≥ 0.95",
    "top-nσ on ÷ off": "≥ 0.95",
    "mirostat on ÷ off": "≥ 0.95",
    "dynamic temperature on ÷ off": "≥ 0.95",
    "window ÷ core": "≥ 0.90",
    "64 samples in one run ÷ 64 single runs": "≥ 4",
    "grammar ÷ none, greedy": "≥ 0.85",
    "grammar ÷ none, sampling": "≥ 0.85",
    "lens of 120 tokens ÷ a pass": "≤ 1.50",
    "60 words left out in batches ÷ one by one": "≥ 4",
    "event-loop lag p99 (ms)": "≤ 50",
    "token view 10,000 tokens p95 (ms)": "≤ 16",
    "tree of 10,000 nodes at zoom 1 p95 (ms)": "≤ 25",
    "tree of 10,000 nodes at zoom 0.1 p95 (ms)": "≤ 25",
    "tree of 10,000 nodes at zoom 0.02 p95 (ms)": "≤ 25",
    "searching 5,000 kept runs p95 (ms)": "≤ 50",
    "trace of 2,000 tokens (MB)": "≤ 1.0",
    "opening a trace of 2,000 tokens (s)": "≤ 0.2",
    "recording ÷ not recording": "≥ 0.97",
    "recording ÷ not recording, through the window": "≥ 0.97",
    "window on screen ÷ bare PySide6": "≤ 1.3",
    "window complete ÷ bare PySide6": "≤ 3.0",
}
"""By name; figures taken with several numbers of threads (“…, 2 threads”) share theirs."""
_HELPERS = {"__main__", "baseline", "timing"}
Figures = dict[str, float]
_WIDTH = 62


def main() -> None:
    """Run the chosen modules (all of this folder by default) and print a table, or JSON."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    found = [info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]) if info.name not in _HELPERS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(found)}")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--compare", type=Path, metavar="BASELINE", help="say what differs from these figures")
    parser.add_argument(
        "--save",
        type=Path,
        metavar="BASELINE",
        help="keep the figures, with their noise; of what is named alone, beside the others'",
    )
    parser.add_argument("--times", type=int, default=1, help="how often everything is measured (default 1)")
    options = parser.parse_args()
    if importlib.util.find_spec("PySide6") is not None:
        from decodescope.app.start.display import ignore_window_manager_warnings

        ignore_window_manager_warnings()
    standing = core.build_kernels()  # results must not depend on whether they existed before
    if not options.json:
        print(standing.sentence)
    before = baseline.load(options.compare) if options.compare else None
    runs = [one_run(options.names or found, options, before) for _ in range(max(1, options.times))]
    if options.json:
        print(json.dumps(runs[-1], ensure_ascii=False, indent=2))
    if options.save:
        there = baseline.load(options.save) if options.names and options.save.exists() else {}
        baseline.save(options.save, there | baseline.summary(runs))  # the values of other modules are kept


def one_run(
    modules: list[str], options: argparse.Namespace, before: Mapping[str, baseline.BaselineValue] | None
) -> Figures:
    """Measure all values once and print each when it is found, unless JSON is requested."""
    figures: Figures = {}
    for module in modules:
        for name, value in measured(module, options.quick):
            figures[name] = value
            if not options.json:
                reported = "" if before is None else baseline.changed(name, value, before)
                print(f"{line(name, value):<{_WIDTH + 20}} {reported}".rstrip(), flush=True)
    return figures


def measured(module: str, quick: bool) -> Iterator[tuple[str, float]]:
    """(name, value) of a module's figures: one by one where it gives them so, else all at its end."""
    found = importlib.import_module(f"tests.benchmarks.{module}").measure(quick=quick)
    yield from found.items() if isinstance(found, dict) else found


def line(name: str, value: float) -> str:
    """Name, measured value, target."""
    return f"{name:<{_WIDTH}}  {value:8.2f}  {target(name)}".rstrip()


def target(name: str) -> str:
    """Return the target of a ratio; empty if it has none."""
    return TARGETS.get(name) or TARGETS.get(re.sub(r", \d+ threads?$", "", name), "")


if __name__ == "__main__":
    main()
