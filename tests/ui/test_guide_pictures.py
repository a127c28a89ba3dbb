"""One of the guide's pictures is what the program draws; `.ci/run` looks at all of them: `python -m tests.guide`."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
import qasync
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.album.draw import draw_album
from tests.fonts import FONTS
from tests.guide import pages
from tests.guide.matching import difference


@pytest.mark.skipif(os.environ.get("TOKENSCOPE_TEST_FONT", "wide") != "wide", reason="the pictures have the wide font")
def test_the_program_still_draws_them(qapp: QApplication, qtbot: QtBot, tmp_path: Path) -> None:
    if not FONTS["wide"].found():
        pytest.skip(f"{FONTS['wide'].family} is not installed; .ci/run installs it")
    wanted = [pages.pictures()[name] for name in ("chat",)]
    made = [replace(picture, out=tmp_path / picture.out.name) for picture in wanted]
    with qasync.QEventLoop(qapp, set_running_loop=False) as loop:
        assert loop.run_until_complete(draw_album(made)) == 0
    asyncio.set_event_loop(None)
    for one, other in zip(wanted, made, strict=True):
        found = difference(QImage(str(one.out)), QImage(str(other.out)))
        assert found.matches, f"{one.out.name}: {found}. python -m tests.guide --write makes the pictures anew."
