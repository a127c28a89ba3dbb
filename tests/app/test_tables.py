"""Tables for files: a header and a row per entry."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

from decodescope.app.state.cache_history import CacheHistory
from decodescope.app.storage.exported_files import as_json, to_csv, write_table
from decodescope.app.views.base import Table
from decodescope.app.views.shared.table_export import cache_table, candidate_table, draft_round_table, token_table
from decodescope.core.events import CacheMeasured
from tests.app.test_draft_rounds import ROUNDS
from tests.ui.beams import beam_run, beam_steps
from tests.ui.scripted import story


def rows(table: Table) -> list[dict[object, object]]:
    """Lines by the names in the head."""
    head, *lines = table
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_token_table_has_row_per_token() -> None:
    tokens = story(5)
    found = rows(token_table(tokens))
    assert [row["text"] for row in found] == [token.piece for token in tokens]
    assert found[2]["token"] == 3
    assert found[2]["surprise_bits"] == -tokens[2].raw_log_probability / math.log(2)


def test_candidate_table_has_row_per_candidate() -> None:
    tree = beam_run(beam_steps(4)).beams
    found = rows(candidate_table(tree))
    assert len(found) == sum(len(step.candidates) for step in tree.steps)
    assert {row["parent"] for row in found if row["step"] == 1} == {0}


def test_draft_round_table_has_row_per_round() -> None:
    found = rows(draft_round_table(ROUNDS))
    assert [(row["round"], row["drafted"], row["accepted"]) for row in found] == [(1, 4, 2), (2, 2, 2), (3, 2, 0)]


FORMULAS = ("=1+1", "+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1", "\uff1d1", "\uff0b1", "\uff20x")


def test_csv_escapes_formulas() -> None:
    lines = [["name", "text"], *(["a", text] for text in FORMULAS), ["b", "1-2"], ["c", -2.5], ["d", -3], ["e", None]]
    read = list(csv.reader(io.StringIO(to_csv(lines), newline="")))
    assert [row[1] for row in read[1:-4]] == [f"'{text}" for text in FORMULAS]
    assert [row[1] for row in read[-4:]] == ["1-2", "-2.5", "-3", ""]
    plain = list(csv.reader(io.StringIO(to_csv(lines, escape_formulas=False), newline="")))
    assert [row[1] for row in plain[1:-4]] == list(FORMULAS)


def test_csv_escapes_formulas_in_header(tmp_path: Path) -> None:
    write_table([["=cmd", "b"], ["=x", 1]], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == b"'=cmd,b\r\n'=x,1\r\n"
    write_table([["=cmd", "b"], ["=x", 1]], tmp_path / "t.csv", guard_formulas=False)
    assert (tmp_path / "t.csv").read_bytes() == b"=cmd,b\r\n=x,1\r\n"


def test_cache_table_rows_have_equal_length_for_fewer_layers() -> None:
    history = CacheHistory()
    for step, layers in enumerate(((8, 8), (), (8,), (8, 8, 8))):
        token = story(step + 1)[step]
        history.append([token, CacheMeasured(step, step + 1, 16, 16, (("device", "keys", 16),), layers)])
    table = cache_table(history)
    assert len({len(line) for line in table}) == 1
    assert to_csv(table)
    assert as_json(table)


def test_write_table_accepts_surrogates_and_empty_or_short_rows(tmp_path: Path) -> None:
    for name in ("t.csv", "t.json"):
        write_table([["text"], ["a\ud800b"]], tmp_path / name)
        assert "a?b" in (tmp_path / name).read_text()
        write_table([], tmp_path / name)
    assert (tmp_path / "t.json").read_text() == "[]\n"
    write_table([["name", "state"], ["a"]], tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == [{"name": "a", "state": None}]
