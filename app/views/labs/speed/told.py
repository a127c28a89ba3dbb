"""A measurement as it is taken along: a table with every figure, and its sentences as text."""

from __future__ import annotations

import html

from app.state.speed import SpeedResults
from app.views.base import Excerpt, Table
from app.views.labs.speed.figures import row_sentence
from core.labs import speed
from resources.language import join_sentences, tr


def speed_table(speeds: SpeedResults) -> Table:
    """A row for each that was measured or left out, a head first; empty where there is none."""
    if not (speeds.measured or speeds.skipped):
        return ()
    head = ["way", "row", "tokens_per_second", "lowest", "highest", "texts", "per_text", "ratio", "limit", "foretold",
            "tokens_per_pass", "bytes", "same_text", "left_out"]  # fmt: skip
    lines = [_table_row(speeds, row) for row in (speeds.rows or (*speeds.measured, *speeds.skipped))]
    return [head, *(line for line in lines if line is not None)]


def speed_excerpt(speeds: SpeedResults) -> Excerpt | None:
    """The sentences, a way each, with its rows below; None where nothing came of it."""
    if speeds.is_empty:
        return None
    plain, rich = [], []
    if speeds.ground is not None:
        ground = str(speed.explain_ground(speeds.ground))
        plain.append(ground)
        rich.append(f"<p>{html.escape(ground)}</p>")
    for way in speeds.ways:
        title, lines = tr(speed.TITLES[way]), _technique_lines(speeds, way)
        plain.append("\n".join([title, *lines]))
        rich.append(f"<h3>{html.escape(title)}</h3><p>{'<br>'.join(map(html.escape, lines))}</p>")
    if speeds.error is not None:
        plain.append(join_sentences(speeds.error.cause, speeds.error.remedy))
        rich.append(f"<p>{html.escape(plain[-1])}</p>")
    return Excerpt("\n\n".join(plain), "".join(rich))


def _technique_lines(speeds: SpeedResults, way: speed.Way) -> list[str]:
    found = speeds.measurements_of(way)
    sentence = [str(speed.explain_way(way, found))] if len(found) > 1 else []
    left = [f"{speed.row_title(row)}: {reason}" for row, reason in speeds.skipped_of(way)]
    return [*sentence, *map(row_sentence, found), *left]


def _table_row(speeds: SpeedResults, row: speed.Row) -> list[object] | None:
    if row in speeds.skipped:
        return [row.way, row.name, *[None] * 11, speeds.skipped[row]]
    one = speeds.measured.get(row)
    if one is None:
        return None
    return [
        row.way, row.name, one.speed, min(one.speeds), max(one.speeds), one.texts, one.each, one.ratio, one.limit,
        one.foretold, one.per_pass, one.bytes, one.same, None,
    ]  # fmt: skip
