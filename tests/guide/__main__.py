"""python -m tests.guide: make the guide's pictures again, and name the pages whose picture the program no longer draws.

With `--write` they take the place of those that are there. The program has its own fonts, so the pixels are the same
wherever the pictures are made.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests import fonts

if TYPE_CHECKING:
    from decodescope.app.album.picture import Picture


def main() -> int:
    """The exit code: 1 where a picture could not be made, or matches no more."""
    parser = argparse.ArgumentParser(prog="python -m tests.guide", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the pictures into docs/guide")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, as “greedy” or “zh_CN/window”; else all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="decodescope-guide-") as folder:
        fonts.choose(Path(folder))
        homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), folder)
        os.environ.update(homes, QT_QPA_PLATFORM="offscreen", HF_HUB_OFFLINE="1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        begun = time.monotonic()
        pairs = _pairs(Path(folder), options.write, set(options.names))
        code = _draw([made for _, made in pairs])
        print(f"{len(pairs)} pictures made in {time.monotonic() - begun:.0f} s")
        return code if options.write else max(code, _draw_again(pairs), _compare(pairs))


def _pairs(folder: Path, write: bool, names: set[str]) -> list[tuple[Picture, Picture]]:
    """Each picture that is wanted, and the same as it is to be written now."""
    from tests.guide.pages import GUIDE, all_pictures

    wanted = [picture for name, picture in all_pictures().items() if not names or name in names]
    target = GUIDE if write else folder
    return [(picture, replace(picture, out=target / picture.out.relative_to(GUIDE))) for picture in wanted]


def _draw(pictures: list[Picture]) -> int:
    import qasync
    from PySide6.QtWidgets import QApplication

    from decodescope.app.album.picture_drawing import draw_album

    with qasync.QEventLoop(QApplication.instance() or QApplication([])) as loop:
        return int(loop.run_until_complete(draw_album(pictures)))


def difference(one: Path, other: Path) -> str:
    """Return how the pixels of two pictures differ, as a clause; empty if all are equal."""
    from PySide6.QtGui import QImage

    pictures = [QImage(str(path)).convertToFormat(QImage.Format.Format_RGB32) for path in (one, other)]
    if pictures[0].size() != pictures[1].size():
        return "the sizes differ"
    if pictures[0] == pictures[1]:
        return ""
    rows = [y for y in range(pictures[0].height()) if pictures[0].copy(0, y, pictures[0].width(), 1)
            != pictures[1].copy(0, y, pictures[1].width(), 1)]  # fmt: skip
    return f"{len(rows)} rows of pixels differ, from {rows[0]} to {rows[-1]}"


def _draw_again(pairs: list[tuple[Picture, Picture]]) -> int:
    """Those that do not match, by themselves: one was seen to differ once where 34 others were drawn before it."""
    apart = [made for stored, made in pairs if difference(stored.out, made.out)]
    for made in apart:
        print(f"{made.out.name} is drawn once more")
    return _draw(apart) if apart else 0


def _compare(pairs: list[tuple[Picture, Picture]]) -> int:
    from tests.guide.pages import CHINESE_PAGES, PAGES, name_of, shown

    page_of = {path: name_of(page) for page in (*CHINESE_PAGES, *PAGES) for path in shown(page)}
    wrong = 0
    for stored, made in pairs:
        if found := difference(stored.out, made.out):
            wrong += 1
            print(
                f"{page_of[stored.out]}: {stored.out.name} is no longer what the program draws: {found}",
                file=sys.stderr,
            )
    if wrong:
        print("Look at what changed; python -m tests.guide --write makes the pictures anew.", file=sys.stderr)
    else:
        print("all of them match")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
