"""Recordings with a valid structure and changed numbers, lengths and references: rejected, or shown and exported in
full.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.control.export_items import ExportItems
from decodescope.app.state.recorded_run import load_run
from decodescope.app.state.run import Run
from decodescope.app.storage.exported_files import as_json, to_csv
from decodescope.app.views.memory.report import cache_report
from decodescope.app.views.shared.table_export import (
    cache_table,
    candidate_table,
    draft_round_table,
    timeline_table,
    token_table,
)
from decodescope.app.widgets.widget_pictures import PictureOptions
from decodescope.core.errors import DecodescopeError
from decodescope.core.events import Event
from tests.core import tiny
from tests.core.test_trace import run_of as recorded_run
from tests.fuzz.records import mutated
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import open_window

STRATEGIES = ("sampling", "beam_search", "diverse_beam_search", "token_tree", "contrastive", "lookahead", "dola")


@pytest.fixture(scope="module")
def sources() -> list[list[Event]]:
    found = [recorded_run(strategy)[1] for strategy in STRATEGIES]
    quantized = core.Request(tiny.prompt(), {"max_new_tokens": 18}, cache="quantized")
    sunk = core.Request(tiny.prompt(), {"max_new_tokens": 18}, cache="sink", cache_options={"window_length": 8})
    for request in (quantized, sunk):
        try:
            found.append(list(core.stream(tiny.shared("llama"), request)))
        except DecodescopeError:
            continue
    return found


def written(path: Path, events: list[Event]) -> bool:
    """Return whether the writer accepts the events; it refuses numbers of thousands of digits."""
    try:
        for _ in core.record(path, iter(events), core.Request("Once")):
            pass
    except (DecodescopeError, ValueError, TypeError):
        return False
    return True


def show_everything(run: Run) -> None:
    """Create the contents that the window derives from a run."""
    tables: list[Any] = [token_table(run.tokens), timeline_table(run.cursor_tokens), cache_table(run.cache_history)]
    tables.append(draft_round_table(run.rounds.rounds))
    if run.beams is not None:
        tables.append(candidate_table(run.beams))
    for table in tables:
        if table:
            to_csv(table)
            as_json(table)
    for cursor in range(run.length + 1):
        run.move_cursor(cursor)
        assert isinstance(run.text, str)
        cache_report(run.cache_history, run, cursor)
    for place in range(len(run.rounds)):
        run.rounds.round_of(place)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(24))
def test_changed_numbers_are_refused_or_shown(seed: int, sources: list[list[Event]], tmp_path: Path) -> None:
    dice, path = random.Random(seed), tmp_path / "run.decodescope"
    for _ in range(40):
        events = mutated(dice.choice(sources), dice)
        if not written(path, events):
            continue
        found = core.trace.read(path)
        try:
            run = load_run(found)
        except DecodescopeError:
            continue
        core.page(found.events, tmp_path / "page.html")
        show_everything(run)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(6))
def test_changed_numbers_are_drawn_and_exported(
    seed: int, sources: list[list[Event]], tmp_path: Path, qtbot: QtBot
) -> None:
    dice, path = random.Random(1000 + seed), tmp_path / "run.decodescope"
    window = open_window(qtbot, tmp_path / "config", ScriptedEngine())
    window.parts.centre.create_all_views()
    exports: ExportItems = window.parts.export.exports
    for _ in range(12):
        if not written(path, mutated(dice.choice(sources), dice)):
            continue
        try:
            window.parts.recorded_runs.show(path, False, offer_settings=False)
        except DecodescopeError:
            continue
        for offer in exports.offers():
            for kind in offer.formats:
                if kind != "decodescope":
                    exports.save(
                        offer.name, tmp_path / f"out.{kind}", PictureOptions(offer.size, expands_scrolled=True)
                    )
