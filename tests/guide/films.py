"""python -m tests.guide.films: record the films of the tutorials with the program's own recorder, and check them.

Without `--write`, the films in docs/tutorials/films are only checked: their size and number of frames. A film is an
animated PNG with the ending .png, which browsers play and everything else shows as a picture.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests import fonts

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "tutorials" / "films"
MAX_BYTES = 1_500_000
MIN_FRAMES = 12
FILMS: dict[str, tuple[str, ...]] = {
    "sampling": (
        "--strategy", "sampling", "--param", "max_new_tokens=14", "--param", "temperature=0.8", "--seed", "3",
        "--view", "tokens", "--prompt", "One day, a little fox",
    ),
    "beam_search": (
        "--strategy", "beam_search", "--param", "max_new_tokens=9", "--param", "num_beams=3", "--view", "tree",
        "--prompt", "Once upon a time, there was a little",
    ),
}  # fmt: skip
"""Command lines by name; all have a model, a size and a speed besides."""


def record(name: str, target: Path) -> None:
    """Record one film into `target`. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory(prefix="decodescope-films-") as folder:
        fonts.choose(Path(folder))
        homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), folder)
        made = Path(folder) / "film.apng"
        command = [
            sys.executable, "-m", "app", "--model", "storyteller", *FILMS[name], "--run", "--size", "900x600",
            "--theme", "light", "--language", "en", "--demo-speed", "1.5", "--record-demo", str(made),
        ]  # fmt: skip
        variables = os.environ | homes | {"QT_QPA_PLATFORM": "offscreen", "HF_HUB_OFFLINE": "1"}
        subprocess.run(command, cwd=ROOT, env=variables, check=True)
        shutil.copyfile(made, target)


def problem(path: Path) -> str:
    """Return what is wrong with a film, as a clause; empty if nothing is."""
    if path.stat().st_size > MAX_BYTES:
        return f"it has {path.stat().st_size:,} bytes; the maximum is {MAX_BYTES:,}"
    with Image.open(path) as film:
        frames = getattr(film, "n_frames", 1)
    return f"it has {frames} frames; at least {MIN_FRAMES} are wanted" if frames < MIN_FRAMES else ""


def main() -> int:
    """Record or check the films; the exit code is 1 where one is missing or wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.guide.films", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record them again")
    parser.add_argument("names", nargs="*", choices=[*FILMS, []], metavar="NAME", help="only these; else all")
    options = parser.parse_args()
    failed = 0
    for name in options.names or FILMS:
        path = FOLDER / f"{name}.png"
        if options.write:
            FOLDER.mkdir(exist_ok=True)
            record(name, path)
        reason = problem(path) if path.is_file() else "it does not exist; --write records it"
        failed += bool(reason)
        print(f"{path.relative_to(ROOT)}: {reason or f'{path.stat().st_size:,} bytes'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
