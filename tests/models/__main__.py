"""python -m tests.models [KIND …]: tries every architecture of transformers that writes text, each in a process of its
own; then, with a file of noise, those with audio or image inputs. Finished ones are tried again only if they are named.
`--native` measures the native decode step on its families instead. `--write` takes the results into
tests/models/results.json, media.json and native.json and makes docs/models.md of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

FOUND = Path(__file__).parents[2] / "build" / "models"
"""What was found on this machine, a file each."""
Trial = Callable[[str], dict[str, Any]]
"""What tries one model type."""
SECONDS, BYTES = 300, 6 * 2**30
"""That one architecture may take."""


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return 1 if any raw exception was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.models", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="model types; all without a name")
    parser.add_argument("--write", action="store_true", help="keep what was found, and make docs/models.md of it")
    parser.add_argument("--native", action="store_true", help="measure the native decode step on its families")
    parser.add_argument("--results", type=Path, default=FOUND, help="where it is put as it is found, a file each")
    options = parser.parse_args(arguments)
    if options.write:
        keep(options.results)
        return 0
    if options.native:
        return measure_native(options.kinds, options.results)
    return try_all(options.kinds, options.results)


def keep(folder: Path) -> None:
    """Merge the results into the stored file, and rewrite the page."""
    from tests.models import results_file
    from tests.models.architecture_page import PAGE, page

    for found, file in ((folder, results_file.KEPT), (_of_media(folder), results_file.MEDIA)):
        known = {one["kind"]: one for one in results_file.read(file)} if file.exists() else {}
        known |= {one["kind"]: one for one in results_file.read_folder(found)}
        results_file.write(known.values(), file)
    from tests.core.native_shapes import SHAPES

    measured = {one["kind"]: one for one in results_file.read_native()} if results_file.NATIVE.exists() else {}
    measured |= {one["kind"]: one for one in results_file.read_folder(_of_native(folder))}
    results_file.write_native(measured[kind] for kind in SHAPES if kind in measured)
    results = results_file.read(), results_file.read(results_file.MEDIA), results_file.read_native()
    PAGE.write_text(page(*results), encoding="utf-8")


def measure_native(kinds: Sequence[str], folder: Path) -> int:
    """Measure the families named, or all of them; return 0."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from decodescope import core
    from tests.core.native_shapes import SHAPES
    from tests.models.native_trial import try_native

    print(core.build_kernels().sentence, flush=True)
    _of_native(folder).mkdir(parents=True, exist_ok=True)
    for kind in kinds or SHAPES:
        result = try_native(kind)
        _file(_of_native(folder), kind).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(kind, result["weights"], flush=True)
    return 0


def try_all(kinds: Sequence[str], folder: Path) -> int:
    """Each that is named, or each that nothing is known of yet."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from tests.core import zoo
    from tests.models import media_trial, trial  # imported once; every process begins as a copy of this one

    rough = _try_each(trial.try_kind, zoo.names(), kinds, folder)
    rough += _try_each(media_trial.try_media, media_trial.media_kinds(), kinds, _of_media(folder))
    return int(rough > 0)


def _of_media(folder: Path) -> Path:
    return folder / "media"


def _of_native(folder: Path) -> Path:
    return folder / "native"


def _try_each(trial: Trial, known: Sequence[str], kinds: Sequence[str], folder: Path) -> int:
    """Try each kind; return how many raised a raw exception."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [kind for kind in known if kind in kinds or (not kinds and not _file(folder, kind).exists())]
    rough = 0
    for number, kind in enumerate(wanted, 1):
        began = time.monotonic()
        result = in_process(kind, trial)
        _file(folder, kind).write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        raw = list(raw_in(result))
        rough += bool(raw)
        reported = (result.get("skipped") or "; ".join(raw) or "as it should be")[:300]
        print(f"{number}/{len(wanted)} {kind} {time.monotonic() - began:.0f} s: {reported}", flush=True)
    return rough


def in_process(kind: str, trial: Trial) -> dict[str, Any]:
    """The result of one architecture; that it took too long or too much is a result too."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.close(reading)
        _run_child(kind, trial, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as answer:
        text = answer.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if text:
        found: dict[str, Any] = json.loads(text)
        return found
    why = {-signal.SIGALRM: f"took longer than {SECONDS} seconds"}.get(status, f"its process ended with {status}")
    return {"kind": kind, "skipped": why}


def _run_child(kind: str, trial: Trial, writing: int) -> None:
    """Never comes back."""
    try:
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        sys.stdout = sys.stderr = open(os.devnull, "w")
        with os.fdopen(writing, "w", encoding="utf-8") as answer:
            json.dump(trial(kind), answer, ensure_ascii=False)
    finally:
        os._exit(0)


def raw_in(result: dict[str, Any]) -> Iterator[str]:
    """Cells where something raw came up, or another text than should be."""
    tables = {"dynamic": result.get("strategies", {})}
    for strategy, cells in result.get("caches", {}).items():
        tables |= {f"{strategy} on {cache}": {strategy: cell} for cache, cell in cells.items()}
    for where, cells in tables.items():
        for strategy, (state, note) in cells.items():
            if state in ("raw", "differs"):
                yield f"{strategy} ({where}) {state} {note}"


def _file(folder: Path, kind: str) -> Path:
    return folder / f"{kind}.json"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
