"""python -m tests.guide: make the guide's pictures again, and name the pages whose picture the program no longer draws.

With `--write` they take the place of those that are there. The fonts are those of the window's tests (DejaVu), so that
the pictures are the same wherever they are made.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests import fonts


def main() -> int:
    """The exit code: 1 where a picture could not be made, or matches no more."""
    parser = argparse.ArgumentParser(prog="python -m tests.guide", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the pictures into docs/guide")
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory(prefix="tokenscope-guide-") as folder:
        fonts.choose(Path(folder))
        homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), folder)
        os.environ.update(homes, QT_QPA_PLATFORM="offscreen", HF_HUB_OFFLINE="1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        return _remake(Path(folder), write)


def _remake(folder: Path, write: bool) -> int:
    from app.__main__ import main as tokenscope
    from tests.guide.pages import GUIDE, SCRIPT

    target = GUIDE if write else folder
    script = target / SCRIPT.name
    if not write:
        script.write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    begun = time.monotonic()
    code = tokenscope(["--pictures", str(script)])
    print(f"made in {time.monotonic() - begun:.0f} s")
    return code if write else max(code, _compare(folder))


def _compare(folder: Path) -> int:
    from PySide6.QtGui import QImage

    from tests.guide.matching import difference
    from tests.guide.pages import GUIDE, PAGES, name_of, shown

    wrong = 0
    for page in PAGES:
        for path in shown(page):
            found = difference(QImage(str(path)), QImage(str(folder / path.relative_to(GUIDE))))
            if not found.matches:
                wrong += 1
                print(f"{name_of(page)}: {path.name} is no longer what the program draws: {found}", file=sys.stderr)
    if wrong:
        print("Look at what changed; python -m tests.guide --write makes the pictures anew.", file=sys.stderr)
    else:
        print(f"{sum(len(shown(page)) for page in PAGES)} pictures match")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
